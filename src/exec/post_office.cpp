#include "exec/post_office.hpp"

#include <algorithm>

namespace rubato::exec {

std::int32_t PostOffice::open_inbox() {
    std::lock_guard lock(mutex_);
    channels_.emplace_back().elsewhere = true;
    return static_cast<std::int32_t>(channels_.size() - 1);
}

BufferId PostOffice::allocate_in(std::int32_t channel) {
    return locked([&](auto& pool) { return pool.allocate(channel); });
}

std::int32_t PostOffice::channel_index(const Channel3& key) {
    const auto [it, fresh] = index_.emplace(key, static_cast<std::int32_t>(channels_.size()));
    if (fresh) {
        channels_.emplace_back();
        channels_.back().free.assign(static_cast<std::size_t>(slots_of(key.channel)), 0);
    }
    return it->second;
}

void PostOffice::send(RoleId from, const Send& send, Time sent_ns) {
    std::lock_guard lock(mutex_);
    if (send.payload.buffer == no_buffer) {
        ++control_messages_;
        deliver_(send.to, Delivered{from, send.channel, send.message, {}, sent_ns, sent_ns});
        deliver_(from, Taken{send.id, sent_ns});
        return;
    }
    ++messages_;
    buffers_.retain(send.payload.buffer);
    const auto channel = channel_index({from, send.to, send.channel});
    channels_[static_cast<std::size_t>(channel)].queue.push_back({from, send, sent_ns});
    pump(channel);
}

void PostOffice::pump(std::int32_t channel) {
    auto& state = channels_[static_cast<std::size_t>(channel)];
    while (!state.free.empty() && !state.queue.empty()) {
        const Waiting it = state.queue.front();
        state.queue.pop_front();
        const Time started_ns = std::max(it.sent_ns, state.free.front());
        state.free.pop_front();
        const Slice payload{buffers_.share(it.send.payload.buffer, channel), it.send.payload.first,
                            it.send.payload.count};
        deliver_(it.send.to, Delivered{it.from, it.send.channel, it.send.message, payload, it.sent_ns, started_ns});
        deliver_(it.from, Taken{it.send.id, started_ns});
        // The sender may have let go of it while it waited here, and then this gives back a slot of the channel on
        // which the sender had got it.
        end_reference(it.send.payload.buffer, started_ns);
    }
}

void PostOffice::release(BufferId buffer, Time now) {
    std::lock_guard lock(mutex_);
    end_reference(buffer, now);
}

void PostOffice::end_reference(BufferId buffer, Time now) {
    const auto channel = buffers_.release(buffer);
    if (channel < 0) return;
    if (channels_[static_cast<std::size_t>(channel)].elsewhere) return freed_(channel);
    channels_[static_cast<std::size_t>(channel)].free.push_back(now);
    pump(channel);
}

void PostOffice::retain(BufferId buffer) {
    locked([&](auto& pool) { pool.retain(buffer); });
}

BufferId PostOffice::allocate() {
    return locked([](auto& pool) { return pool.allocate(); });
}

BufferId PostOffice::share(BufferId buffer) {
    return locked([&](auto& pool) { return pool.share(buffer, -1); });
}

std::span<float> PostOffice::data(BufferId buffer) {
    return locked([&](auto& pool) { return pool.data(buffer); });
}

BufferId PostOffice::writable(BufferId weights) {
    return locked([&](auto& pool) { return pool.sole(weights) ? weights : pool.allocate(); });
}

std::int64_t PostOffice::outstanding() {
    return locked([](auto& pool) { return pool.outstanding(); });
}

}  // namespace rubato::exec
