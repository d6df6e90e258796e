#include "cli/load.hpp"

#include "cli/build_scenario.hpp"
#include "cli/calibrate/use_profile.hpp"
#include "cli/complete.hpp"
#include "cli/complete_protocol.hpp"
#include "cli/layer_costs.hpp"
#include "cli/layers.hpp"
#include "cli/plugins.hpp"
#include "cli/schema.hpp"

#include <cstdio>
#include <filesystem>

namespace rubato::cli {

Loaded resolve_layers(Node tree, const std::string& default_name) {
    Loaded loaded;
    loaded.tree = std::move(tree);
    use_profiles(loaded.tree, loaded.notes);
    use_layer_tables(loaded.tree);
    prepare_sections(loaded.tree, default_name);
    check_and_fill(loaded.tree);
    complete(loaded.tree, loaded.notes);
    complete_plugins(loaded.tree);
    put_in_order(loaded.tree);
    loaded.scenario = build_scenario(loaded.tree);
    check_policy(loaded.tree, loaded.scenario);
    return loaded;
}

Loaded read_scenario(const std::string& path, const std::vector<std::string>& sets) {
    std::vector<std::string> notes;
    Node tree = read_layers(path, sets, notes);
    Loaded loaded = resolve_layers(std::move(tree), std::filesystem::path(path).stem().string());
    loaded.notes.insert(loaded.notes.begin(), notes.begin(), notes.end());
    loaded.resolved_json = to_json(loaded.tree);
    return loaded;
}

void require_files(const Loaded& loaded) {
    require_plugins(loaded.tree);
    const auto check = [&](const char* section, const char* key, bool folder) {
        const Node* object = loaded.tree.find(section);
        const Node* node = object ? object->find(key) : nullptr;
        if (!node) return;
        std::error_code error;
        const bool there = folder ? std::filesystem::is_directory(node->text, error)
                                  : std::filesystem::is_regular_file(node->text, error);
        if (there) return;
        throw InputError(node->where, std::string(section) + "." + key,
                         std::string("there is no ") + (folder ? "folder " : "file ") + node->text);
    };
    check("cluster", "platform", false);
    check("data", "path", true);
}

std::string hash8(const Loaded& loaded, const std::string& salt) {
    // FNV-1a, 64 bits, folded.
    std::uint64_t hash = 14695981039346656037ull;
    for (const char c : to_json(loaded.tree, false) + salt) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    }
    char text[9];
    std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(hash ^ (hash >> 32)));
    return text;
}

}  // namespace rubato::cli
