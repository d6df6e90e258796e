// Text to Node: strict JSON with line numbers, duplicate keys refused.
#pragma once

#include "cli/node.hpp"

#include <optional>

namespace rubato::cli {

/// Throws InputError with file and line for anything but one JSON value: duplicate keys, trailing commas, comments,
/// NaN, byte order marks, bytes that are not UTF-8, nesting beyond 64 levels, numbers beyond a double.
Node parse_json(const std::string& text, const Where& where);

/// Throws InputError where the text begins as other files do, or holds a zero byte. kind: what does not allow a byte
/// order mark, such as "JSON"; expected: "JSON text".
void require_plain_text(const std::string& text, const Where& where, const std::string& kind,
                        const std::string& expected);

/// Reads a whole file. Throws InputError where it cannot be read or is not plain (larger than 64 MiB, a folder).
std::string read_file(const std::string& path);

/// parse_json of a file; every node gets `rank`.
Node read_json(const std::string& path, int rank = 0);

/// Whether all of the text is valid UTF-8, as JSON must be.
bool is_utf8(const std::string& text);

/// The value where the text is JSON, nothing otherwise.
std::optional<Node> try_parse_json(const std::string& text, const Where& where);

}  // namespace rubato::cli
