#include "cli/node.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

namespace rubato::cli {

Node Node::of(bool value) {
    Node node;
    node.kind = Kind::boolean;
    node.boolean = value;
    return node;
}

Node Node::of(std::int64_t value) {
    Node node;
    node.kind = Kind::integer;
    node.integer = value;
    node.number = static_cast<double>(value);
    return node;
}

Node Node::of(double value) {
    Node node;
    node.kind = Kind::number;
    node.number = value;
    return node;
}

Node Node::of(std::string value) {
    Node node;
    node.kind = Kind::string;
    node.text = std::move(value);
    return node;
}

Node Node::object() {
    Node node;
    node.kind = Kind::object;
    return node;
}

const Node* Node::find(std::string_view key) const {
    // The walk over the schema does little else, and most keys differ in their length or their last letter.
    const std::size_t size = key.size();
    for (const auto& member : members) {
        if (member.key.size() != size || (size > 0 && member.key[size - 1] != key[size - 1])) continue;
        if (member.key == key) return &member.value;
    }
    return nullptr;
}

Node* Node::find(std::string_view key) {
    return const_cast<Node*>(std::as_const(*this).find(key));
}

const Node& Node::at(std::string_view key) const {
    if (const Node* node = find(key)) return *node;
    throw std::logic_error("no key " + std::string(key));
}

Node& Node::set(std::string_view key, Node value, const Where& key_where) {
    for (auto& member : members) {
        if (member.key == key) {
            member.value = std::move(value);
            member.where = key_where;
            return member.value;
        }
    }
    members.push_back({std::string(key), key_where, std::move(value)});
    return members.back().value;
}

void Node::erase(std::string_view key) {
    std::erase_if(members, [&](const Member& member) { return member.key == key; });
}

bool Node::is_whole() const {
    if (kind == Kind::integer) return true;
    // Beyond 2^53 a double no longer says which integer was meant.
    return kind == Kind::number && std::trunc(number) == number && std::fabs(number) <= 9007199254740992.0;
}

std::int64_t Node::whole() const {
    return kind == Kind::integer ? integer : static_cast<std::int64_t>(number);
}

std::string text_at(const Node& node, std::string_view key) {
    const Node* found = node.find(key);
    return found && found->is(Node::Kind::string) ? found->text : "";
}

std::string_view kind_name(Node::Kind kind) {
    switch (kind) {
        case Node::Kind::null: return "null";
        case Node::Kind::boolean: return "true or false";
        case Node::Kind::integer: return "an integer";
        case Node::Kind::number: return "a number";
        case Node::Kind::string: return "a string";
        case Node::Kind::array: return "an array";
        case Node::Kind::object: return "an object";
    }
    return "";
}

namespace {

void write_string(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) {
        switch (c) {
            case '"': out += "\\\""; break;
            case '\\': out += "\\\\"; break;
            case '\n': out += "\\n"; break;
            case '\t': out += "\\t"; break;
            default:
                if (static_cast<unsigned char>(c) < 0x20) {
                    char code[8];
                    std::snprintf(code, sizeof code, "\\u%04x", c);
                    out += code;
                } else {
                    out += c;
                }
        }
    }
    out += '"';
}

void write_number(std::string& out, const Node& node) {
    char text[40];
    const auto end = node.kind == Node::Kind::integer ? std::to_chars(text, text + sizeof text, node.integer)
                                                      : std::to_chars(text, text + sizeof text, node.number);
    out.append(text, end.ptr);
}

class Writer {
public:
    explicit Writer(bool comments) : comments_(comments) {}

    std::string flat(const Node& node) const {
        std::string out;
        switch (node.kind) {
            case Node::Kind::null: return "null";
            case Node::Kind::boolean: return node.boolean ? "true" : "false";
            case Node::Kind::integer:
            case Node::Kind::number: write_number(out, node); return out;
            case Node::Kind::string: write_string(out, node.text); return out;
            case Node::Kind::array: return list(node, "[", "]", ", ");
            case Node::Kind::object: return list(node, "{", "}", ", ");
        }
        return out;
    }

    std::string pretty(const Node& node, const std::string& indent, std::size_t used) const {
        std::string line = flat(node);
        if (indent.size() + used + line.size() <= line_length || (node.items.empty() && node.members.empty())) {
            return line;
        }
        const std::string inner = indent + "    ";
        const bool array = node.kind == Node::Kind::array;
        return list(node, array ? "[\n" + inner : "{\n" + inner, (array ? "\n" + indent + "]" : "\n" + indent + "}"),
                    ",\n" + inner, &inner);
    }

private:
    static constexpr std::size_t line_length = 110;

    std::string list(const Node& node, const std::string& open, const std::string& close, const std::string& comma,
                     const std::string* indent = nullptr) const {
        std::string out;
        for (const auto& item : node.items) {
            if (!out.empty()) out += comma;
            out += indent ? pretty(item, *indent, 0) : flat(item);
        }
        for (const auto& member : node.members) {
            if (!comments_ && member.key == "comment") continue;
            if (!out.empty()) out += comma;
            std::string key;
            write_string(key, member.key);
            key += ": ";
            out += key;
            out += indent ? pretty(member.value, *indent, key.size()) : flat(member.value);
        }
        return open + out + close;
    }

    bool comments_;
};

}  // namespace

std::string to_json(const Node& node, bool comments) {
    return Writer(comments).pretty(node, "", 0) + "\n";
}

std::string describe(const Node& node) {
    switch (node.kind) {
        case Node::Kind::null: return "null";
        case Node::Kind::boolean: return node.boolean ? "true" : "false";
        case Node::Kind::integer:
        case Node::Kind::number: return "the number " + Writer(true).flat(node);
        case Node::Kind::string: {
            const bool fits = node.text.size() <= 60;
            return "the string " + Writer(true).flat(Node::of(fits ? node.text : head_of(node.text, 57) + "..."));
        }
        case Node::Kind::array: return "an array";
        case Node::Kind::object: return "an object";
    }
    return "";
}

bool same_value(const Node& a, const Node& b) {
    if (a.is_number() && b.is_number()) {
        return a.kind == b.kind ? a.number == b.number && a.integer == b.integer : a.number == b.number;
    }
    if (a.kind != b.kind || a.boolean != b.boolean || a.text != b.text) return false;
    if (a.items.size() != b.items.size() || a.members.size() != b.members.size()) return false;
    for (std::size_t i = 0; i < a.items.size(); ++i) {
        if (!same_value(a.items[i], b.items[i])) return false;
    }
    for (const auto& member : a.members) {
        const Node* other = b.find(member.key);
        if (!other || !same_value(member.value, *other)) return false;
    }
    return true;
}

std::vector<std::string> split_path(std::string path) {
    std::erase(path, ']');
    std::replace(path.begin(), path.end(), '[', '.');
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= path.size();) {
        const auto dot = std::min(path.find('.', begin), path.size());
        parts.push_back(path.substr(begin, dot - begin));
        begin = dot + 1;
    }
    return parts;
}

}  // namespace rubato::cli
