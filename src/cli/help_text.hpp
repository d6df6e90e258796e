// What the schema says about one key or one word, as text for people.
#pragma once

#include "cli/schema_keys.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// Everything about a key: value, unit, default, what it goes with, its keys, an example. Several lines.
std::string key_text(const SchemaKey& key);

/// The key and its description in one line.
std::string key_line(const SchemaKey& key);

/// The sections of a scenario, a line each.
std::string scenario_text();

/// Everything about the values of enumerations that bear this name (protocols, staleness rules, ...); a block each,
/// empty where there is none.
std::vector<std::string> word_texts(const std::string& word);

/// All names of values, aliases included, for suggestions.
std::vector<std::string> all_words();

}  // namespace rubato::cli
