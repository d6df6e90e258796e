// Training through a tree of servers, held against plain loops that add gradients in the order of the tree.
#include "core/tree.hpp"
#include "core/learning_rate.hpp"
#include "learn/apply.hpp"
#include "sim/recorded_steps.hpp"
#include "sim/replay/verification.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <set>

using namespace rubato;
using namespace rubato::test;

namespace {

using Vector = std::vector<float>;

Scenario training(const std::string& protocol, int lambda, int batch_size, int fan_out) {
    Scenario scenario = learning_scenario(protocol, lambda, batch_size);
    scenario.optimizer.name = "momentum";
    scenario.optimizer.momentum = 0.9;
    scenario.optimizer.schedule = {{1, 0.5}};
    scenario.stop.epochs = 2;
    scenario.pool_threads = 2;
    if (fan_out > 0) {
        scenario.topology = "tree";
        scenario.tree.fan_out = fan_out;
    }
    return scenario;
}

/// A sum of gradients, each weighted by its samples over those of the first one.
struct Sum {
    Vector values;
    int first = 0;  ///< samples of the first one; 0: there is none
    std::int64_t samples = 0;
    void add(const Sum& other) {
        if (other.first == 0) return;
        samples += other.samples;
        if (first == 0) {
            values = other.values;
            first = other.first;
            return;
        }
        learn::fold(values, other.values, static_cast<float>(static_cast<double>(other.first) / first));
    }
};

struct Loop {
    const learn::Task& task;
    Scenario scenario;
    Vector weights = Vector(static_cast<std::size_t>(task.parameters()));
    learn::Optimizer optimizer{scenario.optimizer, task.parameters()};
    std::unique_ptr<learn::Workspace> workspace = task.workspace();
    std::int64_t samples = 0;
    Version version = 0;

    Sum gradient(const Vector& at, WorkerId worker, const Batch& batch) {
        Sum sum{Vector(weights.size()), batch.count, batch.count};
        task.gradient(at, worker, 0, batch, sum.values, *workspace);
        return sum;
    }
    void update(const std::vector<Sum>& sums) {
        std::int64_t total = 0;
        for (const Sum& sum : sums) total += sum.samples;
        std::vector<learn::Summand> summands;
        for (const Sum& sum : sums)
            if (sum.first > 0)
                summands.push_back({sum.values.data(),
                                    static_cast<float>(static_cast<double>(sum.first) / static_cast<double>(total))});
        const double done = static_cast<double>(samples) / static_cast<double>(task.samples());
        const learn::StepInput step{summands, scheduled_rate(scenario.optimizer, done), -1, ++version};
        optimizer.apply(weights, weights, {&step, 1});
        samples += total;
    }
    /// hardsync over two epochs, added in the order of the tree; a star's where there is none.
    void train() {
        const Tree tree = make_tree(scenario);
        const int lambda = scenario.lambda();
        task.initialize(weights);
        for (int epoch = 0; epoch < 2; ++epoch)
            for (std::int64_t first = 0; first < task.samples();) {
                std::vector<Sum> gradients(static_cast<std::size_t>(lambda));
                for (int worker = 0; worker < lambda && first < task.samples(); ++worker) {
                    const auto count = std::min<std::int64_t>(scenario.workers.batch_size, task.samples() - first);
                    gradients[static_cast<std::size_t>(worker)] =
                        gradient(weights, worker, {epoch, static_cast<std::int32_t>(count), first});
                    first += count;
                }
                const std::function<Sum(RoleId)> sum_of = [&](RoleId role) {
                    if (role <= lambda) return gradients[static_cast<std::size_t>(role - 1)];
                    Sum sum;
                    for (const RoleId child : tree.relay(role).children) sum.add(sum_of(child));
                    return sum;
                };
                std::vector<Sum> sums;
                for (const RoleId role : tree.top()) sums.push_back(sum_of(role));
                update(tree.star() ? gradients : sums);
            }
    }
};

}  // namespace

TEST_CASE("hardsync through a tree gives bitwise the weights of a loop that adds in the order of the tree") {
    for (const int lambda : {1, 2, 5, 9})
        for (const int fan_out : {2, 3, 8})
            for (const int batch_size : {5, 16, 60}) {
                const auto scenario = training("hardsync", lambda, batch_size, fan_out);
                const auto task = learn::make_task(scenario);
                const auto run = simulate(scenario, task->samples(), {}, task.get());
                CAPTURE(lambda);
                CAPTURE(fan_out);
                CAPTURE(batch_size);
                REQUIRE(run.report.status == Status::finished);
                Loop loop{*task, scenario};
                loop.train();
                CHECK(*run.report.weights_hash == learn::weights_hash(loop.weights));
                // Messages may come in any order.
                const auto other = simulate(scenario, task->samples(), {1e-4, 1e7, 2, 7}, task.get());
                CHECK(run.report.weights_hash == other.report.weights_hash);
                auto bsp = scenario;
                bsp.protocol.name = "bsp";
                CHECK(simulate(bsp, task->samples(), {}, task.get()).report.weights_hash == run.report.weights_hash);
            }
}

