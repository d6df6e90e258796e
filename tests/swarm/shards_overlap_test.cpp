// Overlapping workers of sharded servers, over scenarios that a seed draws: what docs/protocols.md promises of both
// together. RUBATO_SWARM_SEED repeats one seed.
#include "support/simulate.hpp"
#include "swarm/shards_draw.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <cstdlib>
#include <map>

using namespace rubato;
using namespace rubato::test;

namespace {

Draw draw_overlap(std::uint64_t seed) {
    Draw it = draw_shards(seed);
    auto& scenario = it.scenario;
    scenario.protocol.name = seed % 2 == 0 ? "async" : "n-softsync";
    scenario.workers.pipeline = Pipeline::overlap;
    scenario.workers.pull = seed % 5 < 2 ? Pull::latest : Pull::prefetch;
    if (scenario.workers.draw_themselves() && scenario.data.sampling == Sampling::shared_epoch)
        scenario.data.sampling = Sampling::strided;
    return it;
}

/// What a worker may do at once, with whom, and on which parts.
class Checker {
public:
    explicit Checker(const Scenario& scenario, std::int64_t parameters = 0)
        : lambda_(scenario.lambda()),
          shards_(make_shards(scenario, parameters)),
          prefetch_(scenario.workers.pull == Pull::prefetch),
          tells_buffers_apart_(scenario.model.gradients) {}

    void see(Time now, RoleId role, const Event& event, const Actions& actions) {
        if (std::holds_alternative<Applied>(event)) ++made_[role];
        if (role == 0 || role > lambda_) return;
        Its& it = workers_[role];
        hear(now, it, event);
        for (const auto& action : actions.list) {
            if (const auto* release = std::get_if<Release>(&action)) let_go(it, release->buffer);
            if (const auto* place = std::get_if<Place>(&action))
                demand(!tells_buffers_apart_ || !it.computes || place->whole != it.weights,
                       "weights were written while a gradient was computed on them");
            if (const auto* compute = std::get_if<Compute>(&action)) begin(now, it, *compute);
            if (const auto* send = std::get_if<Send>(&action)) tell(it, *send);
        }
        demand(it.unpushed == 0 || it.unpushed == shards_.used(), "a gradient was pushed to some shards only");
        if (std::exchange(it.unpushed, 0) == 0) return;
        const Version first = it.parts.begin()->second.pushed;
        it.mixed +=
            std::any_of(it.parts.begin(), it.parts.end(), [&](auto& part) { return part.second.pushed != first; });
    }
    void at_end(const Ledger& ledger) const {
        for (const auto& row : ledger.workers) {
            const auto& it = workers_.at(row.worker + 1);
            demand(it.computed - it.pushed <= 1, "more than one gradient waits to be pushed");
            demand(row.mixed >= it.mixed && row.mixed <= it.mixed + it.computed - it.pushed,
                   "another number of gradients was computed on mixed versions");
            if (prefetch_)
                demand(row.inquiries == it.begun * shards_.used(), "not every shard was asked once a gradient");
        }
    }

private:
    struct Part {
        Version version = 0, before = 0;  ///< the newest that came, and that came before this nanosecond
        Time came_ns = -1;
        Version read = 0, pushed = 0;  ///< of the gradient that is computed or waits, and of the last one pushed
        bool asked = true;
        ActionId push = 0;
        int held = 0;  ///< messages of it that the worker holds
    };
    struct Its {
        std::map<RoleId, Part> parts;
        std::map<BufferId, RoleId> messages;  ///< where buffers are told apart
        std::int64_t begun = 0, computed = 0, pushed = 0, mixed = 0;
        int unpushed = 0;  ///< parts that this step has pushed
        bool computes = false, stops = false;
        BufferId weights = no_buffer;
    };

