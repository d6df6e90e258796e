// Who computes on what: the dealer hands out batches and keeps the epoch's books.
#pragma once

#include "core/run_state.hpp"
#include "core/scenario.hpp"

#include <vector>

namespace rubato {

/// Size of the part of worker `worker` where N samples are split over lambda workers: N / lambda, the first N mod
/// lambda workers one more.
constexpr std::int64_t shard_samples(std::int64_t samples, int lambda, WorkerId worker) {
    return samples / lambda + (worker < samples % lambda ? 1 : 0);
}

/// Gradients of so many samples at most that are made of a batch; the last one may have fewer.
constexpr std::int32_t gradients_in(const Batch& batch, int samples_of_one) {
    return batch.count <= samples_of_one ? (batch.count > 0 ? 1 : 0) : (batch.count - 1) / samples_of_one + 1;
}

struct DealerConfig {
    Sampling sampling = Sampling::shared_epoch;
    std::int64_t samples = 1;  ///< N, of one epoch
    int batch_size = 1;        ///< of what is dealt at once, which may be for several gradients
    int lambda = 1;
    bool barrier = false;     ///< batches are dealt in rounds, and a round never spans two epochs
    std::int64_t limit = -1;  ///< samples to hand out in all; -1: no limit
    bool own = false;         ///< workers draw their batches themselves, as own_batch does: neither rounds nor limit
    bool operator==(const DealerConfig&) const = default;
};

/// The k-th batch of a worker that draws its own, k = 0, 1, ...: a function of its arguments alone, with the sampling
/// modes of Dealer below but shared_epoch, which is not one. Empty where the worker has no part of the data.
Batch own_batch(const DealerConfig& config, WorkerId worker, std::int64_t k);

/// Lives with the version owner. Never hands out more than `limit` samples: the last batch is cut.
///
/// shared_epoch: the next slice of the epoch's permutation, whoever asks; the last slice of an epoch is cut.
/// strided: slice b of the epoch goes to worker b mod lambda; a worker's k-th batch is the same in every run.
/// random: batch_size samples, drawn by (worker, position); only the limit (and, in rounds, the epoch) cuts them.
/// sharded: the worker's own part, in its own epochs.
class Dealer {
public:
    Dealer() = default;
    explicit Dealer(const DealerConfig& config);

    /// The next batch of a worker; an empty one where the limit is reached, where the worker has no part of the data,
    /// or, in rounds, where the epoch has nothing left for it.
    Batch deal(WorkerId worker);
    /// Whether batches are dealt in rounds from now on.
    void deal_in_rounds(bool rounds) { config_.barrier = rounds; }
    /// Rounds only: goes on to the next epoch if the present one is dealt out. Call before dealing a round.
    void open_round();
    /// A batch whose gradient was refused or given up: its samples are still to be dealt. shared_epoch deals the very
    /// batch again, before any other; elsewhere the worker moves on, since its k-th batch is what it is.
    void give_back(const Batch& batch);
    /// Nothing will be dealt unless something is given back.
    bool exhausted() const { return config_.limit >= 0 && state_.dealt >= config_.limit; }
    std::int64_t dealt() const { return state_.dealt; }
    DealerState state() const;
    /// Goes on from there: the state of a dealer with the same settings, except for the limit.
    void restore(const DealerState& state) {
        state_ = state;
        returned_head_ = 0;
    }
    bool operator==(const Dealer&) const = default;

private:
    Batch next_of(WorkerId worker);
    Batch from_shared();
    Batch from_returned();
    Batch from_strided(WorkerId worker);
    Batch from_random(WorkerId worker);
    Batch from_shard(WorkerId worker);
    std::int64_t room() const;

    DealerConfig config_;
    DealerState state_;
    std::size_t returned_head_ = 0;  ///< of state_.returned so many are dealt already
};

}  // namespace rubato
