// Updates whose arithmetic waits until a version of the weights that they make is needed.
//
// Between two gradients of a simulation there are a dozen events, which find the caches full of weights. Done late, an
// update stands beside the gradient on the new weights, so that the events stand together too. It is run by the thread
// that computes this gradient, whose caches have the weights then. By then the roles have let go of what is read, and
// the new version is written over it where nobody else reads it.
//
// A thread that is alone runs all that wait: of a version of the weights, each block stays in the nearest cache for the
// next one. An update that multiplies a gradient out (factors.hpp) runs by itself, no sooner than its version is
// needed: what takes time is the product then, not the way of the weights through the caches.
#pragma once

#include "learn/apply.hpp"
#include "learn/condition.hpp"

#include <atomic>
#include <mutex>
#include <vector>

namespace rubato::learn {

/// A queue of Updates, run in order. All members are for its owner, the thread that the pool of buffers belongs to,
/// but run_to(), which is for any. Whoever reads weights sees to it that they are there: by run(), or by run_to() with
/// the number that needed_for() told.
class LateUpdate {
public:
    /// As many wait at most, and none behind so many gradients: with more, what they read leaves the caches;
    static constexpr std::size_t most = 16;
    /// nor behind so many bytes of gradients.
    static constexpr std::size_t most_bytes = std::size_t{64} << 20;

    LateUpdate(BufferPool& pool, Optimizer& optimizer, const Kept& kept, std::size_t bytes = most_bytes);

    /// So many threads will call run_to(), instead of the owner alone; before the first defer().
    void share_among(int threads) { threads_ = threads; }
    /// Lets one more wait. `to`: a handle of its own for the new version. What is read is held; its references may end
    /// at once.
    void defer(const Update& update, const Actions& actions, BufferId to);
    /// Runs all that wait.
    void run();
    /// The number of the update to run to before these weights are read; 0 where they are there. Settles in which
    /// memory they will be: data() of the pool is to be asked afterwards.
    std::int64_t needed_for(BufferId weights);
    /// Returns when updates up to this number, as needed_for() told it, have run. Threads that want one at the same
    /// time share the work.
    void run_to(std::int64_t number);

private:
    struct Waiting {
        BufferPool::Contents from, to;
        std::vector<BufferPool::Contents> gradients, then;  ///< by summand; storage -1: no rule looks at those weights
        UpdateJob job;
        std::int64_t count = 0;  ///< elements that it is about; 0: all
        std::vector<StepInput> steps;
        Pass pass;                ///< once it may be run
        bool multiplies = false;  ///< and whether it multiplies a gradient out,
        std::size_t share = 0;    ///< elements that a thread takes at a time
    };

    Waiting& at(std::int64_t number) { return waiting_[static_cast<std::size_t>(number) % most]; }
    /// What a new version may be written over, where nobody else holds it: a gradient of the first step; where it is
    /// multiplied out, the old version. Null: none.
    const BufferPool::Contents* spent(const Waiting& it) const;
    bool alone() const { return threads_ == 1; }
    /// Whether it multiplies a gradient out.
    bool multiplies(const Waiting& it) const;
    std::size_t share(const Waiting& it) const;
    void resolve(Waiting& it);
    /// Updates up to this one may be run.
    void allow(std::int64_t number);
    /// Lets go of what those that have run held.
    void let_go();
    /// With the next ones, up to this number.
    void begin(std::int64_t number);
    bool has_share() const { return !passes_.empty() && next_ < passes_.front().to.size(); }
    void take_share(std::unique_lock<std::mutex>& lock);

    BufferPool& pool_;
    Optimizer& optimizer_;
    const Kept& kept_;
    std::size_t limit_;          ///< of gradients
    std::size_t gradients_ = 0;  ///< that are held
    // Numbers of updates, from 1 on: the last one that came, that may be run, whose holds have ended. The owner's.
    std::int64_t deferred_ = 0, allowed_ = 0, let_go_ = 0;
    std::vector<Waiting> waiting_;  ///< by number, in a ring: the memory of earlier ones serves those that come

    int threads_ = 1;                     ///< that call run_to()
    std::atomic<std::int64_t> done_ = 0;  ///< the last one that has run; changes with the mutex
    std::mutex mutex_;
    Condition ran_;
    std::vector<Pass> passes_;     ///< under way; empty: none
    std::int64_t last_ = 0;        ///< number of the last of them
    std::size_t offset_ = 0;       ///< first element of what they are about
    std::size_t next_ = 0;         ///< the next share begins so far behind it
    std::size_t share_ = 0;        ///< elements that a thread takes of them at a time
    std::size_t shares_left_ = 0;  ///< that are not done
};

}  // namespace rubato::learn