    void hear(Time now, Its& it, const Event& event) {
        if (const auto* taken = std::get_if<Taken>(&event))
            for (auto& [shard, part] : it.parts)
                if (part.push == taken->id) part.push = 0;
        if (std::holds_alternative<GradientReady>(event)) ++it.computed;
        if (std::holds_alternative<GradientReady>(event) || std::holds_alternative<Cancelled>(event))
            it.computes = false;
        const auto* delivered = std::get_if<Delivered>(&event);
        if (delivered == nullptr) return;
        if (std::holds_alternative<Stop>(delivered->message)) it.stops = true;
        Part& part = it.parts[delivered->from];
        if (std::holds_alternative<Weights>(delivered->message) || std::holds_alternative<Proceed>(delivered->message))
            demand(std::exchange(part.asked, false), "a shard answered without being asked");
        const auto* weights = std::get_if<Weights>(&delivered->message);
        if (weights == nullptr) return;
        demand(weights->version <= made_[delivered->from], "weights of a version that was never made");
        demand(weights->version > part.version, "weights that were there already");
        if (part.came_ns < now) part.before = part.version;
        part.version = weights->version;
        part.came_ns = now;
        if (!tells_buffers_apart_) return;
        it.messages[delivered->payload.buffer] = delivered->from;
        demand(++part.held == 1, "more than one message of a shard lies at a worker");
    }
    void let_go(Its& it, BufferId buffer) {
        if (!tells_buffers_apart_) return;
        if (const auto found = it.messages.find(buffer); found != it.messages.end()) {
            --it.parts[found->second].held;
            it.messages.erase(found);
            return;
        }
        demand(!it.computes || buffer != it.weights, "weights were let go while a gradient was computed on them");
    }
    void begin(Time now, Its& it, const Compute& compute) {
        demand(!it.computes, "two gradients were computed at once");
        demand(it.computed == it.pushed, "a gradient was begun before the one before it was handed over");
        demand(!it.stops, "a gradient was begun after the end");
        it.computes = true;
        it.weights = compute.weights;
        for (int shard = 0; shard < shards_.used(); ++shard) {
            Part& part = it.parts[shards_.role(shard)];
            demand(!prefetch_ || !part.asked, "a gradient was begun before all had answered");
            demand(it.begun > 0 || !part.asked, "the first gradient was begun before all had said a word");
            // What came at this very moment may not be in its place yet: the push tells.
            part.read = prefetch_ || part.came_ns < now ? part.version : -1;
        }
        ++it.begun;
    }
    void tell(Its& it, const Send& send) {
        Part& part = it.parts[send.to];
        if (std::holds_alternative<Inquiry>(send.message)) {
            demand(!std::exchange(part.asked, true), "a shard was asked while it owed an answer");
            demand(it.computes, "a shard was asked otherwise than with the begin of a gradient");
        }
        const auto* push = std::get_if<Push>(&send.message);
        if (push == nullptr) return;
        for (const auto& [shard, other] : it.parts)
            demand(other.push == 0 || it.unpushed > 0, "a gradient was pushed while another one was not taken");
        if (it.unpushed++ == 0) ++it.pushed;
        part.push = send.id;
        demand(push->count == 1 && push->worker_seq == it.pushed - 1, "gradients were merged or dropped");
        demand(push->read_version >= part.pushed, "versions ran backwards");
        if (part.read >= 0)
            demand(push->read_version == part.read, "a gradient was pushed as computed on what it was not");
        else
            demand(push->read_version >= part.before, "a part that was there was not swapped in");
        part.pushed = push->read_version;
        const auto& range = shards_.range(shards_.shard_of(send.to));
        demand(send.payload.first == range.first && send.payload.count == range.count,
               "a shard was pushed what is not its part");
    }

    std::map<RoleId, Its> workers_;
    std::map<RoleId, Version> made_;
    int lambda_;
    Shards shards_;
    bool prefetch_, tells_buffers_apart_;
};

void check_times(const Draw& it, const Ledger& ledger) {
    const auto& server = it.scenario.cluster.server;
    const Time end = ledger.updates.empty() ? 0 : ledger.updates.back().time_ns;
    for (const auto& row : ledger.workers) {
        demand(row.hidden_ns <= row.compute_ns, "more was hidden than was computed");
        for (const Time time : {row.compute_ns, row.push_queued_ns, row.push_moving_ns, row.pull_request_ns,
                                row.pull_moving_ns, row.policy_wait_ns, row.apply_wait_ns, row.idle_ns})
            demand(time >= 0, "negative time");
        if (server.update_s == 0 && server.push_s == 0 && server.pull_s == 0)
            demand(row.sum_ns() >= end, "a worker's books miss a part of the run");
    }
}

Scenario without_stop(Scenario scenario) {
    scenario.stop = {};
    return scenario;
}

void check(const Draw& it) {
    const auto& scenario = it.scenario;
    Checker checker(scenario);
    const auto run = simulate(scenario, it.samples, it.network, nullptr, -1,
                              [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                                  checker.see(now, role, event, actions);
                              });
    demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
    checker.at_end(run.ledger);
    check_shard_books(scenario.workers.draw_themselves() ? without_stop(scenario) : scenario, it.samples, run.ledger,
                      run.started, make_shards(scenario, 0).used());
    demand(static_cast<int>(run.ledger.workers.size()) == scenario.lambda(), "a worker kept no books");
    check_times(it, run.ledger);
}

/// The same with real gradients, whose buffers can be told apart.
void check_learning(std::uint64_t seed) {
    Draw it = draw_overlap(seed);
    const Scenario drawn = it.scenario;
    it.scenario = learning_scenario(drawn.protocol.name, drawn.lambda(), 10);
    it.scenario.protocol = drawn.protocol;
    it.scenario.topology = drawn.topology;
    it.scenario.shards = drawn.shards;
    it.scenario.shards.by_layers = it.scenario.shards.beside_workers = false;
    it.scenario.workers.pipeline = drawn.workers.pipeline;
    it.scenario.workers.pull = drawn.workers.pull;
    it.scenario.data.sampling = drawn.data.sampling;
    it.scenario.stop.epochs = 2;
    const auto task = learn::make_task(it.scenario);
    Checker checker(it.scenario, task->parameters());
    const auto run = simulate(it.scenario, it.scenario.data.samples, it.network, task.get(), -1,
                              [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                                  checker.see(now, role, event, actions);
                              });
    checker.at_end(run.ledger);
    check_shard_books(it.scenario.workers.draw_themselves() ? without_stop(it.scenario) : it.scenario,
                      it.scenario.data.samples, run.ledger, run.started,
                      make_shards(it.scenario, task->parameters()).used());
}

}  // namespace

