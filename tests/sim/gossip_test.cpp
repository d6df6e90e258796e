// GoSGD, held against its equations, number by number, and against the law that the weight of all workers, with what
// is under way, is 1.
#include "core/averaging/gossip_plan.hpp"
#include "sim/recomputed.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <deque>

using namespace rubato;
using namespace rubato::test;

namespace {

/// The loss of weights w is w * w / 2, the gradient w, and the first weights are 1.
Scenario gossip(int lambda, int tau, const std::string& model = "quadratic") {
    Scenario scenario = learning_scenario("gosgd", lambda, 4, model, 160);
    scenario.model.dimension = 1;
    scenario.data.sampling = Sampling::strided;
    scenario.optimizer.learning_rate = 0.125;
    scenario.protocol.averaging.tau = tau;
    scenario.stop.epochs = 6;
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

/// Models and weights of all workers, from who did what when.
class ByHand {
public:
    explicit ByHand(const Scenario& scenario) : tau_(scenario.protocol.averaging.tau), seed_(scenario.seeds.data) {
        const double part = 1.0 / scenario.lambda();
        for (WorkerId worker = 0; worker < scenario.lambda(); ++worker) all_.push_back(worker);
        workers_.assign(all_.size(), {1, part, 0, 0, 0, {}});
    }
    void see(Time, RoleId role, const Event& event, const Actions& actions) {
        if (role == 0) return see_monitor(event, actions);
        Worker& it = workers_[static_cast<std::size_t>(role - 1)];
        if (const auto* delivered = std::get_if<Delivered>(&event))
            if (std::holds_alternative<Gossip>(delivered->message)) {
                auto& way = under_way_[{delivered->from, role}];
                REQUIRE(!way.empty());
                CHECK(std::get<Gossip>(delivered->message).weight == way.front().weight);
                it.handed.push_back(way.front());
                way.pop_front();
            }
        if (const auto* ready = std::get_if<GradientReady>(&event)) {
            const auto x = static_cast<double>(it.x);
            CHECK(ready->loss == doctest::Approx(0.5 * x * x).epsilon(1e-12));
            ++losses;
        }
        if (std::holds_alternative<Applied>(event)) {
            it.x -= 0.125f * it.x;
            ++it.steps;
        }
        for (const auto& action : actions.list) {
            if (const auto* mix = std::get_if<Mix>(&action)) {
                if (mix->work == Mix::Work::move) merge(it);
                if (mix->work == Mix::Work::copy) {
                    sum_ += it.weight * static_cast<double>(it.x);
                    weight_ += it.weight;
                }
            }
            if (const auto* send = std::get_if<Send>(&action))
                if (send->payload.buffer != no_buffer && std::holds_alternative<Gossip>(send->message))
                    hand_over(it, role, *send);
        }
        double all = 0;
        for (const auto& worker : workers_) {
            all += worker.weight;
            for (const auto& handed : worker.handed) all += handed.weight;
        }
        for (const auto& [link, messages] : under_way_)
            for (const auto& message : messages) all += message.weight;
        CHECK(all == doctest::Approx(1).epsilon(1e-12));
    }
    std::vector<double> means;  ///< of all models, as the monitor asked for them
    double last_weight = 0;     ///< behind the last one
    int losses = 0, merges = 0;

private:
    struct Handed {
        float x;
        double weight;
    };
    struct Worker {
        float x;
        double weight;
        std::int64_t steps, hand_overs, since;
        std::deque<Handed> handed;
    };

    void merge(Worker& it) {
        REQUIRE(!it.handed.empty());
        const Handed other = it.handed.front();
        it.handed.pop_front();
        const double part = other.weight / (it.weight + other.weight);
        it.x = static_cast<float>((1 - part) * static_cast<double>(it.x) + part * static_cast<double>(other.x));
        it.weight += other.weight;
        ++merges;
    }
    void hand_over(Worker& it, RoleId role, const Send& send) {
        CHECK(it.steps - it.since >= tau_);
        CHECK(it.handed.empty());
        it.since = it.steps;
        it.weight /= 2;
        const auto& said = std::get<Gossip>(send.message);
        CHECK(send.to == 1 + gossip_peer(seed_, role - 1, it.hand_overs, all_));
        CHECK(said.number == it.hand_overs++);
        CHECK(said.weight == it.weight);
        under_way_[{role, send.to}].push_back({it.x, it.weight});
    }
    void see_monitor(const Event& event, const Actions&) {
        const auto* delivered = std::get_if<Delivered>(&event);
        if (delivered == nullptr || !std::holds_alternative<Share>(delivered->message)) return;
        CHECK(std::get<Share>(delivered->message).weight == doctest::Approx(weight_).epsilon(1e-12));
        means.push_back(sum_ / weight_);
        last_weight = weight_;
        sum_ = weight_ = 0;
    }

    int tau_;
    std::uint64_t seed_;
    std::vector<WorkerId> all_;
    std::vector<Worker> workers_;
    std::map<std::pair<RoleId, RoleId>, std::deque<Handed>> under_way_;
    double sum_ = 0, weight_ = 0;
};

}  // namespace

TEST_CASE("gossip: models, weights and means are those by hand, and the weight of all is 1 at any time") {
    for (const int lambda : {2, 3, 7})
        for (const int tau : {1, 3})
            for (const double latency : {1e-5, 0.02}) {  // of which the latter is longer than some steps
                CAPTURE(lambda);
                CAPTURE(tau);
                CAPTURE(latency);
                auto scenario = gossip(lambda, tau);
                scenario.evaluate.every_epochs = 1;
                ByHand by_hand(scenario);
                NetworkShape shape;
                shape.latency_s = latency;
                const auto done =
                    run(scenario, shape, [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                        by_hand.see(now, role, event, actions);
                    });
                CHECK(by_hand.losses >= 240);
                CHECK(by_hand.merges >= 20);
                REQUIRE(by_hand.means.size() == done.ledger.updates.size());
                CHECK(by_hand.means.size() >= 3);
                CHECK(by_hand.last_weight == doctest::Approx(1).epsilon(1e-12));
                std::size_t evaluated = 0;
                for (const auto& row : done.ledger.evals) {
                    if (row.version == 0) continue;
                    const double mean = by_hand.means.at(static_cast<std::size_t>(row.version - 1));
                    CHECK(*row.metrics.suboptimality == doctest::Approx(0.5 * mean * mean).epsilon(1e-5));
                    ++evaluated;
                }
                CHECK(evaluated == by_hand.means.size());
            }
}

TEST_CASE("gossip: one worker has no peer, and takes the steps of plain SGD") {
    auto scenario = gossip(1, 2, "mlp");
    scenario.optimizer.name = "adam";
    scenario.optimizer.learning_rate = 0.01;
    const auto done = run(scenario);
    scenario.protocol.name = "hardsync";
    CHECK(done.report.weights_hash == run(scenario).report.weights_hash);
}

TEST_CASE("gossip: every step is in the mean that comes next") {
    auto scenario = gossip(4, 2);
    scenario.evaluate.every_epochs = 0.5;
    const auto done = run(scenario);
    std::int64_t applied = 0, contributors = 0;
    for (const auto& row : done.ledger.gradients) {
        if (row.outcome == rubato::Outcome::cancelled) continue;
        CHECK(row.outcome == rubato::Outcome::applied);
        CHECK(row.staleness() == 0);
        ++applied;
    }
    for (const auto& row : done.ledger.updates) contributors += row.contributors;
    CHECK(applied == contributors);
    CHECK(applied >= 240);
    CHECK(done.ledger.updates.back().epoch >= 6);
    CHECK(done.ledger.rounds.size() == done.ledger.updates.size());
    // In timing-only runs, which evaluate nothing, there is the one at the end.
    auto timing = timing_scenario("gosgd", 3, 4);
    timing.data.sampling = Sampling::random;
    timing.protocol.averaging.tau = 2;
    timing.stop.gradients = 100;
    const auto timed = simulate(timing, 1000);
    CHECK(timed.report.status == Status::finished);
    REQUIRE(timed.ledger.updates.size() == 1);
    CHECK(timed.ledger.updates.front().contributors >= 100);
    for (const auto& row : timed.ledger.workers) CHECK(row.policy_wait_ns + row.pull_request_ns == 0);
}

TEST_CASE("gossip: a worker without data keeps no weight, and nobody hands it anything") {
    auto scenario = gossip(5, 1);
    scenario.data.sampling = Sampling::sharded;
    scenario.data.samples = 4;
    int handed = 0;
    const auto done = run(scenario, {}, [&](Time, RoleId role, const Event& event, const Actions&) {
        const auto* delivered = std::get_if<Delivered>(&event);
        if (delivered == nullptr || !std::holds_alternative<Gossip>(delivered->message) || role == 0) return;
        CHECK(role != 5);
        ++handed;
    });
    CHECK(handed > 5);
    for (const auto& row : done.ledger.gradients) CHECK(row.worker != 4);
}

TEST_CASE("gossip: peers are drawn alike, never oneself, by a function of seed, worker and number") {
    const std::vector<WorkerId> workers{0, 1, 3, 4, 9};
    for (const WorkerId worker : workers) {
        std::map<WorkerId, int> times;
        for (std::int64_t number = 0; number < 40000; ++number) {
            const WorkerId peer = gossip_peer(7, worker, number, workers);
            REQUIRE(peer == gossip_peer(7, worker, number, workers));
            ++times[peer];
        }
        CHECK(times.count(worker) == 0);
        REQUIRE(times.size() == 4);
        for (const auto& [peer, count] : times) CHECK(std::abs(count - 10000) < 400);
    }
    int same = 0, in_step = 0;
    for (std::int64_t number = 0; number < 4000; ++number) {
        same += gossip_peer(7, 0, number, workers) == gossip_peer(8, 0, number, workers);
        in_step += gossip_peer(7, 0, number, workers) == gossip_peer(7, 1, number, workers);
    }
    CHECK(std::abs(same - 1000) < 150);
    CHECK(std::abs(in_step - 750) < 150);
    CHECK(gossip_peer(1, 0, 5, {0, 1}) == 1);
}

TEST_CASE("gossip: runs are computed again from their logs, as they are and as hosts would merge them") {
    auto scenario = gossip(5, 2, "mlp");
    scenario.optimizer.name = "adam";
    scenario.optimizer.learning_rate = 0.01;
    scenario.evaluate.every_epochs = 1;
    const auto whole = record(scenario);
    REQUIRE(whole.report.status == Status::finished);
    const auto renamed = Renamed()(whole.steps);
    check_recomputed(whole, renamed);
    for (std::uint64_t seed = 0; seed < 8; ++seed) check_recomputed(whole, merged_anyhow(renamed, seed));
    for (const std::int64_t after : {30, 77, 150}) {
        const auto part = record(scenario, after);
        REQUIRE(part.report.status == Status::interrupted);
        check_recomputed(part, part.steps);
    }
}

TEST_CASE("gossip: time passes for those too whose gradients take less than a nanosecond") {
    auto scenario = gossip(3, 2);
    auto& device = scenario.cluster.devices["default"];
    device = {};
    device.kind = DeviceSpec::Kind::affine;
    device.a = 1e-12;
    Time shortest = 1000000, end = 0;
    // A watcher that has seen enough ends a run that would never end itself.
    std::int64_t steps = 0;
    const auto watch = [&](Time now, RoleId, const Event& event, const Actions&) {
        REQUIRE(++steps < 1000000);
        end = std::max(end, now);
        if (const auto* ready = std::get_if<GradientReady>(&event))
            shortest = std::min(shortest, ready->end_ns - ready->begin_ns);
    };
    run(scenario, {1e-6}, watch);
    CHECK(shortest == 1);
    CHECK(end >= 1000);
}
