// An Update whose arithmetic waits until its result is needed or the next gradient is due.
//
// Between two gradients of a simulation there are a dozen events, which find the caches full of weights. Done late, the
// update stands beside the gradient that follows, so that the events stand together too. By then the roles have let go
// of the gradient that is applied, and the new version is written over it: memory that is in the caches, instead of
// memory that is not.
#pragma once

#include "learn/apply.hpp"

namespace rubato::learn {

/// At most one update waits. Whoever reads a version of the weights calls run() first.
class LateUpdate {
public:
    LateUpdate(BufferPool& pool, Optimizer& optimizer, const Kept& kept)
        : pool_(pool), optimizer_(optimizer), kept_(kept) {}

    /// Runs what waits, and lets this one wait. `to`: the new version, which may be the old one in place. What the
    /// update reads is held; its references may end at once.
    void defer(const Update& update, const Actions& actions, BufferId to);
    /// next: the weights of the gradient that follows at once, which are in no cache as a rule; fetched on the way.
    void run(BufferId next = no_buffer);

private:
    /// The gradient that the new version may be written over: of the first step, and nobody else's; null: none.
    const BufferPool::Contents* spent() const;

    BufferPool& pool_;
    Optimizer& optimizer_;
    const Kept& kept_;
    bool waits_ = false;
    BufferPool::Contents from_, to_;
    std::vector<BufferPool::Contents> gradients_;  ///< of job_.summands, which point nowhere while they wait
    std::vector<BufferPool::Contents> then_;       ///< weights that the rule looks at; storage -1: none
    UpdateJob job_;
    std::int64_t count_ = 0;  ///< elements that it is about; 0: all
};

}  // namespace rubato::learn
