// Calibration with the ranks of mpirun: rank 0 measures, the others compute and answer when it asks them to.
#pragma once

#include "cli/calibrate/measure.hpp"
#include "exec/mpi/fabric.hpp"

namespace rubato::cli {

/// Rank 0's side. The ranks after it stand for workers.
class RankSession {
public:
    RankSession(exec::Fabric& fabric, const learn::Task& task, const std::atomic<bool>* interrupted)
        : fabric_(fabric), task_(task), interrupted_(interrupted) {}
    /// Lets the others go.
    ~RankSession();
    RankSession(const RankSession&) = delete;
    RankSession& operator=(const RankSession&) = delete;

    /// Seconds of gradients while `workers` ranks compute at once.
    std::vector<double> gradients(int batch, int workers, double limit_s);
    /// Messages between rank 0 and each other one, or the first few of many.
    std::vector<RankTimes> messages(const std::vector<double>& bytes, double limit_s);

private:
    exec::Fabric& fabric_;
    const learn::Task& task_;
    const std::atomic<bool>* interrupted_;
};

/// The side of the others: returns when rank 0 lets them go.
void serve_calibration(exec::Fabric& fabric, const learn::Task& task);

}  // namespace rubato::cli
