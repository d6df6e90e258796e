// What stragglers and faults have in common in a scenario: whom spells befall, and when they are.
#pragma once

#include "cli/node.hpp"

#include <string>

namespace rubato::cli {

/// A list of indices of workers, or of names, at `path`: each worker is there, and none stands there twice. Throws
/// InputError.
void check_members(const Node& list, const std::string& path, std::int64_t lambda);

/// The object at `path` has every_s and for_s together or neither, and its end, until_s, comes after `begin` (of which
/// the key may be missing: then 0). Throws InputError.
void check_spells(const Node& object, const std::string& path, const char* begin);

/// The seconds of a key; `otherwise` where it is missing.
double seconds_of(const Node& object, const char* key, double otherwise = 0);

}  // namespace rubato::cli
