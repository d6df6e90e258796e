// Averaging in phases, held against its equations, worked out by hand for a model of a few numbers, and against what
// the paper says of its times.
#include "sim/recorded_steps.hpp"
#include "sim/replay/verification.hpp"

#include <doctest/doctest.h>
#include <cmath>

using namespace rubato;
using namespace rubato::test;

namespace {

Scenario phased(int phases, int lambda, const std::string& model = "mlp", std::int64_t samples = 160) {
    Scenario scenario = learning_scenario("mpca", lambda, 4, model, samples);
    scenario.data.sampling = Sampling::strided;
    auto& spec = scenario.protocol.averaging.phases;
    spec.phases = spec.shards = phases;
    spec.by_layers = false;
    spec.alpha = Ramp::constant(0.05);
    scenario.stop.epochs = 3;
    return scenario;
}

Simulated run(const Scenario& scenario, const NetworkShape& network = {}, const Watcher& watch = nullptr) {
    const auto task = learn::make_task(scenario);
    auto done = simulate(scenario, task->samples(), network, task.get(), -1, watch);
    REQUIRE(done.report.status == Status::finished);
    auto books = scenario;
    books.stop = {};
    REQUIRE_NOTHROW(check_books(books, task->samples(), done.ledger, done.started));
    return done;
}

/// Every number of the run by the equations of Langer et al. 2018, from who said what when; gradients are 0.5 each, and
/// the loss at weights w is half their sum.
class ByHand {
public:
    ByHand(const Scenario& scenario, int parts) : spec_(scenario.protocol.averaging.phases), parts_(parts) {
        const auto width = static_cast<std::size_t>(parts);
        rate_ = scenario.optimizer.learning_rate;
        joint_.assign(width, 0);
        motion_ = published_ = joint_;
        means_.assign(width, 0);
        workers_.assign(static_cast<std::size_t>(scenario.lambda()),
                        {joint_, joint_, std::vector<double>(width, 0), 0, {}});
    }
    void see(Time, RoleId role, const Event& event, const Actions& actions) {
        if (role == 0) return see_driver(event, actions);
        Worker& it = workers_[static_cast<std::size_t>(role - 1)];
        if (const auto* delivered = std::get_if<Delivered>(&event))
            if (std::holds_alternative<Model>(delivered->message)) {
                const auto part = static_cast<std::size_t>(delivered->payload.first);
                it.sent.push_back({part, sending_[part], false});
            }
        if (const auto* ready = std::get_if<GradientReady>(&event)) {
            double sum = 0;
            for (const double x : it.x) sum += x;
            worst = std::max(worst, std::abs(ready->loss - 0.5 * sum));
            ++losses;
        }
        if (std::holds_alternative<Applied>(event)) {
            const double alpha = spec_.alpha.at(it.taken++);
            for (std::size_t s = 0; s < it.x.size(); ++s) {
                const double pull = spec_.pull_gradients ? alpha * (it.x[s] - it.target[s]) : 0;
                it.x[s] -= rate_ * (0.5 + pull);
                ++it.tau[s];
            }
        }
        for (const auto& action : actions.list) {
            if (const auto* send = std::get_if<Send>(&action)) {
                if (std::holds_alternative<Received>(send->message)) it.sent.back().there = true;
                if (const auto* said = std::get_if<Exchanged>(&send->message)) exchange(it, *said);
            }
            if (std::holds_alternative<Compute>(action) && !spec_.pull_gradients)
                for (std::size_t s = 0; s < it.x.size(); ++s)
                    it.x[s] -= spec_.alpha.at(it.taken) * (it.x[s] - it.target[s]);
        }
    }
    double worst = 0;
    int losses = 0;

private:
    struct Part {
        std::size_t shard;
        double value;
        bool there;
    };
    struct Worker {
        std::vector<double> x, target, tau;
        std::int64_t taken;
        std::deque<Part> sent;
    };

