// JSON as a small tree that remembers where each value was written.
#pragma once

#include "cli/error.hpp"

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::cli {

struct Member;

/// One JSON value. Objects keep the order of their keys; keys are unique.
struct Node {
    enum class Kind : std::uint8_t { null, boolean, integer, number, string, array, object };

    Kind kind = Kind::null;
    bool boolean = false;
    std::int64_t integer = 0;  ///< Kind::integer
    double number = 0;         ///< Kind::integer and Kind::number
    std::string text;          ///< Kind::string
    std::vector<Node> items;   ///< Kind::array
    /// Kind::object. A list, so that what points at a value stays right when a key is added.
    std::list<Member> members;
    Where where;

    static Node of(bool value);
    static Node of(std::int64_t value);
    static Node of(double value);
    static Node of(std::string value);
    static Node of(const char* text) { return of(std::string(text)); }  // not the one of bool
    static Node object();

    bool is(Kind other) const { return kind == other; }
    bool is_number() const { return kind == Kind::integer || kind == Kind::number; }
    /// Value of a key; null where there is none or where this is no object.
    const Node* find(std::string_view key) const;
    Node* find(std::string_view key);
    /// Value of a key that must be there (checked before): throws std::logic_error otherwise.
    const Node& at(std::string_view key) const;
    /// Replaces the value of a key or appends it.
    Node& set(std::string_view key, Node value, const Where& key_where);
    void erase(std::string_view key);
    /// A number without fraction that an int64 holds, written with or without ".0".
    bool is_whole() const;
    std::int64_t whole() const;
};

struct Member {
    std::string key;
    Where where;  ///< of the key
    Node value;
};

/// Text of a key; empty where there is none, or where it is no string.
std::string text_at(const Node& node, std::string_view key);

/// "a string", "an integer", ... as messages name it.
std::string_view kind_name(Node::Kind kind);
/// "the string \"8\"", "the number 0.5", "an object": a value as messages show it.
std::string describe(const Node& node);

/// JSON text; values that fit on a line stand on one. Numbers round-trip. `comments`: whether comment keys are kept.
std::string to_json(const Node& node, bool comments = true);

/// The same value, wherever it was written.
bool same_value(const Node& a, const Node& b);

/// The path of a key, "a.b[2].c" or "a.b.2.c", to its parts.
std::vector<std::string> split_path(std::string path);

}  // namespace rubato::cli
