#include "cli/run_directory.hpp"

#include "cli/json_reader.hpp"

#include <filesystem>

namespace rubato::cli {
namespace {

namespace fs = std::filesystem;

std::string text_at(const Node& node, const char* key) {
    const Node* found = node.find(key);
    return found && found->is(Node::Kind::string) ? found->text : "";
}

/// The tree in a file, or null where there is none that can be read.
Node read_or_null(const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return {};
    try {
        return read_json(path.string());
    } catch (const InputError&) {
        return {};
    }
}

}  // namespace

std::string default_directory(const Loaded& loaded, const std::string& backend) {
    return "runs/" + loaded.scenario.name + "-" + hash8(loaded, backend == "sim" ? "" : backend);
}

std::optional<EarlierRun> look_into(const std::string& directory, const Loaded& loaded, const std::string& backend,
                                    bool force) {
    std::error_code error;
    const fs::path folder(directory);
    if (!fs::exists(folder, error)) return std::nullopt;
    if (!fs::is_directory(folder, error)) throw InputError(directory + ": is a file, expected a folder for the run");
    if (fs::is_empty(folder, error) || force) return std::nullopt;
    const Node scenario = read_or_null(folder / "scenario.json");
    const bool same = scenario.is(Node::Kind::object) && to_json(scenario, false) == to_json(loaded.tree, false);
    const Node summary = read_or_null(folder / "summary.json");
    const std::string status = text_at(summary, "status");
    if (same && text_at(summary, "backend") == backend && (status == "finished" || status == "diverged")) {
        return EarlierRun{read_file((folder / "summary.json").string()), status};
    }
    const std::string what = !scenario.is(Node::Kind::object) ? "is not empty"
                             : !same                          ? "holds a run of another scenario"
                             : status.empty()                 ? "holds an unfinished run of this scenario"
                             : text_at(summary, "backend") != backend
                                 ? "holds a run of this scenario on backend " + text_at(summary, "backend")
                                 : "holds a run of this scenario that ended as " + status;
    throw InputError(directory + ": " + what + "; --force replaces its files, --out names another folder");
}

std::string status_of(const std::string& summary_json) {
    return text_at(parse_json(summary_json, {std::make_shared<const std::string>("summary.json"), 1, 0}), "status");
}

}  // namespace rubato::cli
