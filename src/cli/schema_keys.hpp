// Every key that a scenario may have, listed from the schema.
#pragma once

#include "cli/node.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

struct SchemaKey {
    std::string path;              ///< "workers.groups[].count"; NAME stands for a name of the user's choice
    std::string name;              ///< the last part
    const Node* schema = nullptr;  ///< of its value, resolved
    const Node* object = nullptr;  ///< schema of the object that it stands in
    /// Path of the value that has to be set as a whole to set this key on the command line, because it lies in an array
    /// or in one of several shapes of a value; empty: the key can be set alone.
    std::string whole;
    bool later = false;  ///< it, or something that it lies in, is not yet built
};

/// In the order of the schema, each before what it contains. `comment` is listed once, at the top.
const std::vector<SchemaKey>& schema_keys();

/// The keys that end in `path`, the exact one alone where there is one. Numbers and brackets of arrays may be left out
/// or given; a class of devices may have any name: "batch_size", "workers.groups[0].count", "cluster.devices.v100.c".
std::vector<const SchemaKey*> keys_at(const std::string& path);

/// The schema with the enumeration of a value: of the value itself or of one of its shapes; null where there is none.
const Node* enumeration(const Node& schema);

/// One value of an enumeration.
struct NamedValue {
    std::string name;
    std::string what;  ///< one line, aliases included; may be empty
    bool built = true;
};

/// Values of an enumeration without aliases, built ones first.
std::vector<NamedValue> named_values(const Node& schema);

/// Whether the value of an enumeration is reserved.
bool is_later(const Node& schema, const std::string& value);

}  // namespace rubato::cli
