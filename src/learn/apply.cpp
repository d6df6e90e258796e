#include "learn/apply.hpp"

#include <cstring>

namespace rubato::learn {

UpdateJob resolve(const Update& update, const Actions& actions, BufferId to, BufferPool& pool) {
    UpdateJob job;
    job.from = pool.data(update.weights);
    job.to = pool.data(to);
    for_each_part(update, actions, job.steps, [&](const Part& part) {
        job.summands.push_back({pool.data(part.gradient).data(), static_cast<float>(part.factor)});
    });
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
    optimizer.apply(job.from, job.to, steps, job.next);
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
