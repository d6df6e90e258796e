// Why two sides differ: the gap in seconds per gradient, divided among causes and workers.
#pragma once

#include "cli/compare/phases.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// A line of the explanation, in seconds.
struct GapLine {
    Cause cause = Cause::compute;
    std::vector<WorkerId> workers;  ///< whose; all of them where the cause is not one of particular workers
    enum class Who { some, others, all } who = Who::all;
    double predicted = 0, measured = 0;
    double share = 0;  ///< of the gap
    double difference() const { return measured - predicted; }
};

struct Explanation {
    double predicted = 0, measured = 0;  ///< seconds of a worker per gradient of the run
    /// Waits charged to those whom they were for; adds up to the gap. The largest difference first.
    std::vector<GapLine> lines;
    /// As spent, by cause over all workers; adds up to the gap. In the order of Cause.
    std::vector<GapLine> by_cause;
    /// As spent, a line a worker and cause: seconds per gradient of its own, which add up to those of the worker;
    /// shares add up to 1. The largest share first.
    std::vector<GapLine> by_worker;
    bool followed = false, steady = false;
    std::string reading;  ///< one sentence on the first line
    double gap() const { return measured - predicted; }
};

/// One side: the mean over its runs.
struct Side {
    std::vector<WorkerPhases> workers;
    double seconds_per_push = 0, seconds_per_update = 0, seconds_per_pull = 0;  ///< of the server; 0: not known
};
Side mean_side(const std::vector<RecordedRun>& runs, const std::vector<RunPhases>& phases);

/// The gap is that of H = lambda / (gradients per second), seconds of a worker per gradient. With s seconds per own
/// gradient a worker makes 1/s gradients a second, so that H = lambda / sum(1/s), and exactly
///
///     H' - H = sum over workers of weight * (s' - s),  weight = lambda / (R R' s s'),  R = sum(1/s)
///
/// where s is a sum over causes. For equal workers the weight is 1/lambda.
Explanation explain(const Side& predicted, const Side& measured, bool followed, bool steady);

/// "worker 3", "workers 0-2 and 5", "all workers".
std::string who_text(const GapLine& line);
/// "compute of worker 3".
std::string line_text(const GapLine& line);
/// Three significant digits with a unit: "12.3 ms".
std::string duration_text(double seconds, bool sign = false);

}  // namespace rubato::cli
