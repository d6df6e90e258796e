// What every driver is given, and what may end a run from outside.
#pragma once

#include "core/action.hpp"
#include "core/scenario.hpp"

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
    std::vector<double> slow;                     ///< by worker: factors on that
    double push_s = 0, pull_s = 0, update_s = 0;  ///< of the server, as in cluster.server
    std::int64_t push_bytes = 0, pull_bytes = 0;  ///< of messages; 0: as they are
    /// The way between a worker and the server, alone.
    struct Route {
        double bytes_per_s = 0, latency_s = 0;
    };
    std::vector<Route> to_server, from_server;  ///< by worker; empty: messages take what they take
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
