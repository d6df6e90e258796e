// Recorded steps, computed again: the weights and losses of the run, whatever the buffers are called and however the
// logs of its hosts were merged.
#include "sim/recorded_steps.hpp"
#include "sim/replay/verification.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::test;

namespace {

struct Recomputed {
    std::optional<std::uint64_t> hash;
    std::string loss_difference, evaluation_difference;
    std::int64_t gradients = 0, outstanding = 0;
};

Recomputed recompute(const Recorded& run, const std::vector<Logged>& steps, int threads = 2) {
    sim::Verification verification;
    sim::Recomputation recomputation(run.scenario, *run.task, {threads, true}, verification);
    for (const auto& step : steps) recomputation.take(step.now, step.role, step.event, step.actions);
    recomputation.end();
    return {recomputation.weights_hash(), verification.loss_difference(), verification.evaluation_difference(),
            recomputation.gradients(), recomputation.outstanding()};
}

void check_same(const Recorded& run, const Recomputed& outcome) {
    CHECK(outcome.loss_difference == "");
    CHECK(outcome.evaluation_difference == "");
    CHECK(outcome.gradients == run.gradients);
    CHECK(outcome.outstanding == 0);
    REQUIRE(outcome.hash.has_value());
    CHECK(*outcome.hash == *run.report.weights_hash);
}

}  // namespace

TEST_CASE("recomputation: the weights, losses and evaluations of the run, whatever the number of threads") {
    for (const char* protocol : {"hardsync", "n-softsync", "async"})
        for (const int lambda : {1, 2, 7}) {
            if (std::string_view(protocol) == "n-softsync" && lambda == 1) continue;
            const auto run = record(protocol, lambda);
            REQUIRE(run.report.status == Status::finished);
            CAPTURE(protocol);
            CAPTURE(lambda);
            for (const int threads : {1, 2, 4}) check_same(run, recompute(run, run.steps, threads));
        }
}

TEST_CASE("recomputation: buffers that each role counts for itself, and logs that are merged by bad clocks") {
    for (const char* protocol : {"hardsync", "n-softsync", "async"}) {
        const auto run = record(protocol, 6);
        const auto renamed = Renamed()(run.steps);
        CAPTURE(protocol);
        check_same(run, recompute(run, renamed));
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            CAPTURE(seed);
            check_same(run, recompute(run, merged_anyhow(renamed, seed), 1 + static_cast<int>(seed % 3)));
        }
    }
}

TEST_CASE("recomputation: runs that a signal or a lost peer ended") {
    for (const std::int64_t after : {20, 41, 75}) {
        const auto run = record("n-softsync", 5, after);
        REQUIRE(run.report.status == Status::interrupted);
        check_same(run, recompute(run, run.steps));
        const auto lost = record("async", 5, -1, static_cast<int>(after));
        REQUIRE(lost.report.status == Status::peer_lost);
        const auto outcome = recompute(lost, lost.steps);
        CHECK(outcome.loss_difference == "");
        CHECK(outcome.gradients == lost.gradients);
        CHECK(outcome.hash == lost.report.weights_hash);
    }
}

TEST_CASE("recomputation: what a lost role sent beyond its log is computed from what was told of it") {
    for (const char* protocol : {"hardsync", "n-softsync", "async"})
        for (const std::size_t kept : {0, 1, 2, 7, 20}) {
            const auto run = record(protocol, 3);
            auto steps = run.steps;
            std::size_t number = 0;
            std::erase_if(steps, [&](const Logged& step) { return step.role == 2 && number++ >= kept; });
            CAPTURE(protocol);
            CAPTURE(kept);
            REQUIRE(number > kept);
            const auto outcome = recompute(run, steps);
            CHECK(outcome.loss_difference == "");
            // But for one that it may have computed and never sent.
            CHECK(outcome.gradients >= run.gradients - 1);
            CHECK(outcome.hash == run.report.weights_hash);
        }
}

TEST_CASE("recomputation: what a lost role cannot have sent is no gradient of its") {
    const auto run = record("async", 3);
    auto steps = run.steps;
    std::erase_if(steps, [&](const Logged& step) { return step.role == 2; });
    const auto pushed = [](const Logged& step) {
        const auto* delivered = std::get_if<Delivered>(&step.event);
        return delivered != nullptr && delivered->from == 2 && std::holds_alternative<Push>(delivered->message);
    };
    const auto it = std::find_if(steps.begin(), steps.end(), pushed);
    REQUIRE(it != steps.end());
    auto& push = std::get<Push>(std::get<Delivered>(it->event).message);
    push.loss = std::nextafter(push.loss, 2.0);
    CHECK(recompute(run, steps).loss_difference.starts_with("the loss of gradient 0 of worker 1 is "));
    push.read_version = 1000;
    CHECK_THROWS_AS(recompute(run, steps), sim::InconsistentLog);
}

