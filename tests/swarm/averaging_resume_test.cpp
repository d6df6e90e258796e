// Runs of protocols that average models, cut off at a checkpoint or by a signal, and going on from there: the books of
// all parts balance as those of one run, each version has its round, and nothing counts twice. RUBATO_SWARM_SEED
// repeats one seed.
#include "swarm/averaging_draw.hpp"
#include "swarm/parts.hpp"
#include "swarm/seeds.hpp"

#include <algorithm>

using namespace rubato;
using namespace rubato::test;

namespace {

struct Endings {
    int resumed = 0, by_signal = 0, twice = 0;
};

void check_whole(const Draw& it, const Ledger& whole) {
    auto books = it.scenario;
    books.stop = {};
    check_books(books, it.samples, whole, whole.told());
    demand(static_cast<int>(whole.workers.size()) == it.scenario.lambda(), "a worker has no books, or two");
    // Versions of phases are told of when the next round of their shard begins.
    std::vector<Version> made, told;
    for (const UpdateRow& row : whole.updates) made.push_back(row.version);
    for (const RoundRow& row : whole.rounds) told.push_back(row.version);
    std::sort(told.begin(), told.end());
    demand(made == told, "a version without a round, or a round without one");
    std::map<std::pair<std::int64_t, std::int32_t>, int> rounds;
    for (const RoundRow& row : whole.rounds) demand(++rounds[{row.round, row.shard}] == 1, "a round has two rows");
}

/// Whether the run was saved at all.
bool go_on(const Draw& it, std::uint64_t seed, std::int64_t signal, Endings& endings, const learn::Task* task) {
    const TemporaryDirectory folder;
    const auto first = run_part(it, task, folder.path(), nullptr, signal);
    const auto from = newest(folder.path());
    if (!from) return false;
    ++endings.resumed;
    endings.by_signal += first.report.status == Status::interrupted;
    Ledger so_far = first.at_save.at(from->head.version());
    // A second signal, soon after.
    const auto second = run_part(it, task, folder.path(), &*from, static_cast<std::int64_t>(seed % 90));
    const auto again = newest(folder.path());
    if (again->head.version() > from->head.version()) {
        ++endings.twice;
        so_far = joined(so_far, second.at_save.at(again->head.version()));
    }
    const auto third = run_part(it, task, folder.path(), &*again);
    const bool dead = !it.scenario.faults.empty() && third.report.status == Status::deadlock;
    demand(third.report.status == Status::finished || dead, "the rest of the run does not finish");
    const Ledger whole = joined(so_far, third.ledger);
    check_whole(it, whole);
    if (dead) return true;
    if (it.scenario.stop.gradients)
        demand(whole.told() >= *it.scenario.stop.gradients, "the run ends before it has its gradients");
    if (it.scenario.stop.updates)
        demand(static_cast<std::int64_t>(whole.updates.size()) >= *it.scenario.stop.updates, "too few updates");
    return true;
}

/// learns: gossip has versions where it is evaluated alone.
template <class MakeDraw>
void hold(MakeDraw&& make, bool crashes, bool learns = false) {
    Endings endings;
    for_seeds(400, [&](std::uint64_t seed) {
        Draw it = make(seed);
        std::unique_ptr<learn::Task> task;
        if (learns) {
            const Scenario learning = learning_scenario("hardsync", 1, 1);
            const Sampling sampling = it.scenario.data.sampling;
            it.scenario.model = learning.model;
            it.scenario.data = learning.data;
            it.scenario.data.sampling = sampling;
            it.scenario.optimizer.learning_rate = learning.optimizer.learning_rate;
            it.scenario.evaluate.every_epochs = 0.05 + 0.01 * static_cast<double>(seed % 20);
            task = learn::make_task(it.scenario);
            it.samples = task->samples();
        }
        if (crashes && seed % 2 == 0) draw_spells(it, seed);
        it.scenario.checkpoint.every_updates = 1 + static_cast<std::int64_t>(seed % 7);
        if (seed % 3 == 0) it.scenario.checkpoint = {};
        if (seed % 3 == 0) it.scenario.checkpoint.every_epochs = 100;  // only that of the signal
        go_on(it, seed, seed % 3 == 2 ? -1 : static_cast<std::int64_t>(3 * seed), endings, task.get());
    });
    CHECK(endings.resumed > 100);
    CHECK(endings.by_signal > 30);
    CHECK(endings.twice > 10);
}

}  // namespace

