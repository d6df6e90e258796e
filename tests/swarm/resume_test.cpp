// Runs that are cut off at a checkpoint and go on from it, over scenarios that a seed draws.
#include "swarm/parts.hpp"

#include <algorithm>

using namespace rubato;
using namespace rubato::test;

namespace {

void check_whole(const Draw& it, const Ledger& whole, bool epochs) {
    Scenario scenario = it.scenario;
    if (!epochs) scenario.stop = {};
    check_books(scenario, it.samples, whole, whole.told());
    demand(static_cast<int>(whole.workers.size()) == scenario.lambda(), "a worker has no books");
}

/// Books of workers add up to the whole of the run, also where it was cut: all but the work of the server during
/// which a worker may have heard of the end.
void check_times(const Draw& it, const Ledger& whole) {
    const auto& cost = it.scenario.cluster.server;
    const double last_s = cost.update_s + (cost.push_s + cost.pull_s) * it.scenario.lambda();
    const Time end = whole.updates.empty() ? 0 : whole.updates.back().time_ns - static_cast<Time>(last_s * 1e9);
    for (const auto& row : whole.workers) demand(row.sum_ns() >= end, "a worker's books miss a part of the run");
}

}  // namespace

TEST_CASE("resume: the books of both parts balance as those of one run, whatever the seed draws") {
    int resumed = 0;
    for (std::uint64_t seed = 1; seed <= 120; ++seed) {
        INFO("seed ", seed);
        Draw it = draw(seed);
        it.scenario.checkpoint.every_updates = 1 + static_cast<std::int64_t>(seed % 23) * 2;
        const TemporaryDirectory folder;
        const auto undisturbed = run_part(it, nullptr, folder.path(), nullptr);
        const auto from = newest(folder.path());
        if (!from) continue;
        ++resumed;
        const auto& state = from->head.roles.server;
        const auto rest = run_part(it, nullptr, folder.path(), &*from);
        const auto whole = joined(undisturbed.at_save.at(state.version), rest.ledger);
        REQUIRE(rest.report.status == Status::finished);
        REQUIRE_NOTHROW(check_whole(it, whole, true));
        REQUIRE_NOTHROW(check_times(it, whole));
    }
    CHECK(resumed > 40);
}

TEST_CASE("resume: a signal at any step leaves a state from which each sample is used once an epoch") {
    int in_a_round = 0;
    for (std::uint64_t seed = 1; seed <= 120; ++seed) {
        INFO("seed ", seed);
        Draw it = draw(seed);
        it.scenario.stop = {};
        it.scenario.stop.epochs = 3;
        it.scenario.data.sampling = Sampling::shared_epoch;
        it.scenario.checkpoint.every_epochs = 100;  // only that of the signal
        const TemporaryDirectory folder;
        const auto first = run_part(it, nullptr, folder.path(), nullptr, static_cast<std::int64_t>(3 * seed));
        const auto from = newest(folder.path());
        if (!from) continue;
        if (!from->head.roles.server.again.empty()) ++in_a_round;
        // A second signal, soon after: what was not yet dealt again is not forgotten.
        const auto second = run_part(it, nullptr, folder.path(), &*from, static_cast<std::int64_t>(seed % 50));
        const auto again = newest(folder.path());
        const bool moved = again->head.version() > from->head.version();
        Ledger so_far = first.at_save.at(from->head.version());
        if (moved) so_far = joined(so_far, second.at_save.at(again->head.version()));
        const auto third = run_part(it, nullptr, folder.path(), &*again);
        const Ledger whole = joined(so_far, third.ledger);
        REQUIRE(third.report.status == Status::finished);
        REQUIRE_NOTHROW(check_whole(it, whole, true));
        std::map<std::pair<std::int32_t, std::int64_t>, int> times;
        for (const auto& row : whole.gradients)
            for (std::int64_t i = 0; i < row.batch.count; ++i) ++times[{row.batch.epoch, row.batch.first + i}];
        REQUIRE(static_cast<std::int64_t>(times.size()) == 3 * it.samples);
        for (const auto& [position, count] : times) REQUIRE(count == 1);
    }
    CHECK(in_a_round > 20);
}

TEST_CASE("resume: hardsync and a single worker end with the weights of an undisturbed run, others may not") {
    const std::tuple<const char*, int, int> kinds[] = {{"hardsync", 4, 1},   {"hardsync", 3, 1}, {"async", 1, 1},
                                                       {"n-softsync", 1, 1}, {"hardsync", 3, 3}, {"async", 1, 2}};
    for (const auto& [protocol, lambda, push_every] : kinds)
        for (const bool pause : {false, true})
            for (const std::int64_t every : {1, 5, 13}) {
                CAPTURE(protocol);
                CAPTURE(every);
                CAPTURE(push_every);
                Draw it;
                it.samples = 121;
                it.scenario = learning_scenario(protocol, lambda, push_every == 1 ? 7 : 2);
                it.scenario.workers.communication.push_every = push_every;
                it.scenario.stop.epochs = 3;
                it.scenario.evaluate.every_epochs = 0.5;
                if (pause) it.scenario.evaluate.mode = EvaluateSpec::Mode::pause;
                it.scenario.optimizer.name = "momentum";
                it.scenario.optimizer.momentum = 0.9;
                it.scenario.optimizer.schedule = {{1.5, 0.1}};
                it.scenario.checkpoint.every_updates = every;
                const auto task = learn::make_task(it.scenario);
                const TemporaryDirectory folder;
                const auto undisturbed = run_part(it, task.get(), folder.path(), nullptr);
                const auto from = newest(folder.path());
                REQUIRE(from);
                const auto rest = run_part(it, task.get(), folder.path(), &*from);
                REQUIRE(rest.report.weights_hash == undisturbed.report.weights_hash);
                const auto whole = joined(undisturbed.at_save.at(from->head.version()), rest.ledger);
                REQUIRE(whole.gradients.size() == undisturbed.ledger.gradients.size());
                REQUIRE(whole.evals.size() == undisturbed.ledger.evals.size());
                // A worker that asks for weights is spared one inquiry.
                if (it.scenario.protocol.name != "hardsync") continue;
                REQUIRE(whole.updates == undisturbed.ledger.updates);
                REQUIRE(whole.evals == undisturbed.ledger.evals);
            }
}

TEST_CASE("resume: saving changes nothing of the run") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        INFO("seed ", seed);
        Draw it = draw(seed);
        const auto plain = simulate(it.scenario, it.samples, it.network);
        it.scenario.checkpoint.every_updates = 3;
        const auto saved = simulate(it.scenario, it.samples, it.network);
        REQUIRE(saved.ledger.gradients == plain.ledger.gradients);
        REQUIRE(saved.ledger.updates == plain.ledger.updates);
        REQUIRE(saved.ledger.workers == plain.ledger.workers);
    }
}
