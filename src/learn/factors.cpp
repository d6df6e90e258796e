#include "learn/factors.hpp"

#include "learn/descent.hpp"

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

/// Where the kernel puts a product that nobody keeps: what it reads is zero, and what it writes is a step along that
/// slope, with the bits of descend_sgd. Column by column, like Out.
class Descent {
public:
    struct LinearMapper {
        float* to;
        const float* from;
        float rate;

        void prefetch(int) const {}  // the processor sees what comes
        template <class Packet>
        EIGEN_ALWAYS_INLINE Packet loadPacket(Index) const {
            return Eigen::internal::pset1<Packet>(0);
        }
        template <class Packet>
        EIGEN_ALWAYS_INLINE void storePacket(Index i, const Packet& slope) const {
            using namespace Eigen::internal;
            pstoreu(to + i, psub(ploadu<Packet>(from + i), pmul(pset1<Packet>(rate), slope)));
        }
        void operator+=(float slope) const { *to = *from - rate * (0 + slope); }
    };

    Descent(float* to, const float* from, float rate, Index stride)
        : to_(to), from_(from), rate_(rate), stride_(stride) {}
    LinearMapper getLinearMapper(Index row, Index column) const {
        const Index at = row + column * stride_;
        return {to_ + at, from_ + at, rate_};
    }
    LinearMapper operator()(Index row, Index column) const { return getLinearMapper(row, column); }
    template <class Packet>
    Packet gatherPacket(Index, Index) const {
        return Eigen::internal::pset1<Packet>(0);
    }
    /// In a row.
    template <class Packet>
    void scatterPacket(Index row, Index column, const Packet& slopes) const {
        float each[Eigen::internal::unpacket_traits<Packet>::size];
        Eigen::internal::pstoreu(each, slopes);
        for (const float slope : each) (*this)(row, column++) += slope;
    }

private:
    float* to_;
    const float* from_;
    float rate_;
    Index stride_;
};
using DescentKernel = Eigen::internal::gebp_kernel<float, float, Index, Descent, Traits::mr, Traits::nr, false, false>;

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

void Factors::descend(float* to, const float* from, float rate, std::size_t first, std::size_t n) const {
    const std::size_t end = first + n;
    if (first < matrix()) {
        const std::size_t next = std::min(end, matrix());
        const auto row = static_cast<Index>(first) / inputs_;
        const auto rows = static_cast<Index>(next - first) / inputs_;
        assert(static_cast<std::size_t>(row * inputs_) == first && row % Traits::nr == 0);
        DescentKernel{}(Descent(to + first, from + first, rate, inputs_), input_.get(), slope_.get() + row * count_,
                        inputs_, count_, rows, 1.0f);
        first = next;
    }
    if (first < end)
        descend_sgd(to + first, from + first, rest_.data() + (first - matrix()), rate, NoDecay{}, end - first);
}

}  // namespace rubato::learn
