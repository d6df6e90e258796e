#include "cli/placed.hpp"

#include <algorithm>
#include <charconv>

namespace rubato::cli {
namespace {

bool may_be_key(const std::string& text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '[' || c == ']';
    });
}

const Node* member(const Node& node, const std::string& part) {
    if (!node.is(Node::Kind::array)) return node.find(part);
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    return error == std::errc() && index < node.items.size() ? &node.items[index] : nullptr;
}

}  // namespace

InputError placed(const Loaded& loaded, const sim::PlatformError& error) {
    const std::string text = error.what();
    const auto colon = text.find(": ");
    const std::string key = text.substr(0, colon);
    if (colon == text.npos || !may_be_key(key)) return InputError(text);
    const Node* node = &loaded.tree;
    Where where;
    for (const auto& part : split_path(key)) {
        node = member(*node, part);
        if (node == nullptr) break;
        where = node->where;
    }
    if (where.file == nullptr) return InputError(text);
    return InputError(where, key, text.substr(colon + 2));
}

}  // namespace rubato::cli
