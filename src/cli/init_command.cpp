// rubato init: a small scenario that runs as it is, with a comment on each of its parts.
#include "cli/build_scenario.hpp"
#include "cli/commands.hpp"
#include "cli/complete.hpp"
#include "cli/error.hpp"
#include "cli/exit_status.hpp"
#include "cli/json_reader.hpp"
#include "cli/schema.hpp"
#include "trace/line_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace rubato::cli {
namespace {

namespace fs = std::filesystem;

/// An absolute path as an URI.
std::string file_uri(const fs::path& path) {
    std::string uri = "file://";
    for (const char c : path.string()) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (byte < 0x80 && std::isalnum(byte)) || std::string_view("/-._~").find(c) < 5;
        uri += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
    }
    return uri;
}

/// Where editors find the schema, as seen from `file`: within a source tree a relative path, which other checkouts
/// share; otherwise the address of the installed file. Empty where there is none.
std::string schema_address(const fs::path& file) {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    const fs::path above = program.parent_path().parent_path();
    const fs::path places[] = {above / "share" / "rubato", above / "src" / "cli", RUBATO_SCHEMA_DIR};
    for (const auto& place : places) {
        const fs::path schema = fs::weakly_canonical(place / "scenario.schema.json", error);
        if (!fs::is_regular_file(schema, error)) continue;
        const fs::path tree = schema.parent_path().parent_path().parent_path();
        const fs::path folder = fs::weakly_canonical(fs::absolute(file).parent_path(), error);
        const bool inside = fs::exists(tree / "meson.build", error) &&
                            std::mismatch(tree.begin(), tree.end(), folder.begin(), folder.end()).first == tree.end();
        return inside ? schema.lexically_relative(folder).string() : file_uri(schema);
    }
    return {};
}

/// The checked, canonical name.
std::string protocol_name(const std::string& name) {
    Node node = Node::of(name);
    node.where.file = std::make_shared<const std::string>("--protocol " + name);
    check_and_fill(node, *schema_at("protocol.name"), "");
    return node.text;
}

/// The protocol with the keys that go with it, each at its default or the schema's example.
Node protocol_section(const std::string& name) {
    const Node& schema = *schema_at("protocol");
    Node section = Node::object();
    section.set("comment", Node::of(schema_at("protocol.name")->at("x-values").at(name).text), {});
    section.set("name", Node::of(name), {});
    for (const auto& [key, where, child] : schema.at("properties").members) {
        if (!child.find("x-goes-with") || child.find("x-not-yet") || !goes_with(child, schema, section)) continue;
        const Node* value = child.find("default");
        if (const Node* examples = child.find("examples"); !value && examples) value = &examples->items.front();
        if (value) section.set(key, *value, {});
    }
    // The model of the template has one layer.
    if (section.find("split")) section.set("split", Node::of("bytes"), {});
    return section;
}

/// Real gradients on synthetic data: it needs no file and no package, and every backend runs it.
Node scenario_for(const std::string& protocol, const std::string& file) {
    Node root = parse_json(R"({
        "comment": "`rubato check FILE` explains it, `rubato run FILE` runs it, `rubato help KEY` tells about a key.",
        "seed": 1,
        "data": {"comment": "Other data sets: `rubato list datasets`.", "dataset": "synthetic", "samples": 2000},
        "model": {"comment": "What learns. Other models: `rubato list models`.", "name": "softmax"},
        "workers": {"comment": "batch_size: samples of one gradient of one worker.", "count": 4, "batch_size": 32},
        "protocol": {},
        "optimizer": {"comment": "staleness_rule, which `rubato list rules` lists, adapts the rate to staleness.",
                      "name": "sgd", "learning_rate": 0.05, "staleness_rule": "none"},
        "stop": {"comment": "The first criterion that is reached ends the run.", "epochs": 5},
        "evaluate": {"every_epochs": 1},
        "cluster": {"comment": "The machine that `--backend sim` models; real runs leave it aside.",
                    "network": {"star": {"bandwidth": "10Gbps", "latency": "10us"}},
                    "devices": {"default": {"comment": "Seconds of one gradient by batch size.",
                                            "seconds": {"8": 0.003, "32": 0.01, "128": 0.036}}},
                    "noise": {"lognormal_cv": 0.1},
                    "server": {"push_s": "200us", "pull_s": "200us", "update_s": "300us"}}
    })",
                           {});
    *root.find("protocol") = protocol_section(protocol);
    // Of which there is one layer for each fragment.
    if (protocol == "streaming-diloco") *root.find("model") = parse_json(R"({"name": "mlp", "hidden": [32]})", {});
    const std::string address = schema_address(file == "-" ? fs::path("scenario.json") : fs::path(file));
    if (address.empty()) return root;
    Node with_schema = Node::object();
    with_schema.set("$schema", Node::of(address), {});
    with_schema.members.insert(with_schema.members.end(), root.members.begin(), root.members.end());
    return with_schema;
}

/// What is written is valid: a name of a file that no scenario can bear is told before anything is written.
void require_valid(Node root, const std::string& file) {
    root.erase("$schema");
    std::vector<std::string> notes;
    prepare_sections(root, file == "-" ? "scenario" : fs::path(file).stem().string());
    root.find("name")->where.file = std::make_shared<const std::string>(file);
    check_and_fill(root);
    complete(root, notes);
    build_scenario(root);
}

}  // namespace

int init_command(const std::string& file, const std::string& protocol, bool force) {
    if (file.empty()) throw InputError("init: expected a file, found an empty name");
    const Node root = scenario_for(protocol_name(protocol), file);
    require_valid(root, file);
    const std::string text = to_json(root);
    if (file == "-") {
        fmt::print("{}", text);
        return exit_finished;
    }
    std::error_code error;
    if (fs::is_directory(file, error)) throw InputError("init: " + file + " is a folder, expected a file");
    if (fs::symlink_status(file, error).type() != fs::file_type::not_found && !force)
        throw InputError("init: " + file + " exists; --force replaces it");
    trace::write_file_by_rename(file, text);
    fmt::print("{0} is written; next: rubato check {0}, rubato run {0}\n", file);
    return exit_finished;
}

}  // namespace rubato::cli
