// One side of a comparison: the mean over its runs.
#pragma once

#include "cli/compare/phases.hpp"
#include "cli/compare/speeds.hpp"

#include <vector>

namespace rubato::cli {

/// An operation of the server.
struct ServerCost {
    double seconds = 0;       ///< each
    double per_gradient = 0;  ///< how many of them
};

struct Side {
    std::vector<WorkerPhases> workers;
    std::vector<WorkerSpeed> speeds;  ///< by worker
    ServerCost push, update, pull;

    int lambda() const { return static_cast<int>(workers.size()); }
};

/// `phases` by run.
Side mean_side(const std::vector<RecordedRun>& runs, const std::vector<RunPhases>& phases);

/// What a second of a worker per gradient of its own is in seconds of a worker per gradient of the run, so that gaps
/// add up. With s seconds per own gradient a worker makes 1/s gradients a second, so that the whole has
/// H = lambda / sum(1/s) seconds per gradient, and exactly
///
///     H' - H = sum over workers of weight * (s' - s),  weight = lambda / (R R' s s'),  R = sum(1/s)
///
/// where s is a sum over causes. For equal workers the weight is 1/lambda.
struct Weights {
    std::vector<double> of_worker;       ///< 0 where one of the sides has no gradient of the worker
    double predicted = 0, measured = 0;  ///< H of both sides; 0 where a side has no gradient

    Weights(const Side& predicted_side, const Side& measured_side);
    /// What a worker that has gradients on the other side only takes from H of that side.
    double of_lost(const WorkerPhases& here, const WorkerPhases& there) const;

private:
    double scale_ = 0;
};

}  // namespace rubato::cli
