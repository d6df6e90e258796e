#include "cli/compare/side.hpp"

#include <cmath>

namespace rubato::cli {
namespace {

double rate(const WorkerPhases& worker) {
    return worker.any ? 1 / worker.spent.sum() : 0;
}

ServerCost mean_cost(const std::vector<RecordedRun>& runs, std::int64_t trace::ServerRow::*count,
                     Time trace::ServerRow::*time) {
    double seconds = 0, number = 0, gradients = 0;
    for (const auto& run : runs) {
        gradients += static_cast<double>(run.summary.gradients.applied);
        for (const auto& server : run.servers) {
            seconds += to_seconds(server.*time);
            number += static_cast<double>(server.*count);
        }
    }
    return {number > 0 ? seconds / number : 0, gradients > 0 ? number / gradients : 0};
}

void add(TransferSpeed& sum, const TransferSpeed& other, double factor) {
    sum.shortest_s += factor * other.shortest_s;
    sum.alone_s += factor * other.alone_s;
    sum.length_spread += factor * other.length_spread;
    sum.alone_spread += factor * other.alone_spread;
}

/// Means of those that are known.
std::vector<WorkerSpeed> mean_speeds(const std::vector<RecordedRun>& runs, std::size_t lambda) {
    std::vector<WorkerSpeed> out(lambda);
    std::vector<double> counts(lambda);
    std::vector<std::vector<WorkerSpeed>> all;
    for (const auto& run : runs) {
        all.push_back(speeds_of(run));
        for (std::size_t w = 0; w < lambda; ++w) counts[w] += all.back()[w].known;
    }
    for (const auto& of_run : all) {
        for (std::size_t w = 0; w < lambda; ++w) {
            const WorkerSpeed& speed = of_run[w];
            if (!speed.known) continue;
            out[w].known = true;
            out[w].compute_s += speed.compute_s / counts[w];
            out[w].compute_error_s = std::hypot(out[w].compute_error_s, speed.compute_error_s / counts[w]);
            add(out[w].push, speed.push, 1 / counts[w]);
            add(out[w].pull, speed.pull, 1 / counts[w]);
        }
    }
    return out;
}

}  // namespace

Side mean_side(const std::vector<RecordedRun>& runs, const std::vector<RunPhases>& phases) {
    Side side;
    side.workers.resize(phases.front().workers.size());
    for (std::size_t w = 0; w < side.workers.size(); ++w) {
        double count = 0;
        for (const auto& run : phases) count += run.workers[w].any;
        for (const auto& run : phases) {
            const WorkerPhases& worker = run.workers[w];
            if (!worker.any) continue;
            side.workers[w].any = true;
            side.workers[w].spent.add(worker.spent, 1 / count);
            for (const auto& [other, parts] : worker.waited_for)
                side.workers[w].waited_for[other].add(parts, 1 / count);
        }
    }
    side.speeds = mean_speeds(runs, side.workers.size());
    side.push = mean_cost(runs, &trace::ServerRow::pushes, &trace::ServerRow::push_ns);
    side.update = mean_cost(runs, &trace::ServerRow::updates, &trace::ServerRow::update_ns);
    side.pull = mean_cost(runs, &trace::ServerRow::replies, &trace::ServerRow::pull_ns);
    return side;
}

Weights::Weights(const Side& predicted_side, const Side& measured_side) {
    const double lambda = predicted_side.lambda();
    double before = 0, after = 0;
    for (const auto& worker : predicted_side.workers) before += rate(worker);
    for (const auto& worker : measured_side.workers) after += rate(worker);
    if (before > 0 && after > 0) {
        predicted = lambda / before;
        measured = lambda / after;
        scale_ = lambda / (before * after);
    }
    for (std::size_t w = 0; w < predicted_side.workers.size(); ++w)
        of_worker.push_back(scale_ * rate(predicted_side.workers[w]) * rate(measured_side.workers[w]));
}

double Weights::of_lost(const WorkerPhases& here, const WorkerPhases& there) const {
    return !here.any && there.any ? scale_ * rate(there) : 0;
}

}  // namespace rubato::cli
