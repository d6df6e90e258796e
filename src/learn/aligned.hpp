// Memory for vectors of elements that begins with a line of a cache: none of them lies in two.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace rubato::learn {

inline constexpr std::align_val_t cache_line{64};

struct FreeAligned {
    void operator()(float* memory) const { ::operator delete(memory, cache_line); }
};
using AlignedFloats = std::unique_ptr<float[], FreeAligned>;

/// [count], unspecified.
inline AlignedFloats aligned_floats(std::size_t count) {
    return AlignedFloats(static_cast<float*>(::operator new(count * sizeof(float), cache_line)));
}

}  // namespace rubato::learn
