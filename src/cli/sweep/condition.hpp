// The condition of a sweep's "where": an expression over the keys of a resolved scenario.
#pragma once

#include "cli/node.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace rubato::cli {

/// Numbers compare as such, true is 1, texts in double quotes compare with == and != and are nothing else; a key that
/// the scenario does not have compares false with everything (and != true).
class Condition {
public:
    /// Throws InputError at `where` for text that cannot be parsed.
    Condition(const std::string& text, const Where& where);
    ~Condition();
    Condition(const Condition&) = delete;
    Condition& operator=(const Condition&) = delete;

    /// Throws InputError where a text is the value, or is asked for more than whether it equals another.
    bool holds(const Node& tree);
    /// Throws InputError for a key that neither the schema nor any scenario so far has, and for one that was an object
    /// or array in all that have it.
    void check_keys() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// The value at a dotted path of a tree, array indices included; null where there is none.
const Node* value_at(const Node& tree, std::string_view path);

}  // namespace rubato::cli