TEST_CASE("averages: runs go on from what was saved of the driver") {
    hold(draw_average, true);
}

TEST_CASE("phases: runs go on from what was saved of the driver") {
    hold(draw_phases, true);
}

TEST_CASE("easgd, async-diloco: runs go on from what was saved of the server") {
    hold(draw_alone, true);
}

TEST_CASE("streams: runs go on from what was saved of the driver") {
    hold(draw_stream, false);
}

TEST_CASE("gossip: runs go on from the last mean") {
    hold(draw_gossip, false, true);
}

namespace {

Draw learning_rounds(const std::string& protocol, const std::string& optimizer) {
    Draw it;
    it.samples = 121;
    it.scenario = learning_scenario("hardsync", 3, 7);
    it.scenario.protocol.name = protocol;
    auto& averaging = it.scenario.protocol.averaging;
    averaging.tau = 3;
    if (protocol == "diloco") averaging.outer_learning_rate = 0.7;
    if (protocol == "diloco") averaging.outer_momentum = 0.9;
    it.scenario.data.sampling = Sampling::strided;
    it.scenario.stop = {};
    it.scenario.stop.updates = 20;
    it.scenario.evaluate.every_epochs = 0.5;
    it.scenario.optimizer.name = optimizer;
    if (optimizer == "momentum") it.scenario.optimizer.momentum = 0.9;
    it.scenario.optimizer.schedule = {{1.5, 0.1}};
    return it;
}

}  // namespace

TEST_CASE("averages: a run that goes on has the weights, rows and times of an undisturbed one") {
    for (const char* protocol : {"sparknet", "local-sgd", "diloco", "gradients"})
        for (const std::int64_t every : {1, 5, 13})
            for (const bool swarm : {false, true}) {
                CAPTURE(protocol);
                CAPTURE(every);
                CAPTURE(swarm);
                const bool gradients = protocol == std::string("gradients");
                Draw it = learning_rounds(gradients ? "sparknet" : protocol, gradients ? "momentum" : "sgd");
                auto& averaging = it.scenario.protocol.averaging;
                averaging.gradients = gradients;
                if (gradients) averaging.tau = 1;
                if (swarm) averaging.spread = {true, 3};
                it.scenario.checkpoint.every_updates = every;
                const auto task = learn::make_task(it.scenario);
                const TemporaryDirectory folder;
                const auto undisturbed = run_part(it, task.get(), folder.path(), nullptr);
                const auto from = newest(folder.path());
                REQUIRE(from);
                const auto rest = run_part(it, task.get(), folder.path(), &*from);
                CHECK(rest.report.weights_hash == undisturbed.report.weights_hash);
                auto whole = joined(undisturbed.at_save.at(from->head.version()), rest.ledger);
                auto expected = undisturbed.ledger;
                // A wait that began before the part began.
                for (auto* rows : {&whole.gradients, &expected.gradients})
                    for (GradientRow& row : *rows) row.pull_ns = 0;
                CHECK(whole.updates == undisturbed.ledger.updates);
                CHECK(whole.evals == undisturbed.ledger.evals);
                CHECK(whole.gradients == expected.gradients);
                CHECK(whole.rounds == undisturbed.ledger.rounds);
            }
}

TEST_CASE("averages: optimizers of workers begin anew, and so do all workers from the joint model") {
    Draw it = learning_rounds("sparknet", "momentum");
    it.scenario.checkpoint.every_updates = 13;
    const auto task = learn::make_task(it.scenario);
    const TemporaryDirectory folder;
    const auto undisturbed = run_part(it, task.get(), folder.path(), nullptr);
    const auto from = newest(folder.path());
    REQUIRE(from);
    const auto rest = run_part(it, task.get(), folder.path(), &*from);
    CHECK(rest.report.weights_hash != undisturbed.report.weights_hash);
}
