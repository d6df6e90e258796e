// Visitor over `each` lists that reads what TextWriter wrote.
#pragma once

#include "core/types.hpp"
#include "trace/enum_names.hpp"

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace rubato::trace {

/// Throws std::invalid_argument with what was expected, and where.
class TextReader {
public:
    explicit TextReader(std::string_view text) : text_(text) {}

    /// The alternative whose kind comes next, with its fields.
    template <class Variant>
    Variant alternative() {
        return alternative_of(static_cast<const Variant*>(nullptr), word());
    }
    /// One field.
    template <class Value>
    void operator()(std::string_view name, Value& value) {
        separate();
        take(name);
        field(value);
    }
    template <class Value>
    void operator()(std::string_view name, Rare<Value> rare) {
        const bool there = text_.size() > name.size() + 1 && text_.front() == ' ' &&
                           text_.substr(1, name.size()) == name &&
                           std::string_view("={[").find(text_[name.size() + 1]) != std::string_view::npos;
        rare.value = rare.usual;
        if (there) (*this)(name, rare.value);
    }
    void end() const {
        if (!text_.empty()) expected("the end of the line");
    }

private:
    template <class... Alternatives>
    std::variant<Alternatives...> alternative_of(const std::variant<Alternatives...>*, std::string_view kind) {
        std::variant<Alternatives...> out;
        const auto matches = [&]<class Held>(std::type_identity<Held>) {
            if (Held::kind != kind) return false;
            Held value;
            Held::each(value, *this);
            out = std::move(value);
            return true;
        };
        if (!(matches(std::type_identity<Alternatives>{}) || ...))
            throw std::invalid_argument("unknown kind \"" + std::string(kind) + "\"");
        return out;
    }
    void field(bool& value) { value = word_after_equals<2>({"false", "true"}) == 1; }
    template <std::integral Value>
    void field(Value& value) {
        number(value, "a whole number");
    }
    void field(double& value) { number(value, "a number"); }
    template <class Value>
    void field(std::optional<Value>& value) {
        value.reset();
        if (text_.starts_with("=-") && (text_.size() == 2 || text_[2] == ' ' || text_[2] == '}'))
            text_.remove_prefix(2);
        else
            field(value.emplace());
    }
    template <class Value>
    requires std::is_enum_v<Value>
    void field(Value& value) { value = static_cast<Value>(word_after_equals(enum_names<Value>)); }
    template <class... Alternatives>
    void field(std::variant<Alternatives...>& value) {
        take("{");
        after_brace_ = false;
        value = alternative<std::variant<Alternatives...>>();
        take("}");
    }
    void field(std::string& value) {
        take("=\"");
        value = text_.substr(0, text_.find('"'));
        text_.remove_prefix(value.size());
        take("\"");
    }
    template <class Value>
    void field(std::vector<Value>& values) {
        take("[");
        values.clear();
        while (!text_.starts_with("]")) {
            if constexpr (std::is_class_v<Value>) {
                field(values.emplace_back());
            } else {
                if (!values.empty()) take(" ");
                whole(values.emplace_back());
            }
        }
        take("]");
    }
    template <class Value>
    requires std::is_class_v<Value>
    void field(Value& value) {
        take("{");
        after_brace_ = true;
        Value::each(value, *this);
        after_brace_ = false;
        take("}");
    }

    /// Everything to the next separator.
    std::string_view word() {
        const std::string_view out = text_.substr(0, text_.find_first_of(" {}="));
        text_.remove_prefix(out.size());
        return out;
    }
    void take(std::string_view text) {
        if (!text_.starts_with(text)) expected("\"" + std::string(text) + "\"");
        text_.remove_prefix(text.size());
    }
    void separate() {
        if (!after_brace_) take(" ");
        after_brace_ = false;
    }
    template <class Value>
    void number(Value& value, const char* what) {
        take("=");
        plain(value, what);
    }
    template <class Value>
    void whole(Value& value) {
        plain(value, "a whole number");
    }
    template <class Value>
    void plain(Value& value, const char* what) {
        const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
        if (error != std::errc()) expected(what);
        text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    }
    template <std::size_t size>
    std::size_t word_after_equals(const std::array<std::string_view, size>& names) {
        take("=");
        const std::string_view found = word();
        for (std::size_t i = 0; i < size; ++i)
            if (names[i] == found) return i;
        std::string what = "one of";
        for (const std::string_view name : names) (what += ' ') += name;
        throw std::invalid_argument(what + " expected, not \"" + std::string(found) + "\"");
    }
    [[noreturn]] void expected(const std::string& what) const {
        throw std::invalid_argument(what + " expected at \"" + std::string(text_.substr(0, 40)) + "\"");
    }

    std::string_view text_;
    bool after_brace_ = false;
};

}  // namespace rubato::trace
