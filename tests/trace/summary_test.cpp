#include "trace/summary.hpp"

#include "trace/support.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <stdexcept>

using namespace rubato;
using namespace rubato::trace;
using nlohmann::json;
using rubato::trace_test::small_scenario;

namespace {

constexpr Time second = 1'000'000'000;

RecorderOptions options() {
    RecorderOptions out;
    out.samples = 100;
    out.command = "rubato run small.json";
    out.places = {{"a", ""}, {"b", "cpu"}, {"a", "cpu"}};
    out.libraries = {{"simgrid", "3.32"}};
    return out;
}

/// Two workers, four updates in four seconds, staleness 0, 1, 1, 1.
Actions rows() {
    Actions actions;
    for (int i = 0; i < 4; ++i) {
        GradientRow row;
        row.seq = i;
        row.worker = i % 2;
        row.read_version = i == 0 ? 0 : i - 1;
        row.apply_version = i;
        row.samples = 10;
        actions.gradients.push_back(row);
        actions.updates.push_back({(i + 1) * second, i + 1, 0, 1, i == 0 ? 0.0 : 1.0, 10});
    }
    for (WorkerId worker = 0; worker < 2; ++worker) {
        WorkerRow row;
        row.worker = worker;
        row.compute_ns = 2 * second;
        row.push_queued_ns = second / 10;
        row.push_moving_ns = second / 10;
        row.pull_request_ns = second / 10;
        row.pull_moving_ns = second / 10;
        row.apply_wait_ns = second / 10;
        row.policy_wait_ns = second;
        row.idle_ns = second / 2;
        actions.workers.push_back(row);
    }
    EvalRow eval;
    eval.time_ns = 4 * second;
    eval.version = 4;
    eval.train_loss = 2.5;
    eval.metrics.valid_error = 0.25;
    actions.evals.push_back(eval);
    return actions;
}

DriverReport report() {
    DriverReport out;
    out.backend = "sim";
    out.messages = 8;
    out.bytes = 800;
    out.control_messages = 5;
    out.wall_s = 0.5;
    out.weights_hash = 0xabcdef;
    return out;
}

json summary(const Actions& actions, const DriverReport& the_report) {
    Figures figures(small_scenario(), 100);
    figures.add(actions);
    return json::parse(summary_text(small_scenario(), options(), figures, the_report));
}

}  // namespace

TEST_CASE("the figures of a run are those that the hand computes") {
    const json out = summary(rows(), report());
    CHECK(out["trace_version"] == 1);
    CHECK(out["scenario"] == "small");
    CHECK(out["backend"] == "sim");
    CHECK(out["clock"] == "virtual");
    CHECK(out["seed"] == 7);
    CHECK(out["status"] == "finished");
    CHECK(out["status_detail"] == nullptr);
    CHECK(out["time_s"] == 4.0);
    CHECK(out["epochs"] == 0.4);
    CHECK(out["samples"] == 40);
    CHECK(out["gradients"] == json{{"applied", 4}, {"dropped", 0}, {"cancelled", 0}, {"leftover", 0}});
    CHECK(out["updates"] == 4);
    CHECK(out["throughput"]["samples_per_s"] == 10.0);
    CHECK(out["throughput"]["gradients_per_s"] == 1.0);
    CHECK(out["throughput"]["updates_per_s"] == 1.0);
    CHECK(out["throughput"]["steady_samples_per_s"] == 10.0);
    CHECK(out["throughput"]["steady_ci95"] == nullptr);
    CHECK(out["staleness"]["mean"] == 0.75);
    CHECK(out["staleness"]["max"] == 1);
    CHECK(out["staleness"]["p50"] == 1);
    CHECK(out["staleness"]["p99"] == 1);
    CHECK(out["staleness"]["steady_mean"] == 0.75);
    CHECK(out["staleness"]["histogram"] == json{1, 3});
    CHECK(out["compute_utilization"].get<double>() == doctest::Approx(0.8));  // 4 / (4 + 1)
    CHECK(out["communication_hidden_fraction"] == 0.0);
    CHECK(out["seconds"]["compute"] == 4.0);
    CHECK(out["seconds"]["exposed_communication"] == 1.0);
    CHECK(out["seconds"]["wait"] == 2.0);
    CHECK(out["traffic"]["messages"] == 8);
    CHECK(out["traffic"]["bytes"] == 800);
    CHECK(out["train_loss"] == 2.5);
    CHECK(out["valid_error"] == 0.25);
    CHECK(out["best_valid_error"] == 0.25);
    CHECK(out["test_error"] == nullptr);
    CHECK(out["weights_hash"] == "0000000000abcdef");
    CHECK(out["time_to_target_s"] == nullptr);
    CHECK(out["engine"]["wall_s"] == 0.5);
    CHECK(out["engine"]["messages_per_s"] == 16.0);
    CHECK(out["engine"]["peak_rss_bytes"] > 1'000'000);
    CHECK(out["environment"]["hosts"] == json{"a", "b"});
    CHECK(out["environment"]["devices"] == json{"cpu"});
    CHECK(out["environment"]["command"] == "rubato run small.json");
    CHECK(out["environment"]["libraries"]["simgrid"] == "3.32");
    CHECK(out["environment"]["libraries"].contains("fmt"));
    CHECK_FALSE(out["environment"]["version"].get<std::string>().empty());
    CHECK(out["setting"]["global_batch"] == 20);
}

