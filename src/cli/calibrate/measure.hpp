// A profile of this machine, by measuring the very kernels that a run on it uses.
#pragma once

#include "cli/calibrate/profile.hpp"
#include "core/scenario.hpp"
#include "learn/task.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rubato::cli {

/// Messages between two ranks of a job.
struct RankTimes {
    int from = 0, to = 0;
    std::vector<std::pair<double, double>> messages;  ///< (bytes, seconds)
};

/// Times of messages of the given sizes between all pairs of ranks that are worth it. Nothing where this process is no
/// rank of a job.
using RankMessages = std::function<std::optional<std::vector<RankTimes>>(const std::vector<double>& bytes)>;

/// Seconds of gradients of `batch` samples while so many ranks compute at once, for so long at most.
using RankGradients = std::function<std::vector<double>(int batch, int workers, double limit_s)>;

struct MeasureOptions {
    double seconds = 60;                                 ///< limit; what is stable earlier ends earlier
    RankMessages rank_messages;                          ///< null: messages are handed between threads
    RankGradients rank_gradients;                        ///< null: gradients are computed on threads
    int ranks = 0;                                       ///< that compute gradients
    const std::atomic<bool>* interrupted = nullptr;      ///< null: never
    std::function<void(const std::string&)> progress{};  ///< called with what is being measured, and how far it is
};

/// The measurement was interrupted: there is no profile.
struct Interruption {};

/// Gradients of the scenario's model by batch size, with as many workers at once as the scenario has, and with fewer;
/// updates of its optimizer by size; messages. The task must be the scenario's. Throws Interruption.
Profile measure(const Scenario& scenario, const learn::Task& task, const MeasureOptions& options);

// The parts; limit_s: of each.

/// Seconds of single gradients of `batch` samples while `workers` threads compute at once, until the estimates of all
/// are stable, warm-up left out; `whole`: for all of the limit, since others compute beside them. At least one for each
/// worker.
std::vector<double> time_gradients(const learn::Task& task, int batch, int workers, double limit_s,
                                   const std::atomic<bool>* interrupted, bool whole = false);

/// Taking a gradient in and updating the weights, over bytes of the weights: the update of one gradient, and what each
/// further one adds. parameters: of the scenario's model; sizes around it are measured, too.
ServerProfile time_updates(const OptimizerSpec& optimizer, std::int64_t parameters, double limit_s,
                           const std::atomic<bool>* interrupted);

/// (bytes, seconds) of messages that one thread leaves in memory and another is woken to copy.
std::vector<std::pair<double, double>> time_handovers(const std::vector<double>& bytes, double limit_s,
                                                      const std::atomic<bool>* interrupted);

}  // namespace rubato::cli