    void exchange(Worker& it, const Exchanged& said) {
        const auto s = static_cast<std::size_t>(said.shard);
        CHECK(said.steps == static_cast<std::int64_t>(it.tau[s]));
        const double weight = spec_.by_steps ? it.tau[s] : 1;
        sum_ += weight * it.x[s];
        weight_ += weight;
        plain_ += it.x[s];
        it.tau[s] = 0;
        for (; !it.sent.empty() && it.sent.front().there; it.sent.pop_front())
            it.target[it.sent.front().shard] = it.sent.front().value;
    }
    void see_driver(const Event& event, const Actions& actions) {
        if (const auto* delivered = std::get_if<Delivered>(&event))
            if (std::holds_alternative<Share>(delivered->message)) {
                // All have said what they handed on before what they handed on is all added up.
                mean_[delivered->payload.first] =
                    weight_ > 0 ? sum_ / weight_ : plain_ / static_cast<double>(workers_.size());
                sum_ = weight_ = plain_ = 0;
            }
        if (!actions.updates.empty()) {
            const auto s = static_cast<std::size_t>(made_);
            const std::int64_t t = means_[s]++;
            const double beta = spec_.beta.at(t), delta = spec_.delta.at(t), before = joint_[s];
            joint_[s] = (1 - beta) * before + beta * mean_.at(made_);
            motion_[s] = delta * motion_[s] + (1 - delta) * (joint_[s] - before);
            published_[s] = joint_[s] + spec_.gamma.at(t) * motion_[s];
        }
        for (const auto& action : actions.list) {
            const auto* mix = std::get_if<Mix>(&action);
            if (mix != nullptr && mix->work == Mix::Work::update) made_ = mix->first;
            const auto* send = std::get_if<Send>(&action);
            if (send != nullptr && std::holds_alternative<Model>(send->message))
                sending_[static_cast<std::size_t>(send->payload.first)] =
                    published_[static_cast<std::size_t>(send->payload.first)];
        }
    }

    PhasesSpec spec_;
    int parts_;
    double rate_ = 0;
    std::vector<double> joint_, motion_, published_;
    std::vector<std::int64_t> means_;
    std::vector<Worker> workers_;
    std::map<std::int64_t, double> mean_;
    std::map<std::size_t, double> sending_;
    std::int64_t made_ = 0;
    double sum_ = 0, weight_ = 0, plain_ = 0;
};

std::vector<double> losses_of(const Simulated& done, WorkerId worker) {
    std::vector<double> all;
    for (const auto& row : done.ledger.gradients) {
        if (row.worker != worker || row.outcome == rubato::Outcome::cancelled) continue;
        const auto at = static_cast<std::size_t>(row.worker_seq);
        if (all.size() <= at) all.resize(at + 1, NAN);
        all[at] = row.loss;
    }
    return all;
}

/// Mean of what a cycle takes, without the first ones.
double cycle_s(const Simulated& done) {
    const auto& rounds = done.ledger.rounds;
    REQUIRE(rounds.size() > 12);
    const auto& first = rounds[rounds.size() / 3];
    const auto& last = rounds[rounds.size() - 4];
    return static_cast<double>(last.reduce_begin_ns - first.reduce_begin_ns) * 1e-9 /
           static_cast<double>(last.round - first.round);
}

Scenario timed(int phases, int lambda) {
    auto scenario = timing_scenario("mpca", lambda, 4, 0);
    scenario.data.sampling = Sampling::random;
    auto& spec = scenario.protocol.averaging.phases;
    spec.phases = spec.shards = phases;
    spec.alpha = Ramp::constant(0.05);
    spec.gamma = Ramp::constant(0.7);
    scenario.cost.push_bytes = scenario.cost.pull_bytes = 6'000'000;
    scenario.stop.seconds = 12;
    return scenario;
}

}  // namespace

TEST_CASE("phases: every loss is what the equations say, for 1, 2 and 3 phases") {
    for (const int phases : {1, 2, 3}) {
        for (const bool pull_gradients : {false, true}) {
            for (const bool by_steps : {true, false}) {
                CAPTURE(phases);
                CAPTURE(pull_gradients);
                CAPTURE(by_steps);
                auto scenario = phased(phases, 5, "constant", 240);
                scenario.model.value = 0.5;
                scenario.model.dimension = phases;
                scenario.optimizer.learning_rate = 0.125;
                scenario.cluster.noise.cv = 0.6;
                auto& spec = scenario.protocol.averaging.phases;
                spec.by_steps = by_steps;
                spec.pull_gradients = pull_gradients;
                spec.alpha = {0.5, 0.05, 20, 0, 4};
                spec.beta = {1, 0.8, 5, 0, 0};
                spec.gamma = {0, 0.7, 4, 0, 0};
                ByHand by_hand(scenario, phases);
                const auto done = run(scenario, {2e-3, 1e9, 0.5, 3},
                                      [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                                          by_hand.see(now, role, event, actions);
                                      });
                CHECK(by_hand.losses > 150);
                CHECK(done.ledger.updates.size() > 4);
                CHECK(by_hand.worst < 1e-4);
                // So that the check could fail: the losses are far larger than that.
                CHECK(std::abs(losses_of(done, 0).back()) > 0.1);
            }
        }
    }
}

