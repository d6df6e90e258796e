// Runs without a server that are saved, cut off and go on: the books of all parts balance as those of one run, each
// iteration has its rows once, and where nothing is in flight at a version the weights are those of an undisturbed run.
// And runs that hold for their evaluations. RUBATO_SWARM_SEED repeats one seed.
#include "swarm/collective_draw.hpp"
#include "swarm/parts.hpp"
#include "swarm/seeds.hpp"

#include <algorithm>
#include <set>

using namespace rubato;
using namespace rubato::test;

namespace {

/// The same with real gradients of a small network.
std::unique_ptr<learn::Task> have_learn(Draw& it, std::uint64_t seed) {
    const Scenario learning = learning_scenario("hardsync", 1, 1);
    const Sampling sampling = it.scenario.data.sampling;
    it.scenario.model = learning.model;
    it.scenario.data = learning.data;
    it.scenario.data.sampling = sampling;
    it.scenario.optimizer.learning_rate = 0.05;
    const char* const names[] = {"sgd", "momentum", "adam"};
    it.scenario.optimizer.name = names[seed % 3];
    it.scenario.optimizer.momentum = seed % 3 == 1 ? 0.9 : 0;
    it.scenario.evaluate.every_epochs = 0.05 + 0.01 * static_cast<double>(seed % 20);
    it.scenario.layers = {17 * 7, 8 * 3};
    auto task = learn::make_task(it.scenario);
    it.samples = task->samples();
    return task;
}

bool can_be_saved(const Draw& it) {
    return it.scenario.protocol.collective.mode != CollectiveMode::no_comm;
}

/// Nothing is in flight at a version, so that what goes on from it is the same run.
bool is_exact(const Draw& it) {
    const CollectiveSpec& spec = it.scenario.protocol.collective;
    return spec.mode != CollectiveMode::delayed || (!spec.adaptive && spec.delay == 0);
}

void check_whole(const Draw& it, const Ledger& whole) {
    auto books = it.scenario;
    books.stop = {};
    check_books(books, it.samples, whole, whole.told());
    demand(static_cast<int>(whole.workers.size()) == it.scenario.lambda(), "a worker has no books, or two");
    for (const GradientRow& row : whole.gradients)
        demand(row.outcome == Outcome::applied, "a gradient is not applied, though all are drained");
    for (std::size_t i = 0; i < whole.updates.size(); ++i)
        demand(whole.updates[i].version == static_cast<Version>(i) + 1, "a version is missing, or there twice");
    std::set<std::pair<std::int64_t, WorkerId>> iterations;
    for (const IterationRow& row : whole.iterations)
        demand(iterations.insert({row.it.iteration, row.worker}).second, "an iteration has two rows");
    if (it.scenario.lambda() > 1)
        demand(iterations.size() == whole.updates.size() * static_cast<std::size_t>(it.scenario.lambda()),
               "an iteration has no row");
    std::set<std::tuple<std::int64_t, std::int32_t, WorkerId>> buckets;
    for (const BucketRow& row : whole.buckets)
        demand(buckets.insert({row.it.iteration, row.it.bucket, row.worker}).second, "a bucket has two rows");
    demand(buckets.size() % std::max<std::size_t>(1, iterations.size()) == 0, "a bucket has no row");
    std::set<Version> evaluated;
    for (const EvalRow& row : whole.evals) demand(evaluated.insert(row.version).second, "a version is evaluated twice");
}

struct Endings {
    int resumed = 0, by_signal = 0, twice = 0, exact = 0;
};

void go_on(const Draw& it, std::uint64_t seed, std::int64_t signal, Endings& endings, const learn::Task* task) {
    const TemporaryDirectory folder;
    const auto first = run_part(it, task, folder.path(), nullptr, signal);
    const auto from = newest(folder.path());
    if (!from) return;
    ++endings.resumed;
    endings.by_signal += first.report.status == Status::interrupted;
    Ledger so_far = first.at_save.at(from->head.version());
    const auto second = run_part(it, task, folder.path(), &*from, static_cast<std::int64_t>(seed % 90));
    const auto again = newest(folder.path());
    if (again->head.version() > from->head.version()) {
        ++endings.twice;
        so_far = joined(so_far, second.at_save.at(again->head.version()));
    }
    const auto third = run_part(it, task, folder.path(), &*again);
    demand(third.report.status == Status::finished, "the rest of the run does not finish: " + third.report.detail);
    const Ledger whole = joined(so_far, third.ledger);
    check_whole(it, whole);
    if (task == nullptr || !is_exact(it) || it.scenario.stop.seconds) return;
    ++endings.exact;
    Draw undisturbed = it;
    undisturbed.scenario.checkpoint = {};
    const auto run = simulate(undisturbed.scenario, it.samples, it.network, task);
    demand(run.report.weights_hash == third.report.weights_hash, "the weights are others than those of one run");
    demand(run.ledger.updates.size() == whole.updates.size(), "another number of updates");
    std::vector<Version> mine, other;
    for (const EvalRow& row : whole.evals) mine.push_back(row.version);
    for (const EvalRow& row : run.ledger.evals) other.push_back(row.version);
    demand(mine == other, "other versions are evaluated");
}

}  // namespace

