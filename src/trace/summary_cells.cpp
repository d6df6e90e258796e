#include "trace/summary_cells.hpp"

#include "trace/environment.hpp"
#include "trace/number_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string_view>

namespace rubato::trace {
namespace {

double seconds(Time ns) {
    return static_cast<double>(ns) / 1e9;
}

std::optional<double> ratio(double part, double whole) {
    return whole > 0 ? std::optional(part / whole) : std::nullopt;
}

template <class Put>
void put_learning(const Figures& figures, const DriverReport& report, Put&& put) {
    put("train_loss", figures.train_loss);
    put("valid_error", figures.metrics.valid_error);
    put("test_error", figures.metrics.test_error);
    put("best_valid_error", figures.best_valid_error);
    put("weights_hash", report.weights_hash ? fmt::format("{:016x}", *report.weights_hash) : std::string());
    const auto& target = figures.target;
    put("time_to_target_s", target ? std::optional(seconds(target->time_ns)) : std::nullopt);
    put("updates_to_target", target ? std::optional(target->updates) : std::nullopt);
    put("samples_to_target", target ? std::optional(target->samples) : std::nullopt);
    put("valid_loss", figures.metrics.valid_loss);
    put("test_loss", figures.metrics.test_loss);
    put("gradient_norm", figures.metrics.gradient_norm);
    put("suboptimality", figures.metrics.suboptimality);
}

/// Calls put(name, value) in the order of summary.json; the values are those that summary_text writes.
template <class Put>
void each(const Scenario& scenario, const Figures& figures, const DriverReport& report, Put&& put) {
    const SteadyFigures steady = figures.steady.figures();
    const Figures::WorkerTimes times = figures.worker_times();
    const double time_s = seconds(figures.last_update_ns);
    const double compute = seconds(times.compute_ns), exposed = seconds(times.exposed_ns);
    const Histogram& staleness = figures.staleness;
    put("time_s", time_s);
    put("epochs", figures.epochs());
    put("samples", figures.samples);
    put("gradients.applied", figures.outcomes.applied);
    put("gradients.dropped", figures.outcomes.dropped);
    put("gradients.cancelled", figures.outcomes.cancelled);
    put("gradients.leftover", figures.outcomes.leftover);
    put("updates", figures.updates);
    put("warm_start_updates", figures.warm_start_updates);
    put("warm_start_s", seconds(figures.warm_start_ns));
    put("throughput.samples_per_s", ratio(static_cast<double>(figures.samples), time_s));
    put("throughput.gradients_per_s", ratio(static_cast<double>(figures.outcomes.applied), time_s));
    put("throughput.updates_per_s", ratio(static_cast<double>(figures.updates), time_s));
    put("throughput.steady_samples_per_s", steady.samples_per_s);
    put("throughput.steady_ci95", steady.samples_per_s_ci95);
    put("staleness.mean", staleness.mean());
    put("staleness.max", staleness.total() > 0 ? std::optional(staleness.max()) : std::nullopt);
    put("staleness.p50", staleness.percentile(50));
    put("staleness.p99", staleness.percentile(99));
    put("staleness.steady_mean", steady.staleness_mean);
    put("compute_utilization", ratio(compute, compute + exposed));
    put("communication_hidden_fraction", ratio(seconds(times.hidden_ns), seconds(times.hidden_ns) + exposed));
    put("seconds.compute", compute);
    put("seconds.exposed_communication", exposed);
    put("seconds.wait", seconds(times.wait_ns));
    put("traffic.messages", report.messages);
    put("traffic.bytes", report.bytes);
    put("traffic.control_messages", report.control_messages);
    put_learning(figures, report, put);
    put("setting.protocol", scenario.protocol.name);
    put("setting.topology", scenario.topology);
    put("setting.workers", std::int64_t{scenario.lambda()});
    put("setting.batch_size", std::int64_t{scenario.workers.batch_size});
    put("setting.global_batch", std::int64_t{scenario.lambda()} * scenario.workers.batch_size);
    put("setting.model", scenario.model.name);
    put("setting.cost", scenario.cost.model);
    put("faults.crashes", figures.faults.crashes);
    put("faults.returns", figures.faults.returns);
    put("faults.links", figures.faults.links);
    put("shards.staleness_mean", figures.shards_staleness());
    put("shards.mixed_gradients", figures.mixed_gradients());
    put("engine.wall_s", report.wall_s);
    put("engine.messages_per_s", ratio(static_cast<double>(report.messages), report.wall_s));
    put("engine.peak_rss_bytes", peak_rss_bytes());
}

/// Appends a cell; commas stand before all but the first.
class CellWriter {
public:
    void operator()(const char*, std::int64_t value) { append_number(next(), value); }
    void operator()(const char*, const std::string& text) { next() += text; }
    void operator()(const char*, double value) {
        std::string& text = next();
        if (std::isfinite(value)) append_number(text, value);
    }
    template <class Number>
    void operator()(const char* name, const std::optional<Number>& value) {
        if (value)
            (*this)(name, *value);
        else
            next();
    }
    std::string take() { return std::move(text_); }

private:
    std::string& next() {
        if (!first_) text_ += ',';
        first_ = false;
        return text_;
    }

    std::string text_;
    bool first_ = true;
};

/// Collects the names.
struct NameWriter {
    std::vector<SummaryColumn>& columns;
    void operator()(const char* name, const std::string&) { columns.push_back({name, false}); }
    template <class Value>
    void operator()(const char* name, const Value&) {
        columns.push_back({name, !std::string_view(name).starts_with("setting.")});
    }
};

}  // namespace

const std::vector<SummaryColumn>& summary_columns() {
    static const auto columns = [] {
        std::vector<SummaryColumn> all;
        const Scenario scenario;
        each(scenario, Figures(scenario, 0), {}, NameWriter{all});
        return all;
    }();
    return columns;
}

std::string summary_cells(const Scenario& scenario, const Figures& figures, const DriverReport& report) {
    CellWriter cells;
    each(scenario, figures, report, cells);
    return cells.take();
}

}  // namespace rubato::trace
