#include "trace/summary.hpp"

#include "trace/environment.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string_view>

namespace rubato::trace {
namespace {

using Json = nlohmann::ordered_json;

template <class Number>
Json or_null(const std::optional<Number>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json number(double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json number(const std::optional<double>& value) {
    return value ? number(*value) : Json(nullptr);
}

Json ratio(double part, double whole) {
    return whole > 0 ? number(part / whole) : Json(nullptr);
}

double seconds(Time ns) {
    return static_cast<double>(ns) / 1e9;
}

Json or_null_seconds(const std::optional<std::int64_t>& ns) {
    return ns ? Json(seconds(*ns)) : Json(nullptr);
}

Json throughput(const Figures& figures, const SteadyFigures& steady) {
    const double time_s = seconds(figures.last_update_ns);
    return {{"samples_per_s", ratio(static_cast<double>(figures.samples), time_s)},
            {"gradients_per_s", ratio(static_cast<double>(figures.outcomes.applied), time_s)},
            {"updates_per_s", ratio(static_cast<double>(figures.updates), time_s)},
            {"steady_samples_per_s", number(steady.samples_per_s)},
            {"steady_ci95", number(steady.samples_per_s_ci95)}};
}

Json staleness(const Histogram& histogram, const SteadyFigures& steady) {
    return {{"mean", number(histogram.mean())},
            {"max", histogram.total() > 0 ? Json(histogram.max()) : Json(nullptr)},
            {"p50", or_null(histogram.percentile(50))},
            {"p99", or_null(histogram.percentile(99))},
            {"steady_mean", number(steady.staleness_mean)},
            {"histogram", histogram.counts()}};
}

void add_learning(Json& out, const Figures& figures, const DriverReport& report) {
    out["train_loss"] = number(figures.train_loss);
    out["valid_error"] = number(figures.metrics.valid_error);
    out["test_error"] = number(figures.metrics.test_error);
    out["best_valid_error"] = number(figures.best_valid_error);
    out["weights_hash"] = report.weights_hash ? Json(fmt::format("{:016x}", *report.weights_hash)) : Json(nullptr);
    const auto& target = figures.target;
    out["time_to_target_s"] = target ? number(seconds(target->time_ns)) : Json(nullptr);
    out["updates_to_target"] = target ? Json(target->updates) : Json(nullptr);
    out["samples_to_target"] = target ? Json(target->samples) : Json(nullptr);
    out["valid_loss"] = number(figures.metrics.valid_loss);
    out["test_loss"] = number(figures.metrics.test_loss);
    out["gradient_norm"] = number(figures.metrics.gradient_norm);
    out["suboptimality"] = number(figures.metrics.suboptimality);
}

/// What shards have is theirs; the staleness of the whole summary is that of shard 0. Of one server there is nothing.
Json shards(const Figures& figures, const DriverReport& report) {
    Json each = Json::array();
    for (std::size_t shard = 0; shard < figures.shards.size(); ++shard) {
        const Figures::PerShard& it = figures.shards[shard];
        Json one{{"role", it.role}, {"parameters", it.parameters}};
        if (shard < report.servers.size()) {
            one["bytes_in"] = report.servers[shard].bytes_in;
            one["bytes_out"] = report.servers[shard].bytes_out;
        }
        one["updates"] = it.updates;
        one["applied"] = it.outcomes.applied;
        one["dropped"] = it.outcomes.dropped;
        one["cancelled"] = it.outcomes.cancelled;
        one["leftover"] = it.outcomes.leftover;
        one["staleness_mean"] = number(it.staleness.mean());
        one["staleness_max"] = it.staleness.total() > 0 ? Json(it.staleness.max()) : Json(nullptr);
        one["staleness_histogram"] = it.staleness.counts();
        each.push_back(one);
    }
    return {{"staleness_mean", number(figures.shards_staleness())},
            {"mixed_gradients", or_null(figures.mixed_gradients())},
            {"each", each}};
}

/// Each name once, in the order of the roles.
Json unique_names(const std::vector<Place>& places, std::string Place::*name) {
    Json names = Json::array();
    std::set<std::string_view> seen;
    for (const Place& place : places)
        if (!(place.*name).empty() && seen.insert(place.*name).second) names.push_back(place.*name);
    return names;
}

Json environment(const RecorderOptions& options) {
    auto libraries = library_versions();
    libraries["nlohmann_json"] =
        fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH);
    for (const auto& [library, version] : options.libraries) libraries[library] = version;
    return {{"version", program_version()},
            {"revision", program_revision()},
            {"compiler", compiler()},
            {"libraries", libraries},
            {"hosts", unique_names(options.places, &Place::host)},
            {"devices", unique_names(options.places, &Place::device)},
            {"command", options.command}};
}

/// What the run was, beside what came of it, so that a table of many runs needs no other file.
Json setting(const Scenario& scenario) {
    const auto or_none = [](const std::string& name) { return name.empty() ? Json(nullptr) : Json(name); };
    return {{"protocol", or_none(scenario.protocol.name)},
            {"topology", or_none(scenario.topology)},
            {"workers", scenario.lambda()},
            {"batch_size", scenario.workers.batch_size},
            {"global_batch", std::int64_t{scenario.lambda()} * scenario.workers.batch_size},
            {"model", or_none(scenario.model.name)},
            {"cost", or_none(scenario.cost.model)}};
}

/// What the order of the updates was taken from, where it is not the run's own.
Json schedule(const Scenario& scenario, const RecorderOptions& options) {
    if (!options.recomputed)
        return scenario.schedule.trace.empty() ? Json(nullptr) : Json{{"trace", scenario.schedule.trace}};
    const RecomputedRun& run = *options.recomputed;
    const auto or_none = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
    return {{"run", run.directory},
            {"backend", or_none(run.backend)},
            {"status", or_none(run.status)},
            {"weights_hash", or_none(run.weights_hash)},
            {"set", run.sets}};
}

std::string one_line_a_key(const Json& object) {
    std::string text = "{";
    for (const auto& [key, value] : object.items()) {
        text += text.size() > 1 ? ",\n " : "\n ";
        // Names may hold any bytes; the text must be valid UTF-8 all the same.
        text += Json(key).dump() + ": " + value.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    return text + "\n}\n";
}

template <class Value>
void read(const Json& object, const char* key, Value& out) {
    const Json& value = object.at(key);
    if (!value.is_null()) out = value.get<Value>();
}

void read(const Json& object, const char* key, std::optional<double>& out) {
    const Json& value = object.at(key);
    if (!value.is_null()) out = value.get<double>();
}

}  // namespace

std::string summary_text(const Scenario& scenario, const RecorderOptions& options, const Figures& figures,
                         const DriverReport& report) {
    const SteadyFigures steady = figures.steady.figures();
    const Figures::WorkerTimes times = figures.worker_times();
    const double compute = seconds(times.compute_ns), exposed = seconds(times.exposed_ns);
    const double hidden = seconds(times.hidden_ns);
    const Outcomes& gradients = figures.outcomes;
    Json out;
    out["trace_version"] = 1;
    out["scenario"] = scenario.name;
    out["backend"] = report.backend;
    out["clock"] = report.virtual_clock ? "virtual" : "wall";
    out["seed"] = scenario.seed;
    out["status"] = std::string(name(report.status));
    out["status_detail"] = report.detail.empty() ? Json(nullptr) : Json(report.detail);
    out["time_s"] = seconds(figures.last_update_ns);
    out["epochs"] = figures.epochs();
    out["samples"] = figures.samples;
    out["gradients"] = {{"applied", gradients.applied},
                        {"dropped", gradients.dropped},
                        {"cancelled", gradients.cancelled},
                        {"leftover", gradients.leftover}};
    out["updates"] = figures.updates;
    out["warm_start_updates"] = figures.warm_start_updates;
    out["warm_start_s"] = seconds(figures.warm_start_ns);
    out["throughput"] = throughput(figures, steady);
    out["staleness"] = staleness(figures.staleness, steady);
    out["compute_utilization"] = ratio(compute, compute + exposed);
    out["communication_hidden_fraction"] = ratio(hidden, hidden + exposed);
    out["seconds"] = {{"compute", compute}, {"exposed_communication", exposed}, {"wait", seconds(times.wait_ns)}};
    out["traffic"] = {
        {"messages", report.messages}, {"bytes", report.bytes}, {"control_messages", report.control_messages}};
    add_learning(out, figures, report);
    out["setting"] = setting(scenario);
    out["schedule"] = schedule(scenario, options);
    out["faults"] = {
        {"crashes", figures.faults.crashes}, {"returns", figures.faults.returns}, {"links", figures.faults.links}};
    out["shards"] = shards(figures, report);
    out["engine"] = {{"wall_s", number(report.wall_s)},
                     {"messages_per_s", ratio(static_cast<double>(report.messages), report.wall_s)},
                     {"peak_rss_bytes", peak_rss_bytes()},
                     {"ranks", report.ranks},
                     {"oversubscribed", report.oversubscribed},
                     {"clock_residual_s", or_null_seconds(report.clock_residual_ns)}};
    out["environment"] = environment(options);
    return one_line_a_key(out);
}

SummaryView read_summary(const std::string& text) try {
    const Json json = Json::parse(text);
    SummaryView view;
    read(json, "scenario", view.scenario);
    read(json, "backend", view.backend);
    read(json, "clock", view.clock);
    read(json, "status", view.status);
    read(json, "status_detail", view.status_detail);
    read(json, "weights_hash", view.weights_hash);
    read(json, "time_s", view.time_s);
    read(json, "epochs", view.epochs);
    read(json, "samples", view.samples);
    read(json, "updates", view.updates);
    const Json& gradients = json.at("gradients");
    read(gradients, "applied", view.gradients.applied);
    read(gradients, "dropped", view.gradients.dropped);
    read(gradients, "cancelled", view.gradients.cancelled);
    read(gradients, "leftover", view.gradients.leftover);
    const Json& throughput = json.at("throughput");
    read(throughput, "samples_per_s", view.samples_per_s);
    read(throughput, "gradients_per_s", view.gradients_per_s);
    read(throughput, "updates_per_s", view.updates_per_s);
    read(throughput, "steady_samples_per_s", view.steady_samples_per_s);
    const Json& staleness = json.at("staleness");
    read(staleness, "mean", view.staleness_mean);
    read(staleness, "p99", view.staleness_p99);
    read(staleness, "max", view.staleness_max);
    read(staleness, "steady_mean", view.staleness_steady_mean);
    read(staleness, "histogram", view.histogram);
    for (const std::int64_t count : view.histogram) view.histogram_total += count;
    read(json, "compute_utilization", view.compute_utilization);
    read(json, "train_loss", view.train_loss);
    read(json, "valid_error", view.valid_error);
    read(json, "best_valid_error", view.best_valid_error);
    read(json, "test_error", view.test_error);
    read(json, "time_to_target_s", view.time_to_target_s);
    const auto shards = json.find("shards");  // not in those of earlier versions
    if (shards == json.end() || shards->at("each").empty()) return view;
    for (const Json& shard : shards->at("each")) view.shard_bytes.push_back(shard.value("bytes_in", std::int64_t{0}));
    read(*shards, "staleness_mean", view.shards_staleness);
    read(*shards, "mixed_gradients", view.mixed_gradients);
    return view;
} catch (const nlohmann::json::exception& error) {
    // Without the library's own number of the error.
    const std::string what = error.what();
    const auto end = what.find("] ");
    throw std::invalid_argument("not a summary: " + (end == std::string::npos ? what : what.substr(end + 2)));
}

}  // namespace rubato::trace
