// Visitor over `each` lists that writes the fields.
#pragma once

#include "core/types.hpp"
#include "trace/enum_names.hpp"
#include "trace/number_text.hpp"

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace rubato::trace {

class TextWriter {
public:
    void kind(std::string_view text) {
        separate();
        text_ += text;
    }
    /// The alternative that a variant holds: its kind and its fields.
    template <class... Alternatives>
    void alternative(const std::variant<Alternatives...>& value) {
        std::visit(
            [this](const auto& held) {
                using Held = std::remove_cvref_t<decltype(held)>;
                kind(Held::kind);
                Held::each(held, *this);
            },
            value);
    }
    /// One field.
    template <class Value>
    void operator()(std::string_view name, const Value& value) {
        separate();
        text_ += name;
        field(value);
    }
    template <class Value>
    void operator()(std::string_view name, Rare<Value> rare) {
        if (rare.value != rare.usual) (*this)(name, rare.value);
    }
    std::string take() { return std::move(text_); }

private:
    void separate() {
        if (!text_.empty() && text_.back() != '{') text_ += ' ';
    }
    template <std::integral Value>
    void field(Value value) {
        text_ += '=';
        if constexpr (std::is_same_v<Value, bool>)
            text_ += value ? "true" : "false";
        else
            append_number(text_, static_cast<std::int64_t>(value));
    }
    void field(double value) {
        text_ += '=';
        append_number(text_, value);
    }
    template <class Value>
    void field(const std::optional<Value>& value) {
        if (value)
            field(*value);
        else
            text_ += "=-";
    }
    template <class Value>
    requires std::is_enum_v<Value>
    void field(Value value) {
        text_ += '=';
        const auto index = static_cast<std::size_t>(value);
        const auto& names = enum_names<Value>;
        if (index < std::size(names))
            text_ += names[index];
        else
            append_number(text_, static_cast<std::int64_t>(index));
    }
    template <class... Alternatives>
    void field(const std::variant<Alternatives...>& value) {
        text_ += '{';
        alternative(value);
        text_ += '}';
    }
    void field(const std::string& value) {
        (text_ += "=\"") += value;  // which has none itself
        text_ += '"';
    }
    /// Numbers as [1 2 3], others as [{...}{...}].
    template <class Value>
    void field(const std::vector<Value>& values) {
        text_ += '[';
        for (const Value& value : values) {
            if constexpr (std::is_class_v<Value>) {
                field(value);
            } else {
                if (text_.back() != '[') text_ += ' ';
                append_number(text_, static_cast<std::int64_t>(value));
            }
        }
        text_ += ']';
    }
    template <class Value>
    requires std::is_class_v<Value>
    void field(const Value& value) {
        text_ += '{';
        Value::each(value, *this);
        text_ += '}';
    }

    std::string text_;
};

}  // namespace rubato::trace