TEST_CASE("hardsync through a tree is within 1e-5 relative of a star") {
    const auto scenario = training("hardsync", 9, 5, 3), star = training("hardsync", 9, 5, 0);
    const auto task = learn::make_task(scenario);
    Loop tree_loop{*task, scenario}, star_loop{*task, star};
    tree_loop.train();
    star_loop.train();
    CHECK(*simulate(star, task->samples(), {}, task.get()).report.weights_hash ==
          learn::weights_hash(star_loop.weights));
    double distance = 0, norm = 0;
    for (std::size_t i = 0; i < star_loop.weights.size(); ++i) {
        distance += std::pow(tree_loop.weights[i] - star_loop.weights[i], 2);
        norm += std::pow(star_loop.weights[i], 2);
    }
    CHECK(distance > 0);
    CHECK(std::sqrt(distance / norm) < 1e-5);
}

// The loop takes from the run only who came when, and on which version each gradient was computed: if a worker had
// held anything but that version of the root, or if a sum had lost a gradient, the weights would be others (INV-A1).
TEST_CASE("n-softsync through a tree: every gradient was computed on the root's own version, bit for bit") {
    for (const auto& [topology, n, bandwidth] : {std::tuple("tree", 1, 1e12),
                                                 {"tree", 2, 1e6},
                                                 {"tree", 4, 1e6},
                                                 {"broadcast", 1, 1e6},
                                                 {"broadcast", 2, 1e12},
                                                 {"tree-downcast", 1, 1e12},
                                                 {"tree-downcast", 1, 1e6},
                                                 {"tree-downcast", 4, 1e6}}) {
        auto scenario = training("n-softsync", 8, 5, 4);
        scenario.tree.broadcast = std::string(topology) == "broadcast";
        if (std::string(topology) == "tree-downcast") {
            scenario.topology = topology;
            scenario.workers.pipeline = Pipeline::overlap;
            scenario.workers.pull = Pull::latest;
            scenario.data.sampling = Sampling::strided;
        }
        scenario.protocol.n = n;
        const auto task = learn::make_task(scenario);
        std::set<std::pair<WorkerId, std::int64_t>> with_payload;
        const auto watch = [&](Time, RoleId role, const Event& event, const Actions&) {
            const auto* delivered = std::get_if<Delivered>(&event);
            const auto* push = delivered ? std::get_if<Push>(&delivered->message) : nullptr;
            if (role == 0 && push != nullptr && delivered->payload.buffer != no_buffer)
                with_payload.emplace(push->worker, push->worker_seq);
        };
        const auto run = simulate(scenario, task->samples(), {1e-5, bandwidth, 1, 3}, task.get(), -1, watch);
        REQUIRE(run.report.status == Status::finished);
        std::map<Version, std::vector<const GradientRow*>> updates;
        for (const auto& row : run.ledger.gradients)
            if (row.outcome == rubato::Outcome::applied) updates[row.apply_version].push_back(&row);
        Loop loop{*task, scenario};
        task->initialize(loop.weights);
        std::vector<Vector> versions{loop.weights};
        std::size_t stale = 0;
        for (const auto& [version, rows] : updates) {
            Sum folded, last, coming;  // the last sum is not folded: it completes the update
            for (const auto* row : rows) {
                const auto& read = versions.at(static_cast<std::size_t>(row->read_version));
                coming.add(loop.gradient(read, row->worker, row->batch));
                stale += row->staleness() > 0;
                if (with_payload.count({row->worker, row->worker_seq}) == 0) continue;
                folded.add(last);
                last = std::exchange(coming, {});
            }
            loop.update({folded, last});
            versions.push_back(loop.weights);
        }
        CAPTURE(topology);
        CAPTURE(n);
        CAPTURE(bandwidth);
        CHECK(stale > 20);
        CHECK(updates.size() == run.ledger.updates.size());
        CHECK(*run.report.weights_hash == learn::weights_hash(loop.weights));
    }
}

TEST_CASE("recomputation: runs through a tree, whatever the buffers are called and however logs were merged") {
    TreeSpec tree;
    tree.fan_out = 2;
    for (const auto& [protocol, downcast] :
         {std::pair("hardsync", false), {"n-softsync", false}, {"async", false}, {"n-softsync", true}}) {
        const auto run = record(protocol, 7, -1, -1, momentum(), {}, &tree, downcast);
        REQUIRE(run.report.status == Status::finished);
        CAPTURE(protocol);
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
            sim::Verification verification;
            sim::Recomputation recomputation(run.scenario, *run.task, {2, true}, verification);
            const auto steps = seed == 0 ? run.steps : merged_anyhow(Renamed()(run.steps), seed);
            for (const auto& step : steps) recomputation.take(step.now, step.role, step.event, step.actions);
            recomputation.end();
            CHECK(verification.loss_difference() == "");
            CHECK(recomputation.gradients() == run.gradients);
            CHECK(recomputation.outstanding() == 0);
            CHECK(recomputation.weights_hash() == run.report.weights_hash);
        }
    }
}
