// Why two sides differ: the gap in seconds per gradient, divided among causes and workers.
#pragma once

#include "cli/compare/side.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// A line of the explanation, in seconds.
struct GapLine {
    Cause cause = Cause::compute;
    std::vector<WorkerId> workers;  ///< whose; all of them where the cause is not one of particular workers
    enum class Who { some, others, all } who = Who::all;
    double predicted = 0, measured = 0;
    double own = 0;    ///< the part of the difference that is the cause's own
    double total = 0;  ///< what it answers for: its own, and what follows from it elsewhere
    double noise = 0;  ///< standard error of `own`, as far as it is known; 0 where it is significant
    double share = 0;  ///< of the gap
    double difference() const { return measured - predicted; }
};

struct Explanation {
    double predicted = 0, measured = 0;  ///< seconds of a worker per gradient of the run
    /// Waits charged to those whom they were for. Predicted and measured add up to those above, totals to the gap. What
    /// answers for most, beyond three standard errors, comes first.
    std::vector<GapLine> lines;
    /// As spent, by cause over all workers; in the order of Cause. Here and below a total is the difference.
    std::vector<GapLine> by_cause;
    /// As spent, a line a worker and cause: seconds per gradient of its own, which add up to those of the worker;
    /// shares add up to 1. The largest share first.
    std::vector<GapLine> by_worker;
    bool followed = false, steady = false;
    std::string reading;  ///< one sentence on the first line
    double gap() const { return measured - predicted; }
};

Explanation explain(const Side& predicted, const Side& measured, bool followed, bool steady);

/// "worker 3", "workers 0-2 and 5", "all workers".
std::string who_text(const GapLine& line);
/// "compute of worker 3".
std::string line_text(const GapLine& line);
/// Three significant digits with a unit: "12.3 ms".
std::string duration_text(double seconds, bool sign = false);

}  // namespace rubato::cli
