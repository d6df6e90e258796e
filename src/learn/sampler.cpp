#include "learn/sampler.hpp"

#include "core/dealer.hpp"

#include "learn/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace rubato::learn {

/// The permutation of one epoch; whoever comes first makes it, without holding up those who want another.
struct Sampler::Entry {
    std::int32_t epoch = 0;
    std::once_flag made;
    std::vector<std::int32_t> values;
};

/// The recent permutations, latest use first. Workers of a slow protocol are spread over few epochs.
struct Sampler::Slot {
    static constexpr std::size_t kept = 3;
    std::mutex mutex;
    std::vector<std::shared_ptr<Entry>> entries;
};

Sampler::Sampler(Sampling mode, std::uint64_t seed, std::vector<std::int32_t> ids, int lambda)
    : mode_(mode), seed_(seed), ids_(std::move(ids)), lambda_(lambda) {
    const bool sharded = mode == Sampling::sharded;
    if (sharded) shuffle(ids_, Stream(seed_, 0, Purpose::partition, 0));
    slots_ = std::make_unique<Slot[]>(sharded ? static_cast<std::size_t>(lambda) : 1);
}

Sampler::~Sampler() = default;

std::span<const std::int32_t> Sampler::part(WorkerId worker) const {
    if (mode_ != Sampling::sharded) return ids_;
    const std::int64_t before = worker * (samples() / lambda_) + std::min<std::int64_t>(worker, samples() % lambda_);
    return std::span(ids_).subspan(static_cast<std::size_t>(before),
                                   static_cast<std::size_t>(shard_samples(samples(), lambda_, worker)));
}

std::vector<std::int32_t> Sampler::make(WorkerId worker, std::int32_t epoch) const {
    const auto own = part(worker);
    std::vector<std::int32_t> values(own.begin(), own.end());
    const auto role = mode_ == Sampling::sharded ? static_cast<std::uint32_t>(worker) + 1 : 0;
    shuffle(values, Stream(seed_, role, Purpose::permutation, static_cast<std::uint32_t>(epoch)));
    return values;
}

Sampler::Permutation Sampler::permutation(WorkerId worker, std::int32_t epoch) const {
    Slot& slot = slots_[mode_ == Sampling::sharded ? static_cast<std::size_t>(worker) : 0];
    std::shared_ptr<Entry> entry;
    {
        const std::lock_guard lock(slot.mutex);
        auto& entries = slot.entries;
        auto at = std::ranges::find(entries, epoch, [](const auto& e) { return e->epoch; });
        if (at == entries.end()) {
            if (entries.size() == Slot::kept) entries.pop_back();
            entries.push_back(std::make_shared<Entry>());
            entries.back()->epoch = epoch;
            at = entries.end() - 1;
        }
        entry = *at;
        std::rotate(entries.begin(), at, at + 1);
    }
    std::call_once(entry->made, [&] { entry->values = make(worker, epoch); });
    return {entry, &entry->values};
}

void Sampler::sample_ids(WorkerId worker, const Batch& batch, std::span<std::int32_t> out) const {
    if (worker < 0 || worker >= lambda_) throw std::out_of_range(fmt::format("no worker {} of {}", worker, lambda_));
    if (mode_ == Sampling::random) {
        for (std::size_t j = 0; j < out.size(); j++) {
            Stream stream(seed_, static_cast<std::uint32_t>(worker), Purpose::sample,
                          static_cast<std::uint64_t>(batch.first) + j);
            out[j] = ids_[stream.below(ids_.size())];
        }
        return;
    }
    const auto length = static_cast<std::int64_t>(part(worker).size());
    if (batch.first < 0 || batch.first + batch.count > length)
        throw std::out_of_range(
            fmt::format("batch of {} at {} leaves the {} samples of its epoch", batch.count, batch.first, length));
    const Permutation values = permutation(worker, batch.epoch);
    std::copy_n(values->begin() + batch.first, batch.count, out.begin());
}

}  // namespace rubato::learn