TEST_CASE("phases: one worker that nothing draws follows the plain optimizer") {
    for (const char* name : {"sgd", "momentum", "adam"}) {
        for (const int phases : {1, 2, 3}) {
            CAPTURE(name);
            auto plain = learning_scenario("hardsync", 1, 4, "mlp", 160);
            plain.data.sampling = Sampling::strided;
            plain.stop.epochs = 3;
            plain.optimizer.name = name;
            plain.optimizer.momentum = 0.9;
            auto scenario = phased(phases, 1);
            scenario.optimizer = plain.optimizer;
            scenario.protocol.averaging.phases.alpha = {};
            const auto task = learn::make_task(plain);
            const auto expected = losses_of(simulate(plain, task->samples(), {}, task.get()), 0);
            const auto mine = losses_of(run(scenario, {1e-3, 1e7, 0, 0}), 0);
            REQUIRE(mine.size() > 100);
            for (std::size_t i = 0; i < std::min(mine.size(), expected.size()); ++i) CHECK(mine[i] == expected[i]);
        }
    }
}

TEST_CASE("phases: equal models average to themselves, and equal workers count alike") {
    // All draw the same samples with the same batches: what is drawn is their own model, so nothing draws them.
    auto scenario = phased(3, 4);
    scenario.optimizer = momentum();
    scenario.cluster.noise.cv = 0;
    auto& spec = scenario.protocol.averaging.phases;
    const auto weighted = run(scenario).report.weights_hash;
    spec.by_steps = false;
    CHECK(run(scenario).report.weights_hash == weighted);  // all take as many steps
    scenario.cluster.noise.cv = 0.7;
    const auto plain = run(scenario).report.weights_hash;
    spec.by_steps = true;
    CHECK(run(scenario).report.weights_hash != plain);
    // Gradients that are alike: every mean is what each worker has, bit for bit.
    auto constant = phased(2, 3, "constant", 120);
    constant.model.dimension = 6;
    constant.model.value = 0.3;
    constant.cluster.noise.cv = 0;
    constant.protocol.averaging.phases.alpha = {};
    auto alone = constant;
    alone.workers.groups = {{1, "default", 0}};
    const auto many = losses_of(run(constant), 2), one = losses_of(run(alone), 0);
    for (std::size_t i = 0; i < std::min(many.size(), one.size()); ++i) CHECK(many[i] == one[i]);
}

TEST_CASE("phases: without inertia the joint model itself is what draws") {
    auto scenario = phased(3, 4);
    auto& spec = scenario.protocol.averaging.phases;
    spec.gamma = Ramp::constant(0);
    const auto without = run(scenario).report.weights_hash;
    spec.delta = Ramp::constant(0.3);
    CHECK(run(scenario).report.weights_hash == without);  // which has no part in it then
    spec.gamma = Ramp::constant(0.7);
    const auto with = run(scenario).report.weights_hash;
    CHECK(with != without);
    spec.delta = Ramp::constant(0.8);
    CHECK(run(scenario).report.weights_hash != with);
}

TEST_CASE("phases: without memory or pull the driver's state is the mean alone (INV-M10)") {
    auto scenario = phased(3, 4);
    auto& spec = scenario.protocol.averaging.phases;
    spec.alpha = {};
    spec.beta = Ramp::constant(1);
    BufferId mean = no_buffer;
    std::int64_t versions = 0;
    const auto watch = [&](Time, RoleId role, const Event& event, const Actions& actions) {
        if (role != 0) return;
        const auto* delivered = std::get_if<Delivered>(&event);
        if (delivered != nullptr && std::holds_alternative<Share>(delivered->message)) mean = delivered->payload.buffer;
        for (const Action& action : actions.list) {
            const auto* mix = std::get_if<Mix>(&action);
            if (mix == nullptr || mix->work != Mix::Work::update) continue;
            ++versions;
            CHECK(mix->term_count == 1);
            CHECK(mix->terms[0].factor == 1);
            CHECK(mix->terms[0].buffer == mean);
        }
    };
    const auto hash = run(scenario, {}, watch).report.weights_hash;
    CHECK(versions > 4);
    spec.gamma = Ramp::constant(0);
    CHECK(run(scenario).report.weights_hash == hash);  // nothing draws anybody
    spec.beta = Ramp::constant(0.9);
    CHECK(run(scenario).report.weights_hash != hash);
}

