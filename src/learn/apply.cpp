#include "learn/apply.hpp"

#include "learn/mix.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace rubato::learn {

void run(const FoldJob& job, Optimizer& optimizer) {
    optimizer.fold_in(job.accumulator, job.summand, job.first, job.weights, job.version);
}

void run(const FoldJob& job) {
    const std::span<const float> gradient(job.summand.gradient, job.accumulator.size());
    job.first ? fold_first(job.accumulator, gradient, job.summand.factor)
              : fold(job.accumulator, gradient, job.summand.factor);
}

void run(const LocalStepJob& job) {
    if (!job.sum.empty()) fold(job.sum, job.gradient, job.weight);
    if (!job.to.empty()) descend_plainly(job.to, job.from, job.gradient, job.rate);
}

Pass pass_of(const UpdateJob& job, std::vector<StepInput>& steps) {
    assert(steps.capacity() - steps.size() >= job.steps.size());
    const std::size_t first = steps.size();
    for (const auto& step : job.steps) {
        const auto parts =
            std::span(job.summands)
                .subspan(static_cast<std::size_t>(step.first_part), static_cast<std::size_t>(step.part_count));
        const auto number = job.version + static_cast<Version>(steps.size() - first) + 1;
        steps.push_back({parts, step.learning_rate, step.momentum, number});
    }
    return {job.from, job.to, std::span(steps).subspan(first)};
}

void run(const UpdateJob& job, Optimizer& optimizer) {
    std::vector<StepInput> steps;
    steps.reserve(job.steps.size());
    const Pass pass = pass_of(job, steps);
    optimizer.apply({&pass, 1}, job.offset);
}

void run(const MixJob& job) {
    if (job.whole.data() != job.before.data()) std::ranges::copy(job.before, job.whole.begin());
    mix(job.to, std::span(job.terms).first(static_cast<std::size_t>(job.count)), job.factors);
}

void run(const PlaceJob& job) {
    std::ranges::copy(job.from, job.to.begin());
    std::ranges::copy(job.part, job.to.begin() + static_cast<std::ptrdiff_t>(job.first));
}

std::uint64_t weights_hash(std::span<const float> weights) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const float& weight : weights) {
        std::uint32_t word;
        std::memcpy(&word, &weight, sizeof word);
        for (int byte = 0; byte < 4; ++byte) hash = (hash ^ ((word >> (8 * byte)) & 0xffu)) * 0x100000001b3u;
    }
    return hash;
}

}  // namespace rubato::learn
