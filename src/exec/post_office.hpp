// Messages and buffers between roles of one process. A payload is not copied: receiver and sender share the storage,
// which nobody changes while more than one of them holds it.
#pragma once

#include "core/action.hpp"
#include "learn/kept.hpp"

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>

namespace rubato::exec {

/// Inbox slots of a channel. That of weights has three: a worker computes on one model while another is there to be
/// computed on next, and one lands that is newer.
constexpr std::int32_t inbox_slots(Channel channel, int gradient_slots = 1) {
    return channel == Channel::weights ? 3 : channel == Channel::gradient ? gradient_slots : 1;
}

/// Thread-safe. `deliver(role, event)` puts an event into a role's mailbox; it is called with the office locked and
/// must not call back.
class PostOffice {
public:
    PostOffice(std::int64_t elements, std::function<void(RoleId, const Event&)> deliver, int gradient_slots = 1)
        : buffers_(elements), deliver_(std::move(deliver)), gradient_slots_(gradient_slots) {}
    std::int32_t slots_of(Channel channel) const { return inbox_slots(channel, gradient_slots_); }

    /// A channel whose sender is elsewhere: allocate_in() takes a slot of it, and `freed(channel)` is told when a slot
    /// is free again; it is called with the office locked and must not call back.
    std::int32_t open_inbox();
    BufferId allocate_in(std::int32_t channel);
    void when_freed(std::function<void(std::int32_t)> freed) { freed_ = std::move(freed); }

    /// sent_ns: when it began to move.
    void send(RoleId from, const Send& send, Time sent_ns);
    void release(BufferId buffer, Time now);
    void retain(BufferId buffer);
    BufferId allocate();
    BufferId share(BufferId buffer);
    std::span<float> data(BufferId buffer);
    /// Where an update may write: the same buffer if nobody else holds it, otherwise a new one.
    BufferId writable(BufferId weights);
    std::int64_t outstanding();

    /// Runs `body(pool)` with the office locked.
    template <class Body>
    auto locked(Body&& body) {
        std::lock_guard lock(mutex_);
        return body(buffers_);
    }

    /// Versions that the rule looks at; only with the office locked.
    learn::Kept& kept() { return kept_; }

    std::int64_t messages() const { return messages_; }
    std::int64_t control_messages() const { return control_messages_; }

private:
    struct Waiting {
        RoleId from = 0;
        Send send;
        Time sent_ns = 0;
    };
    struct Channel3 {
        RoleId from = 0, to = 0;
        Channel channel = Channel::control;
        auto operator<=>(const Channel3&) const = default;
    };
    struct State {
        std::deque<Time> free;  ///< since when each free slot is
        bool elsewhere = false;
        std::deque<Waiting> queue;
    };
    void pump(std::int32_t channel);
    void end_reference(BufferId buffer, Time now);
    std::int32_t channel_index(const Channel3& key);

    std::mutex mutex_;
    learn::BufferPool buffers_;
    learn::Kept kept_{buffers_};
    std::function<void(RoleId, const Event&)> deliver_;
    const int gradient_slots_;
    std::function<void(std::int32_t)> freed_;
    std::map<Channel3, std::int32_t> index_;
    std::deque<State> channels_;
    std::int64_t messages_ = 0, control_messages_ = 0;
};

}  // namespace rubato::exec
