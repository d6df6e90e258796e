// Synchronization policies: when gradients make an update and when a worker may go on. One file each in policies/.
#pragma once

#include "core/policies/async.hpp"
#include "core/policies/hardsync.hpp"
#include "core/policies/n_softsync.hpp"
#include "core/scenario.hpp"

#include <string_view>
#include <variant>

namespace rubato {

/// A member of the family is a small value with these members:
///   traits()              what the server has to arrange for it
///   on_round(workers)     barrier policies: so many workers were dealt a batch
///   on_ready(worker)      a worker asks to start its next batch
///   on_arrival(arrival)   a gradient has arrived
///   on_applied()          the update that was fired is done
///   each(self, field)     its fields, for checkpoints
using Policy = std::variant<Hardsync, NSoftsync, Async>;

PolicyTraits traits(const Policy& policy);
void on_round(Policy& policy, int workers);
Ready on_ready(Policy& policy, WorkerId worker);
Decision on_arrival(Policy& policy, const Arrival& arrival);
void on_applied(Policy& policy);

/// The canonical name; plots have one colour for each.
std::string_view name(const Policy& policy);

/// From the scenario's protocol, for lambda workers.
Policy make_policy(const ProtocolSpec& protocol, int lambda);

}  // namespace rubato
