#include "learn/late_update.hpp"

namespace rubato::learn {

void LateUpdate::defer(const Update& update, const Actions& actions, BufferId to) {
    run();
    waits_ = true;
    from_ = pool_.hold(update.weights);
    to_ = pool_.hold(to);
    gradients_.clear();
    then_.clear();
    job_.version = update.from;
    job_.offset = static_cast<std::size_t>(update.first);
    count_ = update.count;
    job_.summands.clear();
    job_.steps.clear();
    for_each_part(update, actions, job_.steps, [this](const Part& part, Version replaced) {
        gradients_.push_back(pool_.hold(part.gradient));
        then_.emplace_back();
        if (looks_back(optimizer_, part, replaced)) pool_.hold(then_.back() = kept_.at(part.read_version));
        job_.summands.push_back({nullptr, static_cast<float>(part.factor), nullptr, part.worker});
    });
}

const BufferPool::Contents* LateUpdate::spent() const {
    if (job_.steps.empty()) return nullptr;
    for (std::int32_t i = job_.steps.front().part_count; i-- > 0;)
        if (pool_.sole(gradients_[static_cast<std::size_t>(i)])) return &gradients_[static_cast<std::size_t>(i)];
    return nullptr;
}

void LateUpdate::run(BufferId next) {
    if (!waits_) return;
    waits_ = false;
    const auto first = static_cast<std::int64_t>(job_.offset);
    job_.from = part_of(std::span<const float>(pool_.data(from_)), first, count_);
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
        job_.summands[i].gradient = pool_.data(gradients_[i]).data() + first;
        if (then_[i].storage >= 0) job_.summands[i].then = pool_.data(then_[i]).data();
    }
    if (to_ != from_)
        if (const auto* gradient = spent()) pool_.move(*gradient, to_);
    job_.to = part_of(pool_.data(to_), first, count_);
    // Where that is the new version itself, it has its memory by now.
    job_.next = next == no_buffer ? std::span<const float>{} : pool_.data(next);
    learn::run(job_, optimizer_);
    for (const auto& gradient : gradients_) pool_.drop(gradient);
    for (const auto& then : then_) pool_.drop(then);
    pool_.drop(from_);
    pool_.drop(to_);
}

}  // namespace rubato::learn
