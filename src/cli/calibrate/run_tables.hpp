// The tables of a run, as far as a profile needs them.
#pragma once

#include "core/scenario.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace rubato::cli {

/// A gradient that was computed to its end.
struct TimedGradient {
    std::int32_t worker = 0;
    std::int32_t samples = 0;
    std::int64_t worker_seq = 0;
    std::int64_t read_version = 0;
    double begin_s = 0, end_s = 0;
    double push_s = -1;  ///< below 0: not pushed
};

struct WorkerTotals {
    std::string host;
    double compute_s = 0;
    double push_moving_s = 0, pull_moving_s = 0, pull_request_s = 0;
    std::int64_t gradients = 0, inquiries = 0, pulls = 0;
    std::int64_t started = 0;  ///< gradients, computed to the end or not
};

struct ServerTotals {
    std::string host;
    std::int64_t pushes = 0, updates = 0, replies = 0;
    double push_s = 0, update_s = 0, pull_s = 0;
    double bytes_in = 0, bytes_out = 0;
};

struct RunTables {
    std::string directory;
    std::string backend;          ///< empty: the run has left no summary
    bool oversubscribed = false;  ///< its processes took turns on the cores
    Scenario scenario;
    std::vector<TimedGradient> gradients;  ///< by worker, in the order of their computation
    std::vector<WorkerTotals> workers;     ///< [lambda]; empty: the run did not come to its end
    std::vector<ServerTotals> servers;
};

/// Bytes of a gradient message and of a weights message; 0 where the run sent none.
struct MessageSizes {
    double push = 0, pull = 0;
};
MessageSizes message_sizes(const RunTables& run);

/// Throws InputError where files are missing or broken.
RunTables read_run(const std::string& directory);

}  // namespace rubato::cli
