// The actions of the apply lane on real buffers: the same code for every driver.
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
    std::vector<Step> steps;      ///< first_part counts from the first summand
    std::span<const float> next;  ///< see Optimizer::apply
    Version version = 0;          ///< of `from`
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
    job.from = from;
    job.to = to;
    job.version = update.from;
    for_each_part(update, actions, job.steps, [&](const Part& part, Version replaced) {
        const float* then = looks_back(optimizer, part, replaced) ? kept.weights(part.read_version) : nullptr;
        job.summands.push_back(
            {pool.data(handle(part.gradient)).data(), static_cast<float>(part.factor), then, part.worker});
    });
    return job;
}

/// The same for a Fold into `accumulator`, a handle of the pool.
template <class Handle = OwnHandles>
FoldJob resolve(const Fold& fold, BufferId accumulator, BufferPool& pool, Kept& kept, const Handle& handle = {}) {
    FoldJob job;
    job.accumulator = pool.data(accumulator);
    job.summand = {pool.data(handle(fold.gradient)).data(), static_cast<float>(fold.factor)};
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

void run(const FoldJob& job, Optimizer& optimizer);
/// The same where no rule looks at weights.
void run(const FoldJob& job);
void run(const LocalStepJob& job);
void run(const UpdateJob& job, Optimizer& optimizer);

/// FNV-1a over the bytes of the weights: equal runs have equal hashes.
std::uint64_t weights_hash(std::span<const float> weights);

}  // namespace rubato::learn