TEST_CASE("shards, overlap: one push and one pull at a time, nothing lost at any shard, whatever the seed draws") {
    const char* one = std::getenv("RUBATO_SWARM_SEED");
    const std::uint64_t first = one ? std::strtoull(one, nullptr, 10) : 1;
    for (std::uint64_t seed = first; seed < first + (one ? 1 : 2000); ++seed) {
        INFO("repeat with RUBATO_SWARM_SEED=", seed);
        REQUIRE_NOTHROW(check(draw_overlap(seed)));
    }
}

TEST_CASE("shards, overlap: weights are neither written nor let go while a gradient is computed on them") {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        INFO("seed ", seed);
        REQUIRE_NOTHROW(check_learning(seed));
    }
}

TEST_CASE("shards, overlap: with one shard it is the pipeline of a star, row for row") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        auto it = draw_overlap(seed);
        INFO("seed ", seed);
        it.scenario.shards = {1, false, false};
        const auto sharded = simulate(it.scenario, it.samples, it.network);
        it.scenario.topology = "star";
        const auto star = simulate(it.scenario, it.samples, it.network);
        REQUIRE(sharded.ledger.gradients == star.ledger.gradients);
        REQUIRE(sharded.ledger.updates == star.ledger.updates);
        REQUIRE(sharded.ledger.workers == star.ledger.workers);
    }
}

TEST_CASE("shards, overlap: a run that is interrupted at any step ends in order, with every gradient in every book") {
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        const auto it = draw_overlap(seed);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, static_cast<std::int64_t>(seed));
        REQUIRE_NOTHROW(check_shard_books(without_stop(it.scenario), it.samples, run.ledger, run.started,
                                          make_shards(it.scenario, 0).used()));
        REQUIRE((run.report.status == Status::interrupted || run.report.status == Status::finished));
    }
}

TEST_CASE("shards, overlap: a run that a failed transfer ends says so, with every gradient in every book") {
    int lost = 0;
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        auto it = draw_overlap(seed);
        it.network.fails_after = static_cast<std::int64_t>(seed % 97);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network);
        REQUIRE_NOTHROW(check_shard_books(without_stop(it.scenario), it.samples, run.ledger, run.started,
                                          make_shards(it.scenario, 0).used()));
        if (run.report.status == Status::finished) continue;
        REQUIRE(run.report.status == Status::peer_lost);
        ++lost;
    }
    CHECK(lost > 100);
}

TEST_CASE("shards, overlap: with one worker staleness of prefetch is 2 at every shard") {
    for (const int shards : {1, 3, 5}) {
        auto scenario = timing_scenario("async", 1, 8, 0);
        scenario.topology = "sharded";
        scenario.shards.count = shards;
        scenario.workers.pipeline = Pipeline::overlap;
        scenario.stop.gradients = 500;
        const auto run = simulate(scenario, 100000, {1e-6, 1e12, 0, 0});
        CAPTURE(shards);
        std::int64_t checked = 0;
        for (const auto& row : run.ledger.shards)
            if (row.outcome == rubato::Outcome::applied && row.apply_version >= 2) {
                REQUIRE(row.staleness() == 2);
                ++checked;
            }
        CHECK(checked == 498 * shards);
    }
}

TEST_CASE("shards, overlap: a worker stalls for what the slowest shard's push takes beyond a computation") {
    for (const double push_s : {1e-3, 7e-3, 9e-3, 30e-3}) {
        auto scenario = timing_scenario("async", 1, 8, 0);  // 8 ms a gradient
        scenario.topology = "sharded";
        scenario.shards.count = 2;
        scenario.shards.by_layers = true;
        scenario.layers = {99, 1};
        scenario.workers.pipeline = Pipeline::overlap;
        scenario.workers.pull = Pull::latest;
        scenario.data.sampling = Sampling::random;
        scenario.stop.gradients = 200;
        scenario.cost.push_bytes = static_cast<std::int64_t>(push_s * 1e9 / 0.99);
        scenario.cost.pull_bytes = 100;
        const auto run = simulate(scenario, 1000, {0, 1e9, 0, 0});
        const auto& row = run.ledger.workers.front();
        CAPTURE(push_s);
        const double stall_s = 1e-9 * static_cast<double>(row.push_queued_ns + row.push_moving_ns);
        CHECK(stall_s == doctest::Approx(199 * std::max(0.0, push_s - 8e-3)).epsilon(0.02));
        CHECK(row.apply_wait_ns + row.policy_wait_ns + row.pull_request_ns == 0);
    }
}
