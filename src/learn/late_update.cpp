#include "learn/late_update.hpp"

#include <algorithm>

namespace rubato::learn {

LateUpdate::LateUpdate(BufferPool& pool, Optimizer& optimizer, const Kept& kept, std::size_t bytes)
    : pool_(pool), optimizer_(optimizer), kept_(kept), waiting_(most) {
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, pool.elements())) * sizeof(float);
    limit_ = std::clamp<std::size_t>(bytes / size, 1, most);
}

void LateUpdate::defer(const Update& update, const Actions& actions, BufferId to) {
    optimizer_.prepare();  // by the owner: what it sums up meanwhile has a look at the state, too
    let_go();
    if (deferred_ - let_go_ == static_cast<std::int64_t>(most) || gradients_ >= limit_) run();
    Waiting& it = at(++deferred_);
    it.gradients.clear();
    it.then.clear();
    it.from = pool_.hold(update.weights);
    it.to = pool_.hold(to);
    it.count = update.count;
    it.job.offset = static_cast<std::size_t>(update.first);
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
    if (it.multiplies) return pool_.sole(it.from) ? &it.from : nullptr;
    for (std::int32_t i = it.job.steps.front().part_count; i-- > 0;)
        if (const auto& gradient = it.gradients[static_cast<std::size_t>(i)]; pool_.sole(gradient)) return &gradient;
    return nullptr;
}

bool LateUpdate::multiplies(const Waiting& it) const {
    return it.count == 0 && std::ranges::any_of(it.gradients, [&](const auto& gradient) {
               return gradient.storage >= 0 && pool_.factors(gradient) != nullptr;
           });
}

// What is multiplied out takes long: whoever comes meanwhile is to find something left.
std::size_t LateUpdate::share(const Waiting& it) const {
    const std::size_t size = it.job.to.size();
    if (alone()) return size;
    const auto threads = static_cast<std::size_t>(threads_);
    const std::size_t shares = (it.multiplies ? 4 : 2) * threads;
    const std::size_t least = it.multiplies ? 1 : 4 * Optimizer::block;
    const std::size_t share = std::max(least, (size + shares - 1) / shares);
    const std::size_t piece = Optimizer::piece(it.pass);
    return (share + piece - 1) / piece * piece;
}

void LateUpdate::resolve(Waiting& it) {
    UpdateJob& job = it.job;
    it.multiplies = multiplies(it);
    const auto part = [&](auto whole) { return part_of(whole, static_cast<std::int64_t>(job.offset), it.count); };
    job.from = part(std::span<const float>(pool_.data(it.from)));
    for (std::size_t i = 0; i < it.gradients.size(); ++i) {
        Summand& summand = job.summands[i];
        summand.factors = it.multiplies ? pool_.factors(it.gradients[i]) : nullptr;
        if (summand.factors == nullptr) summand.gradient = pool_.data(it.gradients[i]).data() + job.offset;
        if (it.then[i].storage >= 0) job.summands[i].then = pool_.data(it.then[i]).data();
    }
    if (const auto* memory = spent(it)) pool_.move(*memory, it.to);
    job.to = part(pool_.data(it.to));
    it.steps.clear();
    it.steps.reserve(job.steps.size());
    it.pass = pass_of(job, it.steps);
    it.share = share(it);
}

// In order: what comes of one has its memory before the next one points to it.
void LateUpdate::allow(std::int64_t number) {
    while (allowed_ < number) resolve(at(++allowed_));
}

void LateUpdate::let_go() {
    for (const std::int64_t done = done_.load(std::memory_order_acquire); let_go_ < done;) {
        const Waiting& it = at(++let_go_);
        gradients_ -= it.gradients.size();
        for (const auto& gradient : it.gradients) pool_.drop(gradient);
        for (const auto& then : it.then) pool_.drop(then);
        pool_.drop(it.from);
        pool_.drop(it.to);
    }
}

void LateUpdate::run() {
    allow(deferred_);
    run_to(deferred_);
    let_go();
}

std::int64_t LateUpdate::needed_for(BufferId weights) {
    let_go();
    for (std::int64_t number = deferred_; number > let_go_; --number) {
        if (!pool_.stands_for(weights, at(number).to)) continue;
        if (alone() && !multiplies(at(number))) number = deferred_;
        allow(number);
        return number;
    }
    return 0;
}

// Those that are about the same elements go over the weights together.
void LateUpdate::begin(std::int64_t number) {
    last_ = done_;
    const Waiting& first = at(last_ + 1);
    const auto alike = [&](const Waiting& it) {
        return it.job.offset == first.job.offset && it.job.to.size() == first.job.to.size() && !it.multiplies;
    };
    passes_.push_back(at(++last_).pass);
    while (!first.multiplies && last_ < number && alike(at(last_ + 1))) passes_.push_back(at(++last_).pass);
    offset_ = first.job.offset;
    const std::size_t size = first.job.to.size();
    next_ = 0;
    share_ = first.share;
    shares_left_ = (size + share_ - 1) / share_;
}

void LateUpdate::take_share(std::unique_lock<std::mutex>& lock) {
    const std::size_t first = next_;
    const std::size_t count = std::min(share_, passes_.front().to.size() - first);
    next_ += count;
    lock.unlock();
    optimizer_.apply(passes_, offset_, first, count);
    lock.lock();
    if (--shares_left_ > 0) return;
    passes_.clear();
    done_.store(last_, std::memory_order_release);
    ran_.notify_all();
}

void LateUpdate::run_to(std::int64_t number) {
    if (done_.load(std::memory_order_acquire) >= number) return;
    std::unique_lock lock(mutex_);
    while (done_ < number) {
        if (passes_.empty()) begin(number);
        if (has_share())
            take_share(lock);
        else
            ran_.wait(lock, [&] { return done_ >= number || passes_.empty() || has_share(); });
    }
}

}  // namespace rubato::learn
