// The kernel of Mix: weighted sums of models.
#pragma once

#include <cstddef>
#include <span>

namespace rubato::learn {

/// to[i] = sum of factors[k] * terms[k][i], in that order, in double, rounded once; each term is as long as `to`, and
/// `to` may be the memory of one. No term: 0.
void mix(std::span<float> to, std::span<const float* const> terms, const double* factors);

}  // namespace rubato::learn
