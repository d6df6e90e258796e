// The schema of scenarios and the walk that checks a file against it and fills in the defaults.
#pragma once

#include "cli/node.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// The schema as a tree; read once from the text embedded in the program.
const Node& scenario_schema();
/// Its text.
std::string_view scenario_schema_text();

/// Follows a $ref.
const Node& resolved(const Node& schema);

/// The keys that an object must have; null where there are none. At the top they may come from a file that a scenario
/// extends, so editors ask only files without `extends` for them; here all layers are merged already.
const Node* required_keys(const Node& schema);

/// Schema of the value at a dotted path such as "protocol.name"; null where there is none.
const Node* schema_at(const std::string& path);

/// Canonical spelling of an enumerated value (aliases), or the value itself.
std::string canonical(const Node& schema, const std::string& value);

/// Whether the key, whose schema is `key_schema`, has a meaning beside its siblings in `object`. `why` says why not.
bool goes_with(const Node& key_schema, const Node& object_schema, const Node& object, std::string* why = nullptr);

/// Checks `root` and fills in what the schema gives as defaults; canonical names replace aliases; paths become
/// absolute. Throws InputError for the first thing that is wrong.
void check_and_fill(Node& root);

/// The same for a part: `path` is its place, for messages.
void check_and_fill(Node& node, const Node& schema, const std::string& path);

}  // namespace rubato::cli
