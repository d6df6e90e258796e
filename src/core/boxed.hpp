// A value that lives on the heap, for large alternatives of small variants.
#pragma once

#include <memory>
#include <utility>

namespace rubato {

/// Copies, compares and moves as a T does; a moved-from one may only be assigned to or destroyed.
template <class T>
class Boxed {
public:
    explicit Boxed(T value) : value_(std::make_unique<T>(std::move(value))) {}
    Boxed(const Boxed& other) : value_(std::make_unique<T>(*other.value_)) {}
    Boxed(Boxed&&) noexcept = default;
    Boxed& operator=(const Boxed& other) {
        value_ = std::make_unique<T>(*other.value_);
        return *this;
    }
    Boxed& operator=(Boxed&&) noexcept = default;
    ~Boxed() = default;

    T& operator*() { return *value_; }
    const T& operator*() const { return *value_; }
    bool operator==(const Boxed& other) const { return *value_ == *other.value_; }

private:
    std::unique_ptr<T> value_;
};

}  // namespace rubato
