// What messages say about the schema: expectations and suggestions.
#pragma once

#include "cli/node.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace rubato::cli {

/// Whether values of this JSON type are allowed.
bool has_type(const Node& schema, std::string_view name);
bool type_matches(const Node& schema, const Node& node);

/// The values of an enumeration that are built, without aliases.
std::vector<std::string> built_values(const Node& schema);

/// "a", "b" or "c", in quotes.
std::string quoted_list(std::vector<std::string> names);

/// "an integer of at least 1", "one of ...".
std::string expectation(const Node& schema);

/// What the user most likely meant by a value of the wrong type; begins with "; ".
std::string type_hint(const Node& schema, const Node& node);

/// Where an unknown key belongs, or which key it was meant to be; begins with "; ".
std::string key_hint(const std::string& key, const Node& schema);

}  // namespace rubato::cli
