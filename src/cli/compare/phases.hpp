// Where the time of a run's workers went, and whom they waited for.
#pragma once

#include "cli/compare/recorded_run.hpp"

#include <array>
#include <map>
#include <string_view>
#include <vector>

namespace rubato::cli {

/// What a worker's time goes to; columns of workers.csv.
enum class Cause { compute, push_queued, push_moving, pull_request, pull_moving, policy_wait, apply_wait, idle };
inline constexpr std::size_t causes = 8;
inline constexpr std::array<std::string_view, causes> cause_names{
    "compute", "push queued", "push moving", "pull request", "pull moving", "policy wait", "apply wait", "idle"};

/// Seconds by cause.
struct Seconds : std::array<double, causes> {
    Seconds() { fill(0); }
    double& operator[](Cause cause) { return at(static_cast<std::size_t>(cause)); }
    double operator[](Cause cause) const { return at(static_cast<std::size_t>(cause)); }
    double sum() const;
    /// this += factor * other
    void add(const Seconds& other, double factor = 1);
};

/// Of one worker, in seconds per applied gradient of its own.
struct WorkerPhases {
    bool any = false;  ///< whether it had a gradient applied; nothing else holds otherwise
    Seconds spent;     ///< where it spent them
    /// Who the policy held it back for, and what they did meanwhile that took them longer: a part of
    /// spent[policy_wait], or all of it.
    std::map<WorkerId, Seconds> waited_for;
};

struct RunPhases {
    std::vector<WorkerPhases> workers;
    bool steady = false;    ///< over the steady window; otherwise over the whole run
    bool followed = false;  ///< waits were followed, which takes a row for every gradient
};

/// The steady window is that of the summary: without the first 10 % and the last 5 % of the updates. Compute, push and
/// wait come from gradients.csv; push and wait are split as workers.csv splits them over the whole run. Without all
/// rows of gradients.csv, and where workers overlap communication and computation, everything comes from workers.csv,
/// over the whole run.
///
/// Waits are followed like this. A wait that the policy imposes ends with an update; what it waited for is the
/// contributor whose push was taken last. Both worked on a gradient of their own before, and the wait is there because
/// some phases of the other one took longer: the wait is divided among these in the ratio of the excess.
RunPhases phases_of(const RecordedRun& run);

}  // namespace rubato::cli
