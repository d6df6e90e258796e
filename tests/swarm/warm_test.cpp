// Warm starts of every policy: the rows of a hardsync run until the change, the promises of the policy after it.
#include "swarm/parts.hpp"
#include "swarm/policy_checker.hpp"
#include "swarm/policy_draw.hpp"

#include <cstdlib>

using namespace rubato;
using namespace rubato::test;

namespace {

Draw draw_warm() {
    Draw it = draw_cluster();
    draw_end(it);
    it.scenario.protocol = draw_protocol(it.scenario.lambda());
    const char* other = *rc::gen::element("", "", "hardsync", "n-softsync", "async");
    if (*other) it.scenario.protocol.name = other;
    it.scenario.protocol.warm_epochs = 0.25 * *rc::gen::inRange(1, 7);
    it.scenario.workers.communication = {};  // hardsync of single gradients: refused beside others
    return it;
}

void log(const Draw& it) {
    const auto& p = it.scenario.protocol;
    RC_LOG() << p.name << " lambda=" << it.scenario.lambda() << " seed=" << it.scenario.seed
             << " samples=" << it.samples << " batch=" << it.scenario.workers.batch_size << " warm=" << p.warm_epochs
             << " sampling=" << static_cast<int>(it.scenario.data.sampling) << "\n";
}

Simulated run(const Draw& it, const learn::Task* task) {
    auto run = simulate(it.scenario, it.samples, it.network, task);
    demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
    return run;
}

using Parts = std::map<Version, std::vector<std::tuple<WorkerId, std::int64_t, std::int64_t, std::int32_t, double>>>;

/// By version, what was applied: all but times.
Parts applied(const Ledger& ledger) {
    Parts out;
    for (const auto& row : ledger.gradients)
        if (row.outcome == Outcome::applied)
            out[row.apply_version].push_back({row.worker, row.worker_seq, row.batch.first, row.batch.epoch, row.scale});
    return out;
}

/// Updates of the warm start.
std::size_t warm_updates(const Draw& it, const Ledger& ledger) {
    const auto until = std::llround(it.scenario.protocol.warm_epochs * static_cast<double>(it.samples));
    std::int64_t samples = 0;
    std::size_t count = 0;
    for (; count < ledger.updates.size() && samples < until; ++count) samples += ledger.updates[count].samples;
    return count;
}

ProtocolSpec hardsync() {
    ProtocolSpec spec;
    spec.name = "hardsync";
    return spec;
}

}  // namespace

TEST_CASE("warm start: the same gradients as under hardsync until the change, and the policy's promises after it") {
    setenv("RC_PARAMS", "max_success=1600", 0);
    CHECK(rc::check("warm start", [] {
        Draw it = draw_warm();
        it.scenario.optimizer.staleness_rule.kind = StalenessRule::Kind::inverse_n;
        const auto task = draw_pause(it);
        log(it);
        const auto warm = run(it, task.get());
        check_books(it.scenario, it.samples, warm.ledger, warm.started);
        check_staleness(it.scenario, warm.ledger);
        for (const auto& row : warm.ledger.workers)
            demand(row.policy_wait_ns >= 0 && row.apply_wait_ns >= 0 && row.pull_request_ns >= 0, "a negative wait");
        const auto count = warm_updates(it, warm.ledger);
        it.scenario.protocol = hardsync();
        const auto hard = run(it, task.get());
        const Parts ours = applied(warm.ledger), theirs = applied(hard.ledger);
        for (std::size_t i = 0; i < std::min(count, hard.ledger.updates.size()); ++i) {
            const auto version = static_cast<Version>(i);
            demand(ours.at(version) == theirs.at(version), "another update than under hardsync");
            demand(warm.ledger.updates[i].effective_learning_rate == hard.ledger.updates[i].effective_learning_rate,
                   "another rate than under hardsync");
            demand(warm.ledger.updates[i].mean_staleness == 0, "staleness in a warm start");
        }
    }));
}

