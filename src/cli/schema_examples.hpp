// Values of keys for examples, from the schema.
#pragma once

#include "cli/schema_keys.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// JSON on one line, for short values.
std::string value_text(const Node& value);

/// An allowed value: the schema's first example, or one that is not the default.
Node example_value(const Node& schema);

/// Path of a sibling of the key.
std::string sibling_path(const SchemaKey& key, const std::string& sibling);

/// Flags of --set, without the "--set", that give a built key its example value in a scenario where it has a meaning:
/// keys that it needs come first. Empty where the command line cannot set it.
std::vector<std::string> example_sets(const SchemaKey& key);

}  // namespace rubato::cli