TEST_CASE("recomputation: where what a lost role sent cannot be told, it goes as far as it can, and says so") {
    const TreeSpec tree{2, 2, false, false};
    const ShardsSpec shards{2, false, false};
    int cut = 0;
    for (const bool sharded : {false, true}) {
        const auto whole = sharded ? record("async", 4, -1, -1, momentum(), {}, nullptr, &shards)
                                   : record("n-softsync", 4, -1, -1, momentum(), {}, &tree);
        REQUIRE(whole.report.status == Status::finished);
        for (RoleId lost = 1; lost < roles_of(whole.scenario); ++lost) {
            for (const std::size_t left : {3u, 20u, 60u}) {
                CAPTURE(lost);
                CAPTURE(left);
                std::vector<Logged> steps;
                std::size_t seen = 0;
                for (const auto& step : whole.steps)
                    if (step.role != lost || seen++ < left) steps.push_back(step);
                sim::Verification verification;
                sim::Recomputation recomputation(whole.scenario, *whole.task, {2, true}, verification);
                REQUIRE_NOTHROW({
                    for (const auto& step : steps) recomputation.take(step.now, step.role, step.event, step.actions);
                    recomputation.end();
                });
                CHECK(verification.loss_difference() == "");
                CHECK(recomputation.gradients() <= whole.gradients);
                if (recomputation.cut().empty()) continue;
                ++cut;
                CHECK(recomputation.cut().find(role_name(lost, whole.scenario)) != std::string::npos);
            }
        }
    }
    CHECK(cut > 10);
}

TEST_CASE("recomputation: what differs is named") {
    auto run = record("async", 4);
    auto steps = run.steps;
    int number = 0;
    for (auto& step : steps)
        if (auto* ready = std::get_if<GradientReady>(&step.event); ready && ++number >= 5)
            ready->loss = std::nextafter(ready->loss, 2.0);
    const auto losses = recompute(run, steps);
    CHECK(losses.loss_difference.starts_with("the loss of gradient "));
    CHECK(losses.hash == run.report.weights_hash);

    steps = run.steps;
    for (auto& step : steps)
        if (auto* evaluated = std::get_if<Evaluated>(&step.event)) evaluated->metrics.test_error = 0.5;
    CHECK(recompute(run, steps).evaluation_difference.starts_with("test_error of version 0 is "));

    run.scenario.optimizer.momentum = 0.8;
    const auto weights = recompute(run, run.steps);
    CHECK(weights.loss_difference != "");
    CHECK(weights.hash != run.report.weights_hash);
}

TEST_CASE("recomputation: a log that contradicts itself is told as such") {
    const auto run = record("async", 3);
    const auto fails = [&](const std::vector<Logged>& steps) -> std::string {
        try {
            recompute(run, steps);
        } catch (const sim::InconsistentLog& problem) {
            return problem.what();
        }
        return "";
    };
    // The last push of a worker is asked for by nobody.
    auto steps = run.steps;
    for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
        auto& list = it->actions.list;
        if (it->role == 0 || list.empty() || !std::holds_alternative<Send>(list.front())) continue;
        if (!std::holds_alternative<Push>(std::get<Send>(list.front()).message)) continue;
        list.erase(list.begin());
        break;
    }
    CHECK(fails(steps).find("nobody sent") != std::string::npos);
    steps = run.steps;
    for (auto& step : steps)
        if (auto* delivered = std::get_if<Delivered>(&step.event))
            if (auto* push = std::get_if<Push>(&delivered->message)) push->worker_seq += 1;
    CHECK(fails(steps).find("another message than worker") != std::string::npos);
    steps = run.steps;
    for (auto& step : steps)
        if (auto* ready = std::get_if<GradientReady>(&step.event)) ready->id += 1000;
    CHECK(fails(steps).find("not under way") != std::string::npos);
    steps = run.steps;
    std::get<Start>(steps.front().event).weights += 1000;
    CHECK(fails(steps).find("never given") != std::string::npos);
}