TEST_CASE("warm start: a signal at any step leaves a state from which each sample is applied once an epoch") {
    setenv("RC_PARAMS", "max_success=600", 1);
    CHECK(rc::check("signals", [] {
        Draw it = draw_warm();
        it.scenario.stop = {};
        it.scenario.stop.epochs = 2;
        it.scenario.data.sampling = Sampling::shared_epoch;
        it.scenario.checkpoint.every_epochs = 100;  // only that of the signal
        log(it);
        const TemporaryDirectory folder;
        const auto first = run_part(it, nullptr, folder.path(), nullptr, *rc::gen::inRange(0, 400));
        const auto from = newest(folder.path());
        if (!from) return;
        const auto rest = run_part(it, nullptr, folder.path(), &*from);
        demand(rest.report.status == Status::finished, "the run did not end: " + rest.report.detail);
        const Ledger whole = joined(first.at_save.at(from->head.version()), rest.ledger);
        std::map<std::pair<std::int32_t, std::int64_t>, int> times;
        for (const auto& row : whole.gradients)
            for (std::int64_t i = 0; row.outcome != Outcome::dropped && i < row.batch.count; ++i)
                if (row.outcome == Outcome::applied || row.outcome == Outcome::leftover)
                    ++times[{row.batch.epoch, row.batch.first + i}];
        demand(static_cast<std::int64_t>(times.size()) == 2 * it.samples, "a sample is missing");
        for (const auto& [position, count] : times) demand(count == 1, "a sample counts twice");
        const auto count = warm_updates(it, whole);
        for (std::size_t i = 0; i < count; ++i) demand(whole.updates[i].mean_staleness == 0, "staleness");
    }));
}

TEST_CASE("warm start: its weights are those of a hardsync run, bit for bit, also where evaluations hold the workers") {
    const char* protocols[] = {"hardsync", "n-softsync",    "async",          "bsp",     "asp",        "ssp",
                               "dssp",     "bounded-delay", "backup-workers", "rennala", "ringmaster", "admission"};
    for (const char* protocol : protocols)
        for (const bool pause : {false, true})
            for (const auto sampling : {Sampling::shared_epoch, Sampling::strided}) {
                CAPTURE(protocol);
                CAPTURE(pause);
                Draw it;
                it.samples = 121;
                it.scenario = learning_scenario(protocol, 3, 10);
                it.scenario.data.sampling = sampling;
                it.scenario.protocol.bound = 2;
                it.scenario.protocol.k = 3;
                it.scenario.protocol.backups = 1;
                it.scenario.protocol.delay_threshold = 3;
                it.scenario.optimizer.name = "momentum";
                it.scenario.optimizer.momentum = 0.9;
                it.scenario.optimizer.staleness_rule.kind = StalenessRule::Kind::inverse_n;
                it.scenario.evaluate.every_epochs = 0.5;
                if (pause) it.scenario.evaluate.mode = EvaluateSpec::Mode::pause;
                it.scenario.stop.epochs = 2;
                it.scenario.checkpoint.every_updates = 1;
                const auto task = learn::make_task(it.scenario);
                Draw hard = it;
                hard.scenario.protocol = hardsync();
                const TemporaryDirectory folder, other;
                const auto expected = run_part(hard, task.get(), other.path(), nullptr);
                it.scenario.protocol.warm_epochs = 1;
                const auto whole = run_part(it, task.get(), folder.path(), nullptr);
                REQUIRE(whole.report.status == Status::finished);
                const auto changed = static_cast<Version>(warm_updates(it, whole.ledger));
                REQUIRE(changed == 5);  // 13 batches in rounds of 3
                int compared = 0;
                for (const auto& ours : whole.ledger.evals)
                    for (const auto& theirs : expected.ledger.evals)
                        if (ours.version == theirs.version && ours.version <= changed) {
                            REQUIRE(ours.metrics == theirs.metrics);
                            ++compared;
                        }
                REQUIRE(compared == 3);  // at the beginning, in the middle and at the change
                // And the run is the same where it is cut at the change.
                Draw cut = it;
                cut.scenario.stop.epochs = 1;
                const TemporaryDirectory third;
                const auto first = run_part(cut, task.get(), third.path(), nullptr);
                cut.scenario.protocol = hardsync();
                const TemporaryDirectory fourth;
                REQUIRE(first.report.weights_hash ==
                        run_part(cut, task.get(), fourth.path(), nullptr).report.weights_hash);
                const auto from = newest(third.path());
                REQUIRE(from);
                const auto rest = run_part(it, task.get(), third.path(), &*from);
                REQUIRE(rest.report.status == Status::finished);
                REQUIRE(rest.ledger.updates.front().version == from->head.version() + 1);
            }
}
