// Checked nodes as the numbers that they say.
#pragma once

#include "cli/node.hpp"
#include "cli/units.hpp"

namespace rubato::cli {

/// A number, or a string with a unit.
inline double quantity(const Node& node, Quantity unit) {
    return node.is(Node::Kind::string) ? parse_quantity(node.text, unit) : node.number;
}

/// Within the range of the schema.
inline int to_int(const Node& node) {
    return static_cast<int>(node.whole());
}

}  // namespace rubato::cli
