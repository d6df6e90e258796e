#include "cli/compare/speeds.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace rubato::cli {
namespace {

struct Interval {
    Time begin_ns = 0, end_ns = 0;
    std::size_t worker = 0;
};

constexpr double shortest_quantile = 0.05;
/// Lengths are alike where they spread by less than this, and by less than half of what they would if links were
/// shared.
constexpr double alike = 0.1;

/// Changes the order of `values`, of which there are some.
double quantile(std::vector<double>& values, double at) {
    const auto rank = static_cast<std::ptrdiff_t>(at * static_cast<double>(values.size()));
    std::nth_element(values.begin(), values.begin() + rank, values.end());
    return values[static_cast<std::size_t>(rank)];
}

double spread(std::vector<double>& values) {
    const double median = quantile(values, 0.5);
    return median > 0 ? (quantile(values, 0.75) - quantile(values, 0.25)) / median : 0;
}

bool own_links(const TransferSpeed& speed) {
    return speed.length_spread < alike && speed.length_spread < speed.alone_spread / 2;
}

/// By worker. Sweeps over begins and ends: the integral of dt / (transfers under way) is known at every instant, and a
/// transfer has its difference between end and begin.
std::vector<TransferSpeed> transfers(const std::vector<Interval>& intervals, std::size_t lambda) {
    struct Edge {
        Time at_ns;
        bool begins;
        std::size_t interval;
    };
    std::vector<Edge> edges;
    for (std::size_t i = 0; i < intervals.size(); ++i) {
        edges.push_back({intervals[i].begin_ns, true, i});
        edges.push_back({intervals[i].end_ns, false, i});
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
        return std::tuple(a.at_ns, a.interval, !a.begins) < std::tuple(b.at_ns, b.interval, !b.begins);
    });
    std::vector<double> alone(intervals.size());
    std::vector<double> begun(intervals.size());
    double integral = 0;
    Time before_ns = 0;
    std::int64_t under_way = 0;
    for (const Edge& edge : edges) {
        if (under_way > 0) integral += to_seconds(edge.at_ns - before_ns) / static_cast<double>(under_way);
        before_ns = edge.at_ns;
        under_way += edge.begins ? 1 : -1;
        if (edge.begins)
            begun[edge.interval] = integral;
        else
            alone[edge.interval] = integral - begun[edge.interval];
    }
    std::vector<std::vector<double>> lengths(lambda), shared(lambda);
    std::vector<TransferSpeed> out(lambda);
    for (std::size_t i = 0; i < intervals.size(); ++i) {
        lengths[intervals[i].worker].push_back(to_seconds(intervals[i].end_ns - intervals[i].begin_ns));
        shared[intervals[i].worker].push_back(alone[i]);
        out[intervals[i].worker].alone_s += alone[i];
    }
    for (std::size_t w = 0; w < lambda; ++w) {
        if (lengths[w].empty()) continue;
        out[w].alone_s /= static_cast<double>(lengths[w].size());
        out[w].shortest_s = quantile(lengths[w], shortest_quantile);
        out[w].length_spread = spread(lengths[w]);
        out[w].alone_spread = spread(shared[w]);
    }
    return out;
}

void measure_compute(const std::vector<Cycle>& mine, std::pair<Time, Time> window, WorkerSpeed& speed) {
    double count = 0, sum = 0, squares = 0;
    for (const Cycle& cycle : mine) {
        if (!cycle.within(window) || cycle.row.outcome == Outcome::cancelled) continue;
        const double seconds = to_seconds(cycle.compute());
        ++count;
        const double before = sum / std::max(1.0, count - 1);
        sum += seconds;
        squares += (seconds - before) * (seconds - sum / count);
    }
    speed.known = count >= 2;
    if (!speed.known) return;
    speed.compute_s = sum / count;
    speed.compute_error_s = std::sqrt(squares / (count - 1) / count);
}

double ratio(double predicted, double measured) {
    return predicted > 0 && measured > 0 ? measured / predicted : 1;
}

}  // namespace

std::vector<WorkerSpeed> speeds_of(const RecordedRun& run) {
    std::vector<WorkerSpeed> out(run.workers.size());
    if (run.gradients.empty()) return out;
    const Cycles cycles(run);
    const auto window = cycles.window();
    std::vector<Interval> pushes, pulls;
    for (std::size_t w = 0; w < out.size(); ++w) {
        const auto& mine = cycles.by_worker()[w];
        measure_compute(mine, window, out[w]);
        for (const Cycle& cycle : mine) {
            if (!cycle.within(window)) continue;
            if (cycle.row.push_ns >= 0) pushes.push_back({cycle.push_ns(), cycle.taken_ns, w});
            pulls.push_back({cycles.weights_ns(cycle), cycle.row.begin_ns, w});
        }
    }
    const auto push = transfers(pushes, out.size()), pull = transfers(pulls, out.size());
    for (std::size_t w = 0; w < out.size(); ++w) {
        out[w].push = push[w];
        out[w].pull = pull[w];
    }
    return out;
}

double speed_ratio(const TransferSpeed& predicted, const TransferSpeed& measured) {
    const double shortest = ratio(predicted.shortest_s, measured.shortest_s);
    if (own_links(predicted) && own_links(measured)) return shortest;
    const double alone = ratio(predicted.alone_s, measured.alone_s);
    if ((shortest > 1) != (alone > 1)) return 1;
    return shortest > 1 ? std::min(shortest, alone) : std::max(shortest, alone);
}

}  // namespace rubato::cli
