// What every driver is given, and what may end a run from outside.
#pragma once

#include "core/action.hpp"
#include "core/scenario.hpp"
#include "core/shards.hpp"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace rubato::learn {
class Task;
}

namespace rubato::trace {

class Recorder;
class CheckpointWriter;
struct Checkpoint;

/// What a real run pretends to cost, so that an uneven cluster or a big model is rehearsed on a small even machine.
struct EmulatedCosts {
    /// Seconds of a gradient that begins then; called from several threads. Empty: those that it takes.
    std::function<double(RoleId worker, std::int64_t worker_seq, std::int32_t samples, Time begin_ns)> compute_s;
    std::vector<double> slow;  ///< by worker: factors on that
    /// As in cluster.server.
    struct ServerSeconds {
        double push_s = 0, pull_s = 0, update_s = 0;
    };
    std::vector<ServerSeconds> servers{1};        ///< by shard; one of all servers where there are none
    std::int64_t push_bytes = 0, pull_bytes = 0;  ///< of messages about a whole model; 0: as they are
    /// The way between a worker and the server, alone.
    struct Route {
        double bytes_per_s = 0, latency_s = 0;
    };
    /// By worker; with shards, that of worker w and shard s at count() * w + s. Empty: messages take what they take.
    std::vector<Route> to_server, from_server;
    Shards shards;

    const ServerSeconds& of(RoleId server) const {
        return shards.any() ? servers[static_cast<std::size_t>(shards.shard_of(server))] : servers.front();
    }
    /// Of a message about so many elements, what it pretends to have; 0: it does not.
    std::int64_t bytes(bool weights, const Range& part) const {
        const std::int64_t whole = weights ? pull_bytes : push_bytes;
        return shards.any() ? shards.bytes(whole, part) : whole;
    }
};

struct RunInput {
    const Scenario* scenario = nullptr;
    const learn::Task* task = nullptr;  ///< null: timing only, which real backends refuse
    std::int64_t samples = 0;           ///< training samples of one epoch
    std::int64_t parameters = 0;
    Recorder* recorder = nullptr;             ///< may be null
    CheckpointWriter* checkpoints = nullptr;  ///< null: what roles ask to be saved is not
    const Checkpoint* resume = nullptr;       ///< the run goes on from there; null: it begins
    /// Sees every step after the recorder: tests look over the engine's shoulder here. Called from several threads by
    /// real backends.
    std::function<void(Time, RoleId, const Event&, const Actions&)> observer;
    const EmulatedCosts* emulated = nullptr;         ///< real backends; null: all as it is
    std::vector<std::string> hosts;                  ///< by rank, where there are ranks
    std::function<void(const std::string&)> remark;  ///< a line for people, in mid-run; may be empty
    const std::atomic<bool>* interrupted = nullptr;  ///< becomes true on SIGINT or SIGTERM; may be null
    std::function<void()> tick;                      ///< called now and then from the driver's thread, for progress
};

}  // namespace rubato::trace
