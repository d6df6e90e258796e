// Actions on real buffers: the same code for every driver.
#pragma once

#include "core/action.hpp"
#include "learn/buffers.hpp"
#include "learn/kept.hpp"
#include "learn/optimizer.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace rubato::learn {

/// Where an action of the apply lane reads and writes; pointers stay valid while the action holds its buffers.
struct FoldJob {
    std::span<float> accumulator;
    Summand summand;
    bool first = false;
    std::span<const float> weights;  ///< the present ones, of `version`; empty where the rule looks at none
    Version version = 0;
};
struct UpdateJob {
    std::span<const float> from;
    std::span<float> to;
    std::vector<Summand> summands;
    std::vector<Step> steps;  ///< first_part counts from the first summand
    Version version = 0;      ///< of `from`
    std::size_t offset = 0;   ///< element that `from`, `to` and the gradients begin with
};

/// Elements of a whole that an action is about; count 0: all.
template <class T>
std::span<T> part_of(std::span<T> whole, std::int64_t first, std::int64_t count) {
    return count == 0 ? whole : whole.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

/// A part is copied into its place in `to`, which first becomes a copy of `from` where that is not empty.
struct PlaceJob {
    std::span<const float> from;
    std::span<float> to;
    std::span<const float> part;
    std::size_t first = 0;
};

/// Calls `f(part, version)` with each part of an Update, in order, and the version that its step replaces; steps: its
/// steps, first_part counting from the first of them.
template <class F>
void for_each_part(const Update& update, const Actions& actions, std::vector<Step>& steps, F&& f) {
    std::int32_t parts = 0;
    for (std::int32_t i = 0; i < update.step_count; ++i) {
        const Step& step = actions.steps[static_cast<std::size_t>(update.first_step + i)];
        for (std::int32_t p = 0; p < step.part_count; ++p)
            f(actions.parts[static_cast<std::size_t>(step.first_part + p)], update.from + i);
        steps.push_back(step);
        steps.back().first_part = parts;
        parts += step.part_count;
    }
}

/// Whether the rule looks at the weights that a part was computed on, which are kept then.
inline bool looks_back(const Optimizer& optimizer, const Part& part, Version replaced) {
    return optimizer.looks_at_weights() && part.worker >= 0 && part.read_version < replaced;
}

/// What buffers of an action stand for, in a driver whose handles are the engine's.
struct OwnHandles {
    BufferId operator()(BufferId buffer) const { return buffer; }
};

/// Resolves the parts of an Update; `to` is the buffer of the new version (the old one where `in place` is allowed).
/// handle: the pool's handle of a buffer that the action names.
template <class Handle = OwnHandles>
UpdateJob resolve(const Update& update, const Actions& actions, std::span<const float> from, std::span<float> to,
                  BufferPool& pool, Kept& kept, const Optimizer& optimizer, const Handle& handle = {}) {
    UpdateJob job;
    job.from = part_of(from, update.first, update.count);
    job.to = part_of(to, update.first, update.count);
    job.version = update.from;
    job.offset = static_cast<std::size_t>(update.first);
    for_each_part(update, actions, job.steps, [&](const Part& part, Version replaced) {
        const float* then = looks_back(optimizer, part, replaced) ? kept.weights(part.read_version) : nullptr;
        job.summands.push_back({pool.data(handle(part.gradient)).data() + update.first, static_cast<float>(part.factor),
                                then, part.worker});
    });
    return job;
}

/// The same for a Fold into `accumulator`, a handle of the pool.
template <class Handle = OwnHandles>
FoldJob resolve(const Fold& fold, BufferId accumulator, BufferPool& pool, Kept& kept, const Handle& handle = {}) {
    FoldJob job;
    job.accumulator = part_of(pool.data(accumulator), fold.first, fold.count);
    job.summand = {pool.data(handle(fold.gradient)).data() + fold.first, static_cast<float>(fold.factor)};
    job.first = fold.accumulator == no_buffer;
    if (fold.weights == no_buffer) return job;
    job.weights = pool.data(handle(fold.weights));
    job.version = fold.version;
    job.summand.worker = fold.worker;
    if (fold.read_version < fold.version) job.summand.then = kept.weights(fold.read_version);
    return job;
}

/// A worker's own step: sum += weight * gradient, then to = from - rate * gradient; either pair may be empty.
struct LocalStepJob {
    std::span<const float> gradient;
    std::span<float> sum;
    float weight = 1;
    std::span<const float> from;
    std::span<float> to;  ///< may be the memory of `from`
    float rate = 0;
};

/// The same for a LocalStep whose weights go to `local`, a handle of the pool; no_buffer: there are none.
template <class Handle = OwnHandles>
LocalStepJob resolve(const LocalStep& step, BufferId local, BufferPool& pool, const Handle& handle = {}) {
    LocalStepJob job;
    job.gradient = pool.data(handle(step.gradient));
    if (step.sum != no_buffer) job.sum = pool.data(handle(step.sum));
    job.weight = static_cast<float>(step.weight);
    if (local == no_buffer) return job;
    job.to = pool.data(local);
    job.from = step.local != no_buffer ? job.to : pool.data(handle(step.weights));
    job.rate = static_cast<float>(step.learning_rate);
    return job;
}

/// The same for a Place into `whole`, a handle of the pool.
template <class Handle = OwnHandles>
PlaceJob resolve(const Place& place, BufferId whole, BufferPool& pool, const Handle& handle = {}) {
    PlaceJob job;
    job.to = pool.data(whole);
    if (place.whole == no_buffer) job.from = pool.data(handle(place.weights));
    if (place.part.buffer == no_buffer) return job;
    job.part =
        part_of(std::span<const float>(pool.data(handle(place.part.buffer))), place.part.first, place.part.count);
    job.first = static_cast<std::size_t>(place.part.first);
    return job;
}

/// to = sum of factor * term, of elements that `to` and all terms have; may be the memory of a term.
struct MixJob {
    std::span<float> to;
    int count = 0;
    const float* terms[Mix::most] = {};
    double factors[Mix::most] = {};
    /// Where `to` is new memory for a part of a whole: that whole, and where it goes; first copied.
    std::span<const float> before;
    std::span<float> whole;
};

/// The same for a Mix into `out`, a handle of the pool.
template <class Handle = OwnHandles>
MixJob resolve(const Mix& mix, BufferId out, BufferPool& pool, const Handle& handle = {}) {
    MixJob job;
    job.to = part_of(pool.data(out), mix.first, mix.count);
    job.count = mix.term_count;
    for (int i = 0; i < job.count; ++i) {
        job.terms[i] = pool.data(handle(mix.terms[i].buffer)).data() + mix.first;
        job.factors[i] = mix.terms[i].factor;
    }
    if (mix.out == no_buffer || mix.count == 0) return job;
    job.before = pool.data(handle(mix.out));
    job.whole = pool.data(out);
    return job;
}

void run(const MixJob& job);
void run(const PlaceJob& job);
void run(const FoldJob& job, Optimizer& optimizer);
/// The same where no rule looks at weights.
void run(const FoldJob& job);
void run(const LocalStepJob& job);
void run(const UpdateJob& job, Optimizer& optimizer);
/// Its steps are added to `steps`, which the result points into: have room for them reserved.
Pass pass_of(const UpdateJob& job, std::vector<StepInput>& steps);

/// FNV-1a over the bytes of the weights: equal runs have equal hashes.
std::uint64_t weights_hash(std::span<const float> weights);

}  // namespace rubato::learn
