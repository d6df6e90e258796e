#include "learn/apply.hpp"

#include <cstring>

namespace rubato::learn {

UpdateJob resolve(const Update& update, const Actions& actions, BufferId to, BufferPool& pool) {
    UpdateJob job;
    job.from = pool.data(update.weights);
    job.to = pool.data(to);
    for (std::int32_t i = 0; i < update.step_count; ++i) {
        Step step = actions.steps[static_cast<std::size_t>(update.first_step + i)];
        const auto first = static_cast<std::int32_t>(job.summands.size());
        for (std::int32_t p = 0; p < step.part_count; ++p) {
            const auto& part = actions.parts[static_cast<std::size_t>(step.first_part + p)];
            job.summands.push_back({pool.data(part.gradient).data(), static_cast<float>(part.factor)});
        }
        step.first_part = first;
        job.steps.push_back(step);
    }
    return job;
}

void run(const FoldJob& job) {
    if (job.first)
        fold_first(job.accumulator, job.gradient, job.factor);
    else
        fold(job.accumulator, job.gradient, job.factor);
}

void run(const UpdateJob& job, Optimizer& optimizer) {
    std::vector<StepInput> steps;
    steps.reserve(job.steps.size());
    for (const auto& step : job.steps)
        steps.push_back(
            {std::span(job.summands)
                 .subspan(static_cast<std::size_t>(step.first_part), static_cast<std::size_t>(step.part_count)),
             step.learning_rate});
    optimizer.apply(job.from, job.to, steps);
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
