// What the tests of this room share.
#pragma once

#include "core/action.hpp"
#include "core/scenario.hpp"

#include <random>
#include <string>
#include <vector>

namespace rubato::trace_test {

/// A fresh directory that goes with the value.
class TemporaryDirectory {
public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    std::string path(const std::string& name) const { return path_ + "/" + name; }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

std::string read_file(const std::string& path);
bool exists(const std::string& path);
std::vector<std::string> lines_of(const std::string& text);
std::string joined(const std::vector<std::string>& lines);

/// Two workers, epochs of 100 samples.
Scenario small_scenario();

/// Random values through the `each` lists: every field gets something else than its default.
class Randomizer {
public:
    explicit Randomizer(unsigned seed) : engine_(seed) {}

    template <class Value>
    void operator()(std::string_view, Value& value) {
        fill(value);
    }
    /// Its usual value, or any.
    template <class Value>
    void operator()(std::string_view, Rare<Value> rare) {
        rare.value = rare.usual;
        if (bits() & 1) fill(rare.value);
    }
    template <class... Alternatives>
    void choose(std::variant<Alternatives...>& value, std::size_t index) {
        std::size_t i = 0;
        ((i++ == index ? fill(value.template emplace<Alternatives>()) : void()), ...);
    }
    std::uint64_t bits() { return engine_(); }

private:
    void fill(bool& value) { value = bits() & 1; }
    template <std::integral Value>
    void fill(Value& value) {
        value = static_cast<Value>(bits() >> (bits() % 64));
    }
    void fill(double& value);
    void fill(std::optional<double>& value) {
        value.reset();
        if (bits() & 1) fill(value.emplace());
    }
    void fill(Channel& value) { value = static_cast<Channel>(bits() % 3); }
    void fill(Outcome& value) { value = static_cast<Outcome>(bits() % 4); }
    void fill(Status& value) { value = static_cast<Status>(bits() % 7); }
    template <class... Alternatives>
    void fill(std::variant<Alternatives...>& value) {
        choose(value, bits() % sizeof...(Alternatives));
    }
    template <class Value>
    requires std::is_class_v<Value>
    void fill(Value& value) { Value::each(value, *this); }
    std::mt19937_64 engine_;
};

/// A role that answers each event with a few actions and rows, from its own count and the event alone.
struct Echo {
    RoleId self = 0;
    std::int64_t count = 0;
};
void step(Echo& role, Time now, const Event& event, Actions& actions);

}  // namespace rubato::trace_test
