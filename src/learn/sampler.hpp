// Which samples a batch holds: maps (worker, Batch) to sample ids by the sampling mode. The server deals all batches.
#pragma once

#include "core/scenario.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace rubato::learn {

/// A pure function of its arguments and `seed` (seeds.data), in every mode; may be called from several threads.
///
/// shared_epoch, strided: a batch is positions [first, first + count) of the epoch's permutation of all samples.
/// random: with replacement; sample j is keyed by (worker, first + j), so that the epoch and the order do not matter.
/// sharded: worker w owns a contiguous part of one permutation of the run; a batch is positions of the permutation of
/// that part that is keyed by (worker, epoch).
class Sampler {
public:
    /// ids: the training samples. lambda: number of workers.
    Sampler(Sampling mode, std::uint64_t seed, std::vector<std::int32_t> ids, int lambda);
    ~Sampler();

    std::int64_t samples() const { return static_cast<std::int64_t>(ids_.size()); }

    /// out: [batch.count]. Throws std::out_of_range where the batch leaves its sequence.
    void sample_ids(WorkerId worker, const Batch& batch, std::span<std::int32_t> out) const;

private:
    struct Entry;
    struct Slot;
    using Permutation = std::shared_ptr<const std::vector<std::int32_t>>;
    Permutation permutation(WorkerId worker, std::int32_t epoch) const;
    std::vector<std::int32_t> make(WorkerId worker, std::int32_t epoch) const;
    std::span<const std::int32_t> part(WorkerId worker) const;

    Sampling mode_;
    std::uint64_t seed_;
    std::vector<std::int32_t> ids_;  ///< sharded: permuted once for the run
    int lambda_;
    std::unique_ptr<Slot[]> slots_;  ///< sharded: one a worker; else one
};

}  // namespace rubato::learn
