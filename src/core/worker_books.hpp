// What the books of all kinds of workers have in common.
#pragma once

#include "core/rows.hpp"

#include <algorithm>
#include <functional>

namespace rubato {

/// The books up to `now`: what is under way goes to the account that open_account(row) names, so that accounts add up
/// to the time that they cover. In real time a worker may be ahead of `now` by a little, which one of its own accounts
/// gives back.
template <class OpenAccount>
WorkerRow closed_books(WorkerRow row, Time now, OpenAccount&& open_account) {
    const Time open = now - row.sum_ns();
    Time& account =
        open >= 0 ? open_account(row)
                  : std::max({std::ref(row.compute_ns), std::ref(row.push_moving_ns), std::ref(row.idle_ns)}).get();
    account = std::max<Time>(0, account + open);
    return row;
}

/// The word that ends a wait, and what the server says of it.
struct Answer {
    Time asked_ns = 0;  ///< when it was asked for; 0: when the wait began, or before
    Time sent_ns = 0, held_ns = 0, queued_ns = 0;
    Time started_ns = 0, came_ns = 0;
    bool operator==(const Answer&) const = default;
};

/// A wait from `since` to `now`: held back by the policy, behind other work of the server, moving; the rest is the way
/// of the request and the queue of the reply at lanes and links. What went on before the wait is none of it.
inline void book_wait(WorkerRow& books, Time since, Time now, const Answer& answer) {
    const Time exposed = std::max<Time>(0, std::min(now, answer.came_ns) - since);
    const Time moving = std::clamp<Time>(answer.came_ns - std::max(answer.started_ns, since), 0, exposed);
    const Time before_send = std::clamp<Time>(answer.sent_ns - std::max(since, answer.asked_ns), 0, exposed - moving);
    const Time held = std::min(answer.held_ns, before_send);
    const Time queued = std::min(answer.queued_ns, before_send - held);
    books.policy_wait_ns += held;
    books.apply_wait_ns += queued;
    books.pull_moving_ns += moving;
    books.pull_request_ns += now - since - held - queued - moving;
}

/// The same for a push that was taken, and began to move at started_ns.
inline void book_push(WorkerRow& books, Time since, Time now, Time started_ns) {
    const Time queued = std::clamp<Time>(started_ns - since, 0, now - since);
    books.push_queued_ns += queued;
    books.push_moving_ns += now - since - queued;
}

}  // namespace rubato
