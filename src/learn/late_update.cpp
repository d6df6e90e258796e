#include "learn/late_update.hpp"

#include <algorithm>
#include <utility>

namespace rubato::learn {

void LateUpdate::defer(const Update& update, const Actions& actions, BufferId to) {
    const auto from = pool_.hold(update.weights);
    const auto offset = static_cast<std::size_t>(update.first);
    if (waiting_ > 0) {
        const Held& last = held_[waiting_ - 1];
        const bool follows = last.to == from && jobs_.front().offset == offset && last.count == update.count;
        if (!follows || waiting_ == most) run();
    }
    UpdateJob& job = jobs_[waiting_];
    Held& held = held_[waiting_++];
    held.from = from;
    held.to = pool_.hold(to);
    held.gradients.clear();
    held.then.clear();
    held.count = update.count;
    job.version = update.from;
    job.offset = offset;
    job.summands.clear();
    job.steps.clear();
    for_each_part(update, actions, job.steps, [&](const Part& part, Version replaced) {
        held.gradients.push_back(pool_.hold(part.gradient));
        held.then.emplace_back();
        if (looks_back(optimizer_, part, replaced)) pool_.hold(held.then.back() = kept_.at(part.read_version));
        job.summands.push_back({nullptr, static_cast<float>(part.factor), nullptr, part.worker});
    });
}

const BufferPool::Contents* LateUpdate::spent(const UpdateJob& job, const Held& held) const {
    if (job.steps.empty()) return nullptr;
    for (std::int32_t i = job.steps.front().part_count; i-- > 0;)
        if (pool_.sole(held.gradients[static_cast<std::size_t>(i)]))
            return &held.gradients[static_cast<std::size_t>(i)];
    return nullptr;
}

void LateUpdate::resolve(UpdateJob& job, const Held& held) {
    const auto first = static_cast<std::int64_t>(job.offset);
    job.from = part_of(std::span<const float>(pool_.data(held.from)), first, held.count);
    for (std::size_t i = 0; i < held.gradients.size(); ++i) {
        job.summands[i].gradient = pool_.data(held.gradients[i]).data() + first;
        if (held.then[i].storage >= 0) job.summands[i].then = pool_.data(held.then[i]).data();
    }
    if (held.to != held.from)
        if (const auto* gradient = spent(job, held)) pool_.move(*gradient, held.to);
    job.to = part_of(pool_.data(held.to), first, held.count);
}

void LateUpdate::run(BufferId next) {
    if (waiting_ == 0) return;
    const auto held = std::span(held_).first(std::exchange(waiting_, 0));
    // In order: each has its memory before the next one points to it.
    for (std::size_t i = 0; i < held.size(); ++i) resolve(jobs_[i], held[i]);
    learn::run(std::span(jobs_).first(held.size()), optimizer_,
               next == no_buffer ? std::span<const float>{} : pool_.data(next));
    for (const Held& it : held) {
        for (const auto& gradient : it.gradients) pool_.drop(gradient);
        for (const auto& then : it.then) pool_.drop(then);
        pool_.drop(it.from);
        pool_.drop(it.to);
    }
}

void LateUpdate::run_for(BufferId weights) {
    if (waiting_ == 0) return;
    const auto held = std::span(held_).first(waiting_);
    if (waiting_ == most || std::ranges::any_of(held, [&](const Held& it) { return pool_.stands_for(weights, it.to); }))
        run(weights);
}

}  // namespace rubato::learn
