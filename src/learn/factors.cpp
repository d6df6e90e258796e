#include "learn/factors.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace rubato::learn {
namespace {

// A product of Eigen's arranges both factors anew each time. Here they are arranged once for all pieces, so it is the
// kernel inside that is called, as Eigen's own contraction of tensors does. It knows columns: what it makes is the
// transpose, input^T [inputs][count] * slope [count][outputs], in columns.
using Eigen::Index;
using Traits = Eigen::internal::gebp_traits<float, float>;
using Columns = Eigen::internal::const_blas_data_mapper<float, Index, Eigen::ColMajor>;
using Rows = Eigen::internal::const_blas_data_mapper<float, Index, Eigen::RowMajor>;
using Out = Eigen::internal::blas_data_mapper<float, Index, Eigen::ColMajor>;
using Kernel = Eigen::internal::gebp_kernel<float, float, Index, Out, Traits::mr, Traits::nr, false, false>;
using ArrangeInput = Eigen::internal::gemm_pack_lhs<float, Index, Columns, Traits::mr, Traits::LhsProgress,
                                                    Traits::LhsPacket4Packing, Eigen::ColMajor>;
using ArrangeSlope = Eigen::internal::gemm_pack_rhs<float, Index, Rows, Traits::nr, Eigen::RowMajor>;

/// Elements of a piece: with those of the weights that a step reads and makes they stay in the nearest cache.
constexpr int piece_size = 4096;

void have(AlignedFloats& memory, std::size_t& size, int rows, int columns) {
    const auto needed = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    if (needed <= size) return;
    memory = aligned_floats(needed);
    size = needed;
}

}  // namespace

void Factors::set(const float* slope, const float* input, int count, int outputs, int inputs) {
    assert(count <= most_samples);
    count_ = count;
    outputs_ = outputs;
    inputs_ = inputs;
    constexpr int together = Traits::nr;  // rows, by the kernel
    rows_ = together * std::max(1, piece_size / (together * inputs));
    have(input_, input_size_, count, inputs);
    have(slope_, slope_size_, count, outputs);
    ArrangeInput{}(input_.get(), Columns(input, inputs), count, inputs);
    ArrangeSlope{}(slope_.get(), Rows(slope, outputs), count, outputs);
}

std::size_t Factors::end_of_piece(std::size_t first) const {
    if (first >= matrix()) return std::min(size(), first + piece_size);
    return std::min(matrix(), (first / piece() + 1) * piece());
}

void Factors::multiply_out(std::size_t first, std::size_t n, float* out) const {
    const std::size_t end = first + n;
    while (first < end) {
        const std::size_t next = std::min(end, end_of_piece(first));
        if (first >= matrix()) {
            std::memcpy(out, rest_.data() + (first - matrix()), (next - first) * sizeof(float));
        } else {
            const auto row = static_cast<Index>(first) / inputs_;
            const auto rows = static_cast<Index>(next - first) / inputs_;
            assert(static_cast<std::size_t>(row * inputs_) == first && row % Traits::nr == 0);
            std::memset(out, 0, (next - first) * sizeof(float));
            Kernel{}(Out(out, inputs_), input_.get(), slope_.get() + row * count_, inputs_, count_, rows, 1.0f);
        }
        out += next - first;
        first = next;
    }
}

}  // namespace rubato::learn
