// Updates whose arithmetic waits until a version of the weights that they make is needed.
//
// Between two gradients of a simulation there are a dozen events, which find the caches full of weights. Done late, an
// update stands beside the gradient that follows, so that the events stand together too. By then the roles have let go
// of the gradient that is applied, and the new version is written over it. And the version that a worker was given is
// needed only when its next gradient is, after those of the others: the updates for all of them are then one go over
// the weights, each block of which stays in the nearest cache from one version to the next.
#pragma once

#include "learn/apply.hpp"
#include "learn/task.hpp"

#include <vector>

namespace rubato::learn {

/// A queue of Updates on the same elements. Whoever reads weights calls run() first, or run_for().
class LateUpdate {
public:
    /// As many wait at most, and none behind so many gradients: with more, what they read leaves the caches;
    static constexpr std::size_t most = 16;
    /// nor behind so many bytes of gradients.
    static constexpr std::size_t most_bytes = std::size_t{64} << 20;

    LateUpdate(BufferPool& pool, Optimizer& optimizer, const Kept& kept, std::size_t bytes = most_bytes);

    /// From now on what waits is run by several threads, where it is about elements enough.
    void spread(Parallel& parallel) { parallel_ = &parallel; }
    /// Lets one more wait. `to`: the new version, in place or not. What is read is held; its references may end at
    /// once.
    void defer(const Update& update, const Actions& actions, BufferId to);
    /// Runs what waits. next: what will be read afterwards, which is in no cache as a rule; fetched on the way.
    void run(BufferId next = no_buffer);
    /// Before a gradient on these weights is begun: runs what waits where they come of it, or where no more may wait.
    void run_for(BufferId weights);

private:
    struct Waiting {
        BufferPool::Contents from, to;
        std::vector<BufferPool::Contents> gradients, then;  ///< by summand; storage -1: no rule looks at those weights
        UpdateJob job;
    };

    bool full() const { return count_ == most || gradients_ >= limit_; }
    Waiting& next(std::int64_t first, std::int64_t count);
    /// The gradient that a new version may be written over: of the first step, and nobody else's; null: none.
    const BufferPool::Contents* spent(const Waiting& it) const;
    Pass resolve(Waiting& it);
    void apply(std::span<const float> fetched);

    BufferPool& pool_;
    Optimizer& optimizer_;
    const Kept& kept_;
    Parallel* parallel_ = nullptr;
    std::size_t limit_;               ///< of gradients
    std::size_t gradients_ = 0;       ///< of those that wait
    std::int64_t first_ = 0, n_ = 0;  ///< elements that all are about; n_ 0: all
    std::size_t count_ = 0;           ///< that wait; the others are there for their memory
    std::vector<Waiting> waiting_;
    std::vector<StepInput> steps_;  ///< while they run
    std::vector<Pass> passes_;
};

}  // namespace rubato::learn
