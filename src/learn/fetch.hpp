// A hint to the machine; changes no result.
#pragma once

#include <cstddef>

namespace rubato::learn {

/// Brings what will be read soon into the caches, while something else is computed.
inline void fetch(const void* from, std::size_t bytes) {
    constexpr std::size_t line = 64;
    for (std::size_t i = 0; i < bytes; i += line) __builtin_prefetch(static_cast<const char*>(from) + i);
}

}  // namespace rubato::learn
