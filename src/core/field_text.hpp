// The fields of `each` lists as words, for what only its writer has to understand: the state of a policy of one's own
// in a checkpoint. Numbers as they are, the size of a list before its items; names are left out.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rubato {

class FieldWriter {
public:
    template <class Value>
    void operator()(std::string_view, const Value& value) {
        put(value);
    }
    const std::string& text() const { return text_; }

private:
    template <class Value>
    requires std::is_arithmetic_v<Value> || std::is_enum_v<Value>
    void put(Value value) {
        if constexpr (std::is_enum_v<Value> || std::is_same_v<Value, bool>) {
            put(static_cast<std::int64_t>(value));
        } else {
            char digits[40];
            const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
            if (!text_.empty()) text_ += ' ';
            text_.append(digits, end);
        }
    }
    template <class Value>
    void put(const std::optional<Value>& value) {
        put(value.has_value());
        if (value) put(*value);
    }
    template <class Value>
    void put(const std::vector<Value>& values) {
        put(static_cast<std::int64_t>(values.size()));
        for (const auto& value : values) put(value);
    }
    template <class Value>
    requires std::is_class_v<Value>
    void put(const Value& value) { Value::each(value, *this); }

    std::string text_;
};

/// Throws std::invalid_argument where the text is not one that the same fields have written.
class FieldReader {
public:
    explicit FieldReader(std::string_view text) : text_(text) {}

    template <class Value>
    void operator()(std::string_view, Value& value) {
        get(value);
    }
    void end() const {
        if (!text_.empty()) refuse();
    }

private:
    template <class Value>
    requires std::is_arithmetic_v<Value> || std::is_enum_v<Value>
    void get(Value& value) {
        if constexpr (std::is_enum_v<Value> || std::is_same_v<Value, bool>) {
            std::int64_t number = 0;
            get(number);
            value = static_cast<Value>(number);
        } else {
            const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
            if (error != std::errc()) refuse();
            text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
            if (!text_.empty()) text_.front() == ' ' ? text_.remove_prefix(1) : refuse();
        }
    }
    template <class Value>
    void get(std::optional<Value>& value) {
        bool there = false;
        get(there);
        value.reset();
        if (there) get(value.emplace());
    }
    template <class Value>
    void get(std::vector<Value>& values) {
        std::int64_t size = 0;
        get(size);
        values.clear();
        for (; size > 0; --size) {  // a wrong size runs out of text, not of memory
            Value value{};
            get(value);
            values.push_back(std::move(value));
        }
    }
    template <class Value>
    requires std::is_class_v<Value>
    void get(Value& value) { Value::each(value, *this); }
    [[noreturn]] static void refuse() { throw std::invalid_argument("the saved state is not one of this policy"); }

    std::string_view text_;
};

}  // namespace rubato
