// Updates whose arithmetic waits until a version that they make is needed.
//
// Between two gradients of a simulation there are a dozen events, which find the caches full of weights. Done late, an
// update stands beside the gradient that follows, so that the events stand together too. By then the roles have let go
// of the gradient that is applied, and the new version is written over it. And the version that a worker was given is
// needed only when its next gradient is, after those of the others: the updates of all of them are then one go over the
// weights, each part of which stays in the nearest cache from one version to the next.
#pragma once

#include "learn/apply.hpp"

#include <vector>

namespace rubato::learn {

/// A chain of updates, each of what the one before it makes. Whoever reads a version of the weights calls run() first,
/// or run_for().
class LateUpdate {
public:
    /// As many wait at most: with more, what they read leaves the caches.
    static constexpr std::size_t most = 8;

    LateUpdate(BufferPool& pool, Optimizer& optimizer, const Kept& kept)
        : pool_(pool), optimizer_(optimizer), kept_(kept), jobs_(most), held_(most) {}

    /// Lets one more wait; those that wait run where it does not follow from them. `to`: the new version, which may be
    /// the old one in place. What the update reads is held; its references may end at once.
    void defer(const Update& update, const Actions& actions, BufferId to);
    /// Runs what waits. next: what will be read afterwards, which is in no cache as a rule; fetched on the way.
    void run(BufferId next = no_buffer);
    /// Before a gradient on these weights is begun: runs what waits where it makes them, or where no more may wait.
    void run_for(BufferId weights);

private:
    /// What a waiting update's job will point to.
    struct Held {
        BufferPool::Contents from, to;
        std::vector<BufferPool::Contents> gradients;  ///< of its summands
        std::vector<BufferPool::Contents> then;       ///< weights that the rule looks at; storage -1: none
        std::int64_t count = 0;                       ///< elements that it is about; 0: all
    };

    /// The gradient that the new version may be written over: of the first step, and nobody else's; null: none.
    const BufferPool::Contents* spent(const UpdateJob& job, const Held& held) const;
    void resolve(UpdateJob& job, const Held& held);

    BufferPool& pool_;
    Optimizer& optimizer_;
    const Kept& kept_;
    std::size_t waiting_ = 0;  ///< of these arrays, which keep the memory of the rest:
    std::vector<UpdateJob> jobs_;
    std::vector<Held> held_;
};

}  // namespace rubato::learn