TEST_CASE("phases: workers never wait for anybody, and the more phases, the shorter a cycle") {
    // An exchange of the whole takes 6 ms a hop; steps take 4 ms.
    double before = 1e9;
    for (const int phases : {1, 2, 3}) {
        CAPTURE(phases);
        const auto done = simulate(timed(phases, 8), 100000, {1e-4, 1e9, 0, 0});
        for (const auto& row : done.ledger.workers) {
            CHECK(row.policy_wait_ns == 0);
            CHECK(static_cast<double>(row.compute_ns) / static_cast<double>(row.sum_ns()) > 0.999);
        }
        CHECK(cycle_s(done) < before);
        before = cycle_s(done);
    }
}

TEST_CASE("phases: a slow worker counts less, and lengthens a stage by one of its own steps at most") {
    auto scenario = timed(3, 8);
    const double even = cycle_s(simulate(scenario, 100000, {1e-4, 1e9, 0, 0}));
    scenario.workers.slow = {1, 1, 1, 1, 1, 2, 2, 2};
    const auto uneven = simulate(scenario, 100000, {1e-4, 1e9, 0, 0});
    CHECK(cycle_s(uneven) >= even);
    CHECK(cycle_s(uneven) <= even + 8e-3);
    std::map<WorkerId, double> steps;
    for (const auto& row : uneven.ledger.exchanges) {
        steps[row.worker] += static_cast<double>(row.steps);
        CHECK(row.begin_ns >= row.asked_ns);
        CHECK(row.begin_ns - row.asked_ns <= (row.worker >= 5 ? 8'000'000 : 4'000'000) + 1000);
    }
    CHECK(steps[6] / steps[0] == doctest::Approx(0.5).epsilon(0.02));
}

TEST_CASE("phases: copies stop a worker for what they take, and nothing else does") {
    auto scenario = timed(3, 4);
    scenario.cluster.exchange.copy_s = 1e-3;
    scenario.cluster.exchange.copy_s_per_byte = 1e-9;
    const auto done = simulate(scenario, 100000, {1e-4, 1e9, 0, 0});
    // Of a shard, 2 MB, 3 ms each: one out, and as many in as have come since.
    std::set<std::int64_t> pauses;
    double sum = 0;
    for (const auto& row : done.ledger.exchanges) {
        pauses.insert((row.end_ns - row.begin_ns + 500) / 1000);
        sum += static_cast<double>(row.end_ns - row.begin_ns) * 1e-6;
    }
    for (const std::int64_t pause : pauses) CHECK((pause == 3000 || pause == 6000 || pause == 9000));
    CHECK(sum / static_cast<double>(done.ledger.exchanges.size()) == doctest::Approx(6).epsilon(0.02));
    for (const auto& row : done.ledger.workers) {
        CHECK(row.push_queued_ns > 0);
        CHECK(row.push_queued_ns + row.pull_moving_ns + row.compute_ns + row.idle_ns == row.sum_ns());
    }
}

TEST_CASE("phases: runs are computed again from their logs, as they are and as hosts would merge them") {
    for (const int phases : {1, 3}) {
        auto scenario = phased(phases, 5);
        scenario.optimizer.name = "adam";
        scenario.evaluate.every_epochs = 0.5;
        const auto whole = record(scenario);
        REQUIRE(whole.report.status == Status::finished);
        const auto renamed = Renamed()(whole.steps);
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
            const auto steps = seed == 0 ? renamed : merged_anyhow(renamed, seed);
            sim::Verification verification;
            sim::Recomputation recomputation(whole.scenario, *whole.task, {2, true}, verification);
            for (const auto& step : steps) recomputation.take(step.now, step.role, step.event, step.actions);
            recomputation.end();
            CHECK(verification.loss_difference() == "");
            CHECK(verification.evaluation_difference() == "");
            CHECK(recomputation.outstanding() == 0);
            CHECK(*recomputation.weights_hash() == *whole.report.weights_hash);
        }
    }
}
