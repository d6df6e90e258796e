#include "learn/late_update.hpp"

#include <algorithm>
#include <utility>

namespace rubato::learn {

LateUpdate::LateUpdate(BufferPool& pool, Optimizer& optimizer, const Kept& kept, std::size_t bytes)
    : pool_(pool), optimizer_(optimizer), kept_(kept), waiting_(most) {
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, pool.elements())) * sizeof(float);
    limit_ = std::clamp<std::size_t>(bytes / size, 1, most);
}

LateUpdate::Waiting& LateUpdate::next(std::int64_t first, std::int64_t count) {
    if (full() || (count_ > 0 && (first != first_ || count != n_))) run();
    first_ = first;
    n_ = count;
    Waiting& it = waiting_[count_++];
    it.gradients.clear();
    it.then.clear();
    return it;
}

void LateUpdate::defer(const Update& update, const Actions& actions, BufferId to) {
    Waiting& it = next(update.first, update.count);
    it.from = pool_.hold(update.weights);
    it.to = pool_.hold(to);
    it.job.version = update.from;
    it.job.summands.clear();
    it.job.steps.clear();
    for_each_part(update, actions, it.job.steps, [&](const Part& part, Version replaced) {
        ++gradients_;
        it.gradients.push_back(pool_.hold(part.gradient));
        it.then.emplace_back();
        if (looks_back(optimizer_, part, replaced)) pool_.hold(it.then.back() = kept_.at(part.read_version));
        it.job.summands.push_back({nullptr, static_cast<float>(part.factor), nullptr, part.worker});
    });
}

const BufferPool::Contents* LateUpdate::spent(const Waiting& it) const {
    if (it.job.steps.empty()) return nullptr;
    for (std::int32_t i = it.job.steps.front().part_count; i-- > 0;)
        if (const auto& gradient = it.gradients[static_cast<std::size_t>(i)]; pool_.sole(gradient)) return &gradient;
    return nullptr;
}

Pass LateUpdate::resolve(Waiting& it) {
    UpdateJob& job = it.job;
    job.from = part_of(std::span<const float>(pool_.data(it.from)), first_, n_);
    for (std::size_t i = 0; i < it.gradients.size(); ++i) {
        job.summands[i].gradient = pool_.data(it.gradients[i]).data() + first_;
        if (it.then[i].storage >= 0) job.summands[i].then = pool_.data(it.then[i]).data();
    }
    if (it.to != it.from)
        if (const auto* gradient = spent(it)) pool_.move(*gradient, it.to);
    job.to = part_of(pool_.data(it.to), first_, n_);
    return pass_of(job, steps_);
}

void LateUpdate::apply(std::span<const float> fetched) {
    constexpr std::size_t share = 4 * Optimizer::block;
    const auto offset = static_cast<std::size_t>(first_);
    const std::size_t size = n_ > 0 ? static_cast<std::size_t>(n_) : static_cast<std::size_t>(pool_.elements());
    if (parallel_ == nullptr || size <= share) return optimizer_.apply(passes_, fetched, offset);
    optimizer_.prepare();
    parallel_->run(static_cast<int>((size + share - 1) / share), [&](int job) {
        optimizer_.apply(passes_, fetched, offset, static_cast<std::size_t>(job) * share, share);
    });
}

void LateUpdate::run(BufferId next) {
    if (count_ == 0) return;
    const auto waiting = std::span(waiting_).first(std::exchange(count_, 0));
    gradients_ = 0;
    std::size_t steps = 0;
    for (const Waiting& it : waiting) steps += it.job.steps.size();
    steps_.clear();
    steps_.reserve(steps);
    passes_.clear();
    // In order: what comes of one has its memory before the next one points to it.
    for (Waiting& it : waiting) passes_.push_back(resolve(it));
    std::span<const float> fetched;
    if (next != no_buffer) fetched = part_of(pool_.data(next), first_, n_);
    apply(fetched);
    for (const Waiting& it : waiting) {
        for (const auto& gradient : it.gradients) pool_.drop(gradient);
        for (const auto& then : it.then) pool_.drop(then);
        pool_.drop(it.from);
        pool_.drop(it.to);
    }
}

void LateUpdate::run_for(BufferId weights) {
    if (count_ == 0) return;
    const auto waiting = std::span(waiting_).first(count_);
    const auto makes = [&](const Waiting& it) { return pool_.stands_for(weights, it.to); };
    if (full() || std::ranges::any_of(waiting, makes)) run(weights);
}

}  // namespace rubato::learn
