#include "cli/compare/figures.hpp"

#include "trace/steady.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::cli {
namespace {

using Values = std::vector<std::optional<double>>;

std::optional<Statistics> over_runs(const std::vector<Values>& runs, std::size_t kind) {
    std::vector<double> values;
    for (const auto& run : runs)
        if (run[kind]) values.push_back(*run[kind]);
    if (values.empty()) return std::nullopt;
    return statistics(values);
}

}  // namespace

const std::vector<FigureKind>& figure_kinds() {
    static const std::vector<FigureKind> kinds{
        {"throughput", "samples/s", "samples per second in the steady window"},
        {"updates", "1/s", "updates per second in the steady window"},
        {"gradients", "1/s", "applied gradients per second in the steady window"},
        {"staleness", "versions", "mean staleness in the steady window"},
        {"staleness_p99", "versions", "99th percentile of staleness over the whole run"},
        {"utilization", "", "compute_utilization of the whole run"},
        {"seconds", "s/gradient", "seconds of a worker per gradient; the causes below add up to it"},
        {"compute", "s/gradient", "computing"},
        {"push_queued", "s/gradient", "the push waits to move"},
        {"push_moving", "s/gradient", "the push moves"},
        {"pull_request", "s/gradient", "asking for weights until the reply moves"},
        {"pull_moving", "s/gradient", "the reply moves"},
        {"policy_wait", "s/gradient", "held back by the policy"},
        {"apply_wait", "s/gradient", "behind other work of the server"},
        {"idle", "s/gradient", "before the first and after the last piece of work"},
        {"train_loss", "", "the last training loss"},
        {"valid_error", "", "the last validation error"},
        {"test_error", "", "the last test error"},
        {"time_to_target", "s", "until stop.target was reached"},
    };
    return kinds;
}

Seconds seconds_per_gradient(const RunPhases& phases) {
    // A worker makes 1 / sum() gradients a second, and spends spent / sum() of each second on a cause.
    Seconds out;
    double rate = 0;
    for (const auto& worker : phases.workers) {
        if (!worker.any) continue;
        rate += 1 / worker.spent.sum();
        out.add(worker.spent, 1 / worker.spent.sum());
    }
    for (double& part : out) part = rate > 0 ? part / rate : 0;
    return out;
}

std::vector<std::optional<double>> figures_of(const RecordedRun& run, const RunPhases& phases) {
    const trace::SummaryView& summary = run.summary;
    trace::SteadyWindow window;
    for (const auto& row : run.updates) window.add(row);
    const auto [begin, end] = window.edges();
    const double seconds = static_cast<double>(end.time_ns - begin.time_ns) * 1e-9;
    const auto rate = [&, &from = begin, &to = end](std::int64_t trace::SteadyWindow::Mark::*count,
                                                    const std::optional<double>& otherwise) {
        return seconds > 0 ? std::optional(static_cast<double>(to.*count - from.*count) / seconds) : otherwise;
    };
    Values values{summary.steady_samples_per_s ? summary.steady_samples_per_s : summary.samples_per_s,
                  rate(&trace::SteadyWindow::Mark::updates, summary.updates_per_s),
                  rate(&trace::SteadyWindow::Mark::gradients, summary.gradients_per_s),
                  summary.staleness_steady_mean ? summary.staleness_steady_mean : summary.staleness_mean,
                  summary.staleness_p99,
                  summary.compute_utilization};
    const Seconds parts = seconds_per_gradient(phases);
    const bool known = parts.sum() > 0;
    values.push_back(known ? std::optional(parts.sum()) : std::nullopt);
    for (const double part : parts) values.push_back(known ? std::optional(part) : std::nullopt);
    for (const auto& figure : {summary.train_loss, summary.valid_error, summary.test_error, summary.time_to_target_s})
        values.push_back(figure);
    return values;
}

std::vector<ComparedFigure> compare_figures(const std::vector<Values>& predicted, const std::vector<Values>& measured) {
    std::vector<ComparedFigure> out;
    for (std::size_t i = 0; i < figure_kinds().size(); ++i) {
        ComparedFigure figure{&figure_kinds()[i], over_runs(predicted, i), over_runs(measured, i), {}};
        if (!figure.predicted && !figure.measured) continue;
        if (figure.predicted && figure.measured) {
            const double a = figure.predicted->mean, b = figure.measured->mean;
            if (b != 0)
                figure.error = (a - b) / std::fabs(b);
            else if (a == 0)
                figure.error = 0;
        }
        out.push_back(figure);
    }
    return out;
}

std::vector<double> staleness_distribution(const std::vector<RecordedRun>& runs) {
    std::vector<double> out;
    for (const auto& run : runs) {
        const auto& counts = run.summary.histogram;
        if (run.summary.histogram_total == 0) continue;
        out.resize(std::max(out.size(), counts.size()));
        for (std::size_t k = 0; k < counts.size(); ++k)
            out[k] += static_cast<double>(counts[k]) / static_cast<double>(run.summary.histogram_total);
    }
    double sum = 0;
    for (const double share : out) sum += share;
    for (double& share : out) share /= sum;
    return out;
}

double kolmogorov_smirnov(const std::vector<double>& a, const std::vector<double>& b) {
    double below_a = 0, below_b = 0, largest = 0;
    for (std::size_t k = 0; k < std::max(a.size(), b.size()); ++k) {
        below_a += k < a.size() ? a[k] : 0;
        below_b += k < b.size() ? b[k] : 0;
        largest = std::max(largest, std::fabs(below_a - below_b));
    }
    return largest;
}

}  // namespace rubato::cli
