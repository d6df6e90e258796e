// Synchronization policies: when gradients make an update and when a worker may go on. One file each in policies/.
#pragma once

#include "core/policies/admission.hpp"
#include "core/policies/asp.hpp"
#include "core/policies/async.hpp"
#include "core/policies/backup_workers.hpp"
#include "core/policies/bounded_delay.hpp"
#include "core/policies/bsp.hpp"
#include "core/policies/dssp.hpp"
#include "core/policies/hardsync.hpp"
#include "core/policies/n_softsync.hpp"
#include "core/policies/plugin.hpp"
#include "core/policies/rennala.hpp"
#include "core/policies/ringmaster.hpp"
#include "core/policies/ssp.hpp"
#include "core/scenario.hpp"

#include <string_view>
#include <variant>

namespace rubato {

/// A member of the family is a small value with these members, of which PolicyDefaults has those that most do without:
///   name, kind                     what it is called, in scenarios and in checkpoints
///   traits()                       what the server has to arrange for it
///   on_arrival(arrival, orders)    a gradient has come: is it taken in, and does it complete an update? Orders are
///                                  carried out at once, or, where it fires, after the update
///   on_applied(now, orders)        the update that was fired is done
///   on_ready(worker)               may a worker have its next batch? Asked at the start, after a resume, and, where
///                                  workers inquire, at each inquiry. Who has to hold is to be released later
///   on_idle(worker, orders)        a worker that might have gone on got no batch, and will push nothing more; where
///                                  batches are dealt in rounds, nothing in this one
///   on_round(workers)              rounds: so many workers were dealt a batch; on_idle follows for the others
///   on_lost(worker, orders)        a worker has crashed; what it had pushed has been dealt with. Nobody waits for it
///                                  and nothing is to be released to it any more. Not asked of policies with rounds,
///                                  whose run ends
///   on_back(worker)                one that was lost or idle is with the others again; on_ready follows
///   on_resume()                    the run goes on from a saved state: what was under way is begun anew
///   waiting()                      who is held back, and by whom
///   each(self, field)              its fields, for checkpoints
using Policy = std::variant<Hardsync, NSoftsync, Async, Bsp, Asp, Ssp, Dssp, BoundedDelay, BackupWorkers, Rennala,
                            Ringmaster, Admission, PluginPolicy>;

PolicyTraits traits(const Policy& policy);
Decision on_arrival(Policy& policy, const Arrival& arrival, Orders& orders);
void on_applied(Policy& policy, Time now, Orders& orders);
Ready on_ready(Policy& policy, WorkerId worker);
void on_idle(Policy& policy, WorkerId worker, Orders& orders);
void on_lost(Policy& policy, WorkerId worker, Orders& orders);
void on_back(Policy& policy, WorkerId worker);
void on_round(Policy& policy, int workers);
void on_resume(Policy& policy);
std::vector<Wait> waiting(const Policy& policy);

/// The canonical name; plots have one colour for each.
std::string_view name(const Policy& policy);

/// From the scenario's protocol, for lambda workers.
Policy make_policy(const ProtocolSpec& protocol, int lambda);

/// What there is to know of the scenario's protocol, whether it is a policy or averages models. Of the latter: rounds
/// of all workers, each of whom draws its own batches.
PolicyTraits traits(const ProtocolSpec& protocol, int lambda);

/// The policy that a checkpoint holds. fresh: the one that the scenario begins with; only a plugin needs it, and throws
/// std::invalid_argument where it cannot read its own state.
Policy restored(const Policy& saved, const Policy& fresh);

/// What staleness rules see as n: that of n-softsync, or lambda / gradients of an update.
double rule_n(const ProtocolSpec& protocol, int lambda);

}  // namespace rubato
