// The actions of the apply lane on real buffers: the same code for every driver.
#pragma once

#include "core/action.hpp"
#include "learn/buffers.hpp"
#include "learn/optimizer.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace rubato::learn {

/// Where an action of the apply lane reads and writes; pointers stay valid while the action holds its buffers.
struct FoldJob {
    std::span<float> accumulator;
    std::span<const float> gradient;
    float factor = 1;
    bool first = false;
};
struct UpdateJob {
    std::span<const float> from;
    std::span<float> to;
    std::vector<Summand> summands;
    std::vector<Step> steps;      ///< first_part counts from the first summand
    std::span<const float> next;  ///< see Optimizer::apply
};

/// Calls `f` with each part of an Update, in order; steps: its steps, first_part counting from the first of them.
template <class F>
void for_each_part(const Update& update, const Actions& actions, std::vector<Step>& steps, F&& f) {
    std::int32_t parts = 0;
    for (std::int32_t i = 0; i < update.step_count; ++i) {
        const Step& step = actions.steps[static_cast<std::size_t>(update.first_step + i)];
        for (std::int32_t p = 0; p < step.part_count; ++p)
            f(actions.parts[static_cast<std::size_t>(step.first_part + p)]);
        steps.push_back(step);
        steps.back().first_part = parts;
        parts += step.part_count;
    }
}

/// Resolves the parts of an Update; `to` is the buffer of the new version (the old one where `in place` is allowed).
UpdateJob resolve(const Update& update, const Actions& actions, BufferId to, BufferPool& pool);

void run(const FoldJob& job);
void run(const UpdateJob& job, Optimizer& optimizer);

/// FNV-1a over the bytes of the weights: equal runs have equal hashes.
std::uint64_t weights_hash(std::span<const float> weights);

}  // namespace rubato::learn