TEST_CASE("collective: runs go on from what was saved of a replica") {
    Endings endings;
    for_seeds(800, [&](std::uint64_t seed) {
        Draw it = draw_collective(seed);
        if (!can_be_saved(it)) return;
        std::unique_ptr<learn::Task> task;
        if (seed % 2 == 0) task = have_learn(it, seed / 2);
        if (seed % 4 == 0) it.scenario.evaluate.mode = EvaluateSpec::Mode::pause;
        it.scenario.checkpoint = {};
        it.scenario.checkpoint.every_updates = 1 + static_cast<std::int64_t>(seed % 7);
        if (seed % 3 == 0) it.scenario.checkpoint = {};
        if (seed % 3 == 0) it.scenario.checkpoint.every_epochs = 100;  // only that of the signal
        go_on(it, seed, seed % 3 == 2 ? -1 : static_cast<std::int64_t>(3 * seed), endings, task.get());
    });
    CHECK(endings.resumed > 200);
    CHECK(endings.by_signal > 60);
    CHECK(endings.twice > 20);
    CHECK(endings.exact > 60);
}

TEST_CASE("collective: saving changes no weight, no row and no time of a run") {
    int saved = 0;
    for_seeds(200, [&](std::uint64_t seed) {
        Draw it = draw_collective(seed);
        if (!can_be_saved(it)) return;
        const auto task = have_learn(it, seed);
        const auto plain = simulate(it.scenario, it.samples, it.network, task.get());
        it.scenario.checkpoint = {};
        it.scenario.checkpoint.every_updates = 1 + static_cast<std::int64_t>(seed % 5);
        const TemporaryDirectory folder;
        const auto part = run_part(it, task.get(), folder.path(), nullptr);
        saved += static_cast<int>(part.at_save.size());
        demand(part.report.weights_hash == plain.report.weights_hash, "weights");
        demand(part.ledger.gradients == plain.ledger.gradients, "rows of gradients");
        demand(part.ledger.updates == plain.ledger.updates, "rows of updates");
        demand(part.ledger.evals == plain.ledger.evals, "rows of evaluations");
        demand(part.ledger.iterations == plain.ledger.iterations, "rows of iterations");
    });
    CHECK(saved > 300);
}

TEST_CASE("collective: while a version is evaluated in mode pause nobody computes and nothing is in flight") {
    int evaluations = 0, in_mid_run = 0;
    for_seeds(300, [&](std::uint64_t seed) {
        Draw it = draw_collective(seed);
        const auto task = have_learn(it, seed);
        const auto deferred = simulate(it.scenario, it.samples, it.network, task.get());
        it.scenario.evaluate.mode = EvaluateSpec::Mode::pause;
        int computing = 0;
        Version made = 0;
        const auto run =
            simulate(it.scenario, it.samples, it.network, task.get(), -1,
                     [&](Time, RoleId role, const Event& event, const Actions& actions) {
                         computing -= std::holds_alternative<GradientReady>(event);
                         for (const Action& action : actions.list) {
                             computing += std::holds_alternative<Compute>(action);
                             if (const auto* update = std::get_if<Update>(&action)) made = update->from + 1;
                             const auto* evaluate = role == 0 ? std::get_if<Evaluate>(&action) : nullptr;
                             if (evaluate == nullptr) continue;
                             ++evaluations;
                             demand(computing == 0, "a worker computes during an evaluation");
                             demand(evaluate->version == made, "an evaluation is not of the newest version");
                         }
                     });
        demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
        in_mid_run += static_cast<int>(run.ledger.evals.size()) > 2;
        if (!is_exact(it) || it.scenario.stop.seconds) return;
        demand(run.report.weights_hash == deferred.report.weights_hash, "weights depend on when they are evaluated");
        demand(run.ledger.evals.size() == deferred.ledger.evals.size(), "another number of evaluations");
    });
    CHECK(evaluations > 600);
    CHECK(in_mid_run > 100);
}
