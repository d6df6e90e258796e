// A scenario in layers: the files that it extends, itself, and the command line on top.
#pragma once

#include "cli/node.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// Reads the file and those that it extends, applies `sets` ("a.b=VALUE") and drops the keys that a later layer made
/// meaningless; each drop is told in `notes`. Nothing is checked yet.
Node read_layers(const std::string& path, const std::vector<std::string>& sets, std::vector<std::string>& notes);

/// Rank of what the command line sets (error.hpp). What a sweep sets lies above, each layer of it (a variant, an axis)
/// with a rank of its own.
inline constexpr int set_rank = 2000;

/// read_layers in two steps, so that further layers may come between: the files and `sets`, with nothing dropped ...
Node read_open_layers(const std::string& path, const std::vector<std::string>& sets);
/// ... and the drops.
void settle_layers(Node& root, std::vector<std::string>& notes);

/// Gives the key at a dotted path a value; objects on the way are made where they are missing. Throws InputError at
/// `where`, which is also where the key was written.
void set_value_at(Node& root, const std::string& path, Node value, const Where& where);

/// Keys in the order of the schema, those of tables by name: equal scenarios become equal texts.
void put_in_order(Node& root);

}  // namespace rubato::cli
