#include "cli/sweep/sweep_directory.hpp"

#include "cli/json_reader.hpp"
#include "cli/layers.hpp"
#include "cli/sweep/claims.hpp"
#include "trace/environment.hpp"
#include "trace/line_file.hpp"

#include <filesystem>
#include <vector>

namespace rubato::cli {
namespace {

namespace fs = std::filesystem;

Node settled_base(const SweepFile& sweep) {
    Node base = sweep.base;
    std::vector<std::string> notes;
    settle_layers(base, notes);
    return base;
}

/// The sweep with its base in full, so that it can be read without other files.
std::string sweep_json(const SweepFile& sweep) {
    Node node = Node::object();
    node.set("version", Node::of(trace::program_version()), {});
    node.set("base", settled_base(sweep), {});
    Node seeds;
    seeds.kind = Node::Kind::array;
    for (const std::int64_t seed : sweep.seeds) seeds.items.push_back(Node::of(seed));
    node.set("seeds", std::move(seeds), {});
    // In the order of the file, which is the order of the swept keys in tables.
    for (const auto& member : sweep.tree.members) {
        for (const char* key : {"variants", "axes", "zip", "where", "tune"})
            if (member.key == key) node.set(key, member.value, {});
    }
    return to_json(node);
}

}  // namespace

std::string default_sweep_directory(const SweepFile& sweep) {
    Loaded base;
    base.tree = settled_base(sweep);
    return "runs/" + sweep.name + "-" + hash8(base, "sweep");
}

bool holds_sweep(const std::string& directory) {
    std::error_code error;
    return fs::exists(fs::path(directory) / "results.csv", error);
}

bool enter_sweep_directory(const std::string& directory, const SweepFile& sweep) {
    std::error_code error;
    const fs::path folder(directory);
    if (fs::exists(folder, error) && !fs::is_directory(folder, error))
        throw InputError(directory + ": is a file, expected a folder for the sweep");
    // In this order: another process may be entering it, and .claims is the first file that it makes.
    const bool filled = fs::is_directory(folder, error) && !fs::is_empty(folder, error);
    const bool ours = fs::exists(folder / "sweep.json", error) || fs::exists(folder / ".claims", error);
    if (filled && !ours) throw InputError(directory + ": is not empty and holds no sweep; --out names another folder");
    trace::make_directory(directory);
    Claims claims(directory);
    const Claims::Writing lock(claims);
    const std::string path = (folder / "sweep.json").string(), text = sweep_json(sweep);
    const bool there = fs::exists(path, error);
    if (there && read_file(path) == text) return false;
    trace::write_file_by_rename(path, text);
    return there;
}

}  // namespace rubato::cli
