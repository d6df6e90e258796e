// A scenario in layers: the files that it extends, itself, and the command line on top.
#pragma once

#include "cli/node.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// Reads the file and those that it extends, applies `sets` ("a.b=VALUE") and drops the keys that a later layer made
/// meaningless; each drop is told in `notes`. Nothing is checked yet.
Node read_layers(const std::string& path, const std::vector<std::string>& sets, std::vector<std::string>& notes);

/// Keys in the order of the schema, those of tables by name: equal scenarios become equal texts.
void put_in_order(Node& root);

}  // namespace rubato::cli
