#include "core/dealer.hpp"

#include <algorithm>

namespace rubato {

Dealer::Dealer(const DealerConfig& config) : config_(config), own_(static_cast<std::size_t>(config.lambda)) {
    if (config_.sampling == Sampling::strided)
        for (int worker = 0; worker < config_.lambda; ++worker)
            own_[static_cast<std::size_t>(worker)].first = std::int64_t{worker} * config_.batch_size;
}

std::int64_t Dealer::room() const {
    std::int64_t room = config_.batch_size;
    if (config_.limit >= 0) room = std::min(room, config_.limit - dealt_);
    return room;
}

Batch Dealer::deal(WorkerId worker) {
    if (exhausted()) return {};
    const Batch batch = next_of(worker);
    dealt_ += batch.count;
    dealt_in_epoch_ += batch.count;
    return batch;
}

Batch Dealer::next_of(WorkerId worker) {
    switch (config_.sampling) {
        case Sampling::shared_epoch: return from_shared();
        case Sampling::strided: return from_strided(worker);
        case Sampling::random: return from_random(worker);
        case Sampling::sharded: return from_shard(worker);
    }
    return {};
}

void Dealer::open_round() {
    if (dealt_in_epoch_ < config_.samples) return;
    ++round_epoch_;
    dealt_in_epoch_ = 0;
}

Batch Dealer::from_shared() {
    if (shared_.first >= config_.samples) {
        if (config_.barrier && shared_.epoch == round_epoch_) return {};
        ++shared_.epoch;
        shared_.first = 0;
    }
    const auto count = std::min(room(), config_.samples - shared_.first);
    const Batch batch{shared_.epoch, static_cast<std::int32_t>(count), shared_.first};
    shared_.first += count;
    return batch;
}

Batch Dealer::from_strided(WorkerId worker) {
    auto& cursor = own_[static_cast<std::size_t>(worker)];
    const std::int64_t first = std::int64_t{worker} * config_.batch_size;
    if (first >= config_.samples) return {};
    if (cursor.first >= config_.samples) {
        if (config_.barrier && cursor.epoch == round_epoch_) return {};
        ++cursor.epoch;
        cursor.first = first;
    }
    const auto count = std::min(room(), config_.samples - cursor.first);
    const Batch batch{cursor.epoch, static_cast<std::int32_t>(count), cursor.first};
    cursor.first += std::int64_t{config_.batch_size} * config_.lambda;
    return batch;
}

Batch Dealer::from_random(WorkerId worker) {
    auto& cursor = own_[static_cast<std::size_t>(worker)];
    auto count = room();
    if (config_.barrier) count = std::min(count, config_.samples - dealt_in_epoch_);
    if (count <= 0) return {};
    const auto epoch = config_.barrier ? round_epoch_ : static_cast<std::int32_t>(dealt_ / config_.samples);
    const Batch batch{epoch, static_cast<std::int32_t>(count), cursor.first};
    cursor.first += count;
    return batch;
}

Batch Dealer::from_shard(WorkerId worker) {
    auto& cursor = own_[static_cast<std::size_t>(worker)];
    const auto part = shard_samples(config_.samples, config_.lambda, worker);
    if (part == 0) return {};
    if (cursor.first >= part) {
        if (config_.barrier && cursor.epoch == round_epoch_) return {};
        ++cursor.epoch;
        cursor.first = 0;
    }
    const auto count = std::min(room(), part - cursor.first);
    const Batch batch{cursor.epoch, static_cast<std::int32_t>(count), cursor.first};
    cursor.first += count;
    return batch;
}

}  // namespace rubato
