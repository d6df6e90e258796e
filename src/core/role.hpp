// Roles: values with one entry point.
#pragma once

#include "core/action.hpp"
#include "core/averaging/average_driver.hpp"
#include "core/averaging/average_worker.hpp"
#include "core/averaging/elastic_server.hpp"
#include "core/averaging/elastic_worker.hpp"
#include "core/averaging/gossip_monitor.hpp"
#include "core/averaging/gossip_worker.hpp"
#include "core/averaging/phase_driver.hpp"
#include "core/averaging/phase_worker.hpp"
#include "core/averaging/stream_worker.hpp"
#include "core/boxed.hpp"
#include "core/collective/collective_monitor.hpp"
#include "core/collective/collective_worker.hpp"
#include "core/overlap_worker.hpp"
#include "core/relay.hpp"
#include "core/scenario.hpp"
#include "core/server.hpp"
#include "core/shard_worker.hpp"
#include "core/worker.hpp"

#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace rubato {

/// A role is copyable, comparable and printable; it lives wherever a driver puts it.
/// What is large or rare is boxed, so that thousands of workers lie close together.
using Role = std::variant<Boxed<Server>, Worker, Boxed<OverlapWorker>, Boxed<Relay>, Boxed<ShardWorker>,
                          Boxed<AverageDriver>, Boxed<AverageWorker>, Boxed<ElasticServer>, Boxed<ElasticWorker>,
                          Boxed<PhaseDriver>, Boxed<PhaseWorker>, Boxed<GossipMonitor>, Boxed<GossipWorker>,
                          Boxed<StreamWorker>, Boxed<CollectiveMonitor>, Boxed<CollectiveWorker>>;

/// The one entry point. Appends to `actions` (the driver clears them); events of one role come in the order of `now`.
void step(Role& role, Time now, const Event& event, Actions& actions);

/// For whom and for what the role waits, since when; empty when it is done. Names the culprit of a deadlock or a stall.
std::string waiting(const Role& role);

/// One line on the state of a role, for people.
std::string describe(const Role& role);

/// "server", "worker 3", and, of a tree over lambda workers, "relay 0". sharded: "shard 0", "shard 1".
std::string role_name(RoleId role, int lambda = std::numeric_limits<int>::max(), bool sharded = false);
/// The same for a role of the scenario.
std::string role_name(RoleId role, const Scenario& scenario);

/// Workers among the roles of a run, and whether they talk with shards.
int workers_among(const std::vector<Role>& roles);
bool sharded(const std::vector<Role>& roles);

/// Roles of a run of the scenario.
RoleId roles_of(const Scenario& scenario);

/// Why a run did not just finish: the first figure that was not finite, or the signal; empty where it did.
std::string ending_text(const Finish& finish);

/// What the Save that a server has just asked for saves; null for a role that has asked for none.
const ServerState* saved_state(const Role& role);

/// The books of a worker up to `now`; empty for others.
WorkerRow books(const Role& role, Time now);

/// Gradients that a worker has begun so far; 0 for others.
std::int64_t gradients_begun(const Role& role);

/// The roles of a scenario: role 0 is the server, role 1 + w worker w; then come the relays of a tree, or the other
/// shards. samples: training samples of one epoch; parameters: elements of weights and gradients (0 in timing-only runs
/// without a model). state: of an earlier part of the run, from which it goes on; null: from the beginning.
std::vector<Role> make_roles(const Scenario& scenario, std::int64_t samples, std::int64_t parameters,
                             const RunState* state = nullptr);

}  // namespace rubato
