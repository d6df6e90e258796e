// Values made from their fields in the place where they stay.
#pragma once

#include <type_traits>
#include <utility>

namespace rubato {

/// variant.emplace<T>(fields...), also with compilers that make aggregates from braces alone (Clang before 16).
template <class T, class Variant, class... Fields>
T& emplace_in(Variant& variant, Fields&&... fields) {
    if constexpr (std::is_constructible_v<T, Fields...>)
        return variant.template emplace<T>(std::forward<Fields>(fields)...);
    else
        return variant.template emplace<T>(T{std::forward<Fields>(fields)...});
}

}  // namespace rubato