TEST_CASE("the keys of the contract are all there, also when nothing happened") {
    const json out = summary({}, {});
    for (const char* key : {"trace_version",
                            "scenario",
                            "backend",
                            "clock",
                            "seed",
                            "status",
                            "status_detail",
                            "time_s",
                            "epochs",
                            "samples",
                            "gradients",
                            "updates",
                            "throughput",
                            "staleness",
                            "compute_utilization",
                            "communication_hidden_fraction",
                            "seconds",
                            "traffic",
                            "train_loss",
                            "valid_error",
                            "test_error",
                            "best_valid_error",
                            "weights_hash",
                            "time_to_target_s",
                            "updates_to_target",
                            "samples_to_target",
                            "engine",
                            "environment"})
        CHECK_MESSAGE(out.contains(key), key);
    CHECK(out["throughput"]["samples_per_s"] == nullptr);
    CHECK(out["staleness"]["mean"] == nullptr);
    CHECK(out["staleness"]["histogram"] == json::array());
    CHECK(out["compute_utilization"] == nullptr);
    CHECK(out["communication_hidden_fraction"] == nullptr);
    CHECK(out["weights_hash"] == nullptr);
}

TEST_CASE("what is not finite and what is no UTF-8 never reaches the JSON") {
    Actions actions = rows();
    actions.evals[0].train_loss = std::numeric_limits<double>::quiet_NaN();
    actions.evals[0].metrics.valid_error = std::numeric_limits<double>::infinity();
    DriverReport the_report = report();
    the_report.status = Status::diverged;
    the_report.detail = "worker 1: \"loss\" \xff\n";
    the_report.wall_s = std::numeric_limits<double>::infinity();
    const json out = summary(actions, the_report);
    CHECK(out["status"] == "diverged");
    CHECK(out["train_loss"] == nullptr);
    CHECK(out["valid_error"] == nullptr);
    CHECK(out["best_valid_error"] == nullptr);
    CHECK(out["engine"]["wall_s"] == nullptr);
    CHECK(out["status_detail"].get<std::string>().starts_with("worker 1: \"loss\" "));
}

TEST_CASE("the table shows what a person wants to know first") {
    Figures figures(small_scenario(), 100);
    figures.add(rows());
    const std::string table =
        summary_table(summary_text(small_scenario(), options(), figures, report()), "runs/small-1");
    CHECK(table ==
          "run          small on sim\n"
          "status       finished\n"
          "time         4 s (virtual clock)\n"
          "epochs       0.4, 4 updates, 40 samples\n"
          "gradients    4 applied, 0 dropped, 0 cancelled, 0 left over\n"
          "throughput   10 samples/s, 1 updates/s\n"
          "staleness    mean 0.75, p99 1, max 1\n"
          "utilization  80.00 %\n"
          "train loss   2.5\n"
          "valid error  25.00 %, best 25.00 %\n"
          "weights      0000000000abcdef\n"
          "directory    runs/small-1\n");
    CHECK_THROWS_AS(summary_table("{}"), std::invalid_argument);
    CHECK_THROWS_AS(summary_table("{\"scenario\": "), std::invalid_argument);
}
