#include "core/dealer.hpp"

#include <algorithm>
#include <stdexcept>

namespace rubato {

Dealer::Dealer(const DealerConfig& config) : config_(config) {
    state_.own.resize(static_cast<std::size_t>(config.lambda));
    if (config_.sampling == Sampling::strided && !config_.own)
        for (int worker = 0; worker < config_.lambda; ++worker)
            state_.own[static_cast<std::size_t>(worker)].first = std::int64_t{worker} * config_.batch_size;
}

Batch own_batch(const DealerConfig& config, WorkerId worker, std::int64_t k) {
    const std::int64_t size = config.batch_size;
    const auto slices = [size](std::int64_t samples) { return (samples + size - 1) / size; };
    const auto slice = [&](std::int64_t epoch, std::int64_t first, std::int64_t samples) {
        return Batch{static_cast<std::int32_t>(epoch), static_cast<std::int32_t>(std::min(size, samples - first)),
                     first};
    };
    switch (config.sampling) {
        case Sampling::shared_epoch: throw std::logic_error("workers cannot share an epoch that nobody deals");
        case Sampling::strided: {
            const std::int64_t mine = (slices(config.samples) - worker + config.lambda - 1) / config.lambda;
            if (mine <= 0) return {};
            return slice(k / mine, (worker + k % mine * config.lambda) * size, config.samples);
        }
        case Sampling::random: {
            const std::int64_t epoch = k * size * config.lambda / config.samples;
            return {static_cast<std::int32_t>(epoch), config.batch_size, k * size};
        }
        case Sampling::sharded: {
            const std::int64_t part = shard_samples(config.samples, config.lambda, worker);
            if (part == 0) return {};
            return slice(k / slices(part), k % slices(part) * size, part);
        }
    }
    return {};
}

std::int64_t Dealer::room() const {
    std::int64_t room = config_.batch_size;
    if (config_.limit >= 0) room = std::min(room, config_.limit - state_.dealt);
    return room;
}

Batch Dealer::deal(WorkerId worker) {
    if (config_.own) return own_batch(config_, worker, state_.own[static_cast<std::size_t>(worker)].first++);
    if (exhausted()) return {};
    const Batch batch = next_of(worker);
    state_.dealt += batch.count;
    state_.dealt_in_epoch += batch.count;
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

void Dealer::give_back(const Batch& batch) {
    if (config_.own) return;
    state_.dealt -= batch.count;
    state_.dealt_in_epoch -= batch.count;
    if (config_.sampling == Sampling::shared_epoch) state_.returned.push_back(batch);
}

DealerState Dealer::state() const {
    DealerState state = state_;
    state.returned.erase(state.returned.begin(), state.returned.begin() + static_cast<std::ptrdiff_t>(returned_head_));
    return state;
}

void Dealer::open_round() {
    if (state_.dealt_in_epoch < config_.samples) return;
    ++state_.round_epoch;
    state_.dealt_in_epoch = 0;
}

Batch Dealer::from_shared() {
    if (!state_.returned.empty()) return from_returned();
    if (state_.shared.first >= config_.samples) {
        if (config_.barrier && state_.shared.epoch == state_.round_epoch) return {};
        ++state_.shared.epoch;
        state_.shared.first = 0;
    }
    const auto count = std::min(room(), config_.samples - state_.shared.first);
    const Batch batch{state_.shared.epoch, static_cast<std::int32_t>(count), state_.shared.first};
    state_.shared.first += count;
    return batch;
}

Batch Dealer::from_returned() {
    auto& returned = state_.returned;
    const Batch batch = returned[returned_head_++];
    // What is dealt is cut off once it is the larger half, so that many of them cost no more than one each.
    if (2 * returned_head_ >= returned.size()) {
        returned.erase(returned.begin(), returned.begin() + static_cast<std::ptrdiff_t>(returned_head_));
        returned_head_ = 0;
    }
    return batch;
}

Batch Dealer::from_strided(WorkerId worker) {
    auto& cursor = state_.own[static_cast<std::size_t>(worker)];
    const std::int64_t first = std::int64_t{worker} * config_.batch_size;
    if (first >= config_.samples) return {};
    if (cursor.first >= config_.samples) {
        if (config_.barrier && cursor.epoch == state_.round_epoch) return {};
        ++cursor.epoch;
        cursor.first = first;
    }
    const auto count = std::min(room(), config_.samples - cursor.first);
    const Batch batch{cursor.epoch, static_cast<std::int32_t>(count), cursor.first};
    cursor.first += std::int64_t{config_.batch_size} * config_.lambda;
    return batch;
}

Batch Dealer::from_random(WorkerId worker) {
    auto& cursor = state_.own[static_cast<std::size_t>(worker)];
    auto count = room();
    if (config_.barrier) count = std::min(count, config_.samples - state_.dealt_in_epoch);
    if (count <= 0) return {};
    const auto epoch = config_.barrier ? state_.round_epoch : static_cast<std::int32_t>(state_.dealt / config_.samples);
    const Batch batch{epoch, static_cast<std::int32_t>(count), cursor.first};
    cursor.first += count;
    return batch;
}

Batch Dealer::from_shard(WorkerId worker) {
    auto& cursor = state_.own[static_cast<std::size_t>(worker)];
    const auto part = shard_samples(config_.samples, config_.lambda, worker);
    if (part == 0) return {};
    if (cursor.first >= part) {
        if (config_.barrier && cursor.epoch == state_.round_epoch) return {};
        ++cursor.epoch;
        cursor.first = 0;
    }
    const auto count = std::min(room(), part - cursor.first);
    const Batch batch{cursor.epoch, static_cast<std::int32_t>(count), cursor.first};
    cursor.first += count;
    return batch;
}

}  // namespace rubato
