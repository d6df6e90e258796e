// What the books of both kinds of workers have in common.
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

}  // namespace rubato
