// Defaults that depend on other keys, and combinations that have no meaning.
#pragma once

#include "cli/node.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// Throws InputError at the node.
[[noreturn]] inline void refuse(const Node& node, const std::string& path, const std::string& why) {
    throw InputError(node.where, path, why);
}

/// Before the walk: sections whose presence depends on others. Tolerates anything.
void prepare_sections(Node& root, const std::string& default_name);

/// After the walk: fills the remaining defaults and refuses, with the reason, what cannot go together.
void complete(Node& root, std::vector<std::string>& notes);

/// Whether the scenario computes no gradients. After the walk.
bool timing_only(const Node& root);

/// lambda. After the walk.
std::int64_t worker_count(const Node& root);

}  // namespace rubato::cli
