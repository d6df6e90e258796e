// A worker of shards that overlaps, by itself: what parts do that are just being copied, as in real time only; and what
// shards tell each other of one that asks ahead.
#include "core/role.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace rubato;

namespace {

constexpr BufferId first_model = 1;

/// One worker with batches of its own, and two shards: role 0 with elements 0 to 4, role 2 with 5 to 9.
struct Latest {
    ShardWorker worker{{.worker = 0,
                        .shards = Shards(1, {{0, 5}, {5, 5}}),
                        .overlaps = true,
                        .draws = true,
                        .data = {.sampling = Sampling::strided, .samples = 100, .batch_size = 10}}};
    Actions actions;
    BufferId gradient = 100;

    Latest() {
        see(0, Start{first_model});
        see(10, Delivered{0, Channel::control, Proceed{}, {}, 5, 5});
        see(12, Delivered{2, Channel::control, Proceed{}, {}, 5, 5});
    }
    void see(Time now, const Event& event) {
        actions = {};
        worker.step(now, event, actions);
    }
    void weights(Time now, RoleId from, Version version, BufferId buffer) {
        Weights message;
        message.version = version;
        see(now, Delivered{from, Channel::weights, message, {buffer, from == 0 ? 0 : 5, 5}, now - 2, now - 1});
    }
    void ready(Time now, const Compute& compute) { see(now, GradientReady{compute.id, ++gradient, now - 10, now, 0}); }
    template <class Kind>
    std::vector<Kind> all() const {
        std::vector<Kind> found;
        for (const auto& action : actions.list)
            if (const auto* it = std::get_if<Kind>(&action)) found.push_back(*it);
        return found;
    }
    template <class Kind>
    Kind one() const {
        REQUIRE(all<Kind>().size() == 1);
        return all<Kind>().front();
    }
    template <class M>
    std::vector<std::pair<RoleId, M>> sent() const {
        std::vector<std::pair<RoleId, M>> found;
        for (const auto& send : all<Send>())
            if (const auto* it = std::get_if<M>(&send.message)) found.emplace_back(send.to, *it);
        return found;
    }
    std::vector<Version> pushed() const {
        std::vector<Version> versions;
        for (const auto& [to, push] : sent<Push>()) versions.push_back(push.read_version);
        return versions;
    }
    void take_pushes(Time now) {
        std::vector<ActionId> ids;
        for (const auto& send : all<Send>())
            if (std::holds_alternative<Push>(send.message)) ids.push_back(send.id);
        for (const ActionId id : ids) see(now, Taken{id, now});
    }
};

}  // namespace

TEST_CASE("shard worker: latest waits for no part that is just being copied, and swaps it in a gradient later") {
    Latest it;
    const auto first = it.one<Compute>();
    CHECK(first.weights == first_model);
    CHECK(it.sent<Inquiry>().size() == 2);

    it.weights(20, 0, 3, 10);
    const auto copy = it.one<Place>();
    CHECK(copy.weights == first_model);
    CHECK(copy.whole == no_buffer);
    it.weights(21, 2, 4, 11);
    CHECK(it.all<Place>().empty());  // one at a time

    // The first copy is not made yet: the second gradient is of the first model, too, and nobody is asked again.
    it.ready(30, first);
    CHECK(it.pushed() == std::vector<Version>{0, 0});
    const auto second = it.one<Compute>();
    CHECK(second.weights == first_model);
    CHECK(it.sent<Inquiry>().empty());
    it.take_pushes(31);

    it.see(32, Placed{copy.id, 2});
    const auto into = it.one<Place>();
    CHECK(into.whole == 2);
    CHECK(into.part.buffer == 11);

    // One part is in its place, the other one is just being written beside it: still nothing to swap in. Shard 0 is
    // asked again, shard 1 is not.
    it.ready(40, second);
    CHECK(it.pushed() == std::vector<Version>{0, 0});
    const auto third = it.one<Compute>();
    CHECK(third.weights == first_model);
    REQUIRE(it.sent<Inquiry>().size() == 1);
    CHECK(it.sent<Inquiry>().front().first == 0);
    CHECK(it.sent<Inquiry>().front().second.have == 3);
    it.take_pushes(41);

    it.see(42, Placed{into.id, 2});
    it.ready(50, third);
    CHECK(it.pushed() == std::vector<Version>{0, 0});
    const auto fourth = it.one<Compute>();
    CHECK(fourth.weights == 2);
    CHECK(std::count(it.actions.list.begin(), it.actions.list.end(), Action(Release{first_model})) == 1);
    it.take_pushes(51);

    it.ready(60, fourth);
    CHECK(it.pushed() == std::vector<Version>{3, 4});
    CHECK(it.worker.books(60).mixed == 1);
    CHECK(it.worker.books(60).hidden_ns > 0);
}

TEST_CASE("shard worker: a part that is being copied when the run ends is waited for before the last word") {
    Latest it;
    const auto first = it.one<Compute>();
    it.weights(20, 0, 3, 10);
    const auto copy = it.one<Place>();
    it.weights(21, 2, 4, 11);
    Stop stop;
    stop.replies = 2;
    it.see(25, Delivered{0, Channel::control, stop, {}, 24, 24});
    CHECK(it.one<Release>().buffer == 11);
    it.see(26, Delivered{2, Channel::control, stop, {}, 24, 24});
    it.see(28, Cancelled{first.id, 12});
    CHECK(it.sent<Bye>().empty());
    it.see(30, Placed{copy.id, 2});
    // The inquiries of the gradient are not taken: nobody has said so.
    CHECK(it.sent<Bye>().empty());
}

TEST_CASE("shards: who is idle from then on still has to push what it was dealt before it asked ahead") {
    Scenario scenario;
    scenario.protocol.name = "async";
    scenario.topology = "sharded";
    scenario.shards.count = 2;
    scenario.workers.groups = {{1, "default", 0}};
    scenario.workers.batch_size = 10;
    scenario.workers.pipeline = Pipeline::overlap;
    scenario.evaluate.at_end = false;
    scenario.stop.epochs = 1;
    auto roles = make_roles(scenario, 10, 10, nullptr);
    Actions actions;
    step(roles[0], 0, Start{1}, actions);
    step(roles[2], 0, Start{2}, actions);
    actions.clear();
    step(roles[0], 10, Delivered{1, Channel::control, Inquiry{0}, {}, 9, 9}, actions);
    REQUIRE(actions.list.size() == 1);
    const auto idle = std::get<Idle>(std::get<Send>(actions.list.front()).message);
    CHECK(idle.pushes == 1);
    // Its process ends before it has pushed that gradient: both shards say that it was begun.
    step(roles[2], 11, Delivered{1, Channel::control, Inquiry{0}, {}, 9, 9}, actions);
    step(roles[2], 12, Delivered{0, Channel::control, idle, {}, 10, 10}, actions);
    actions.clear();
    for (const std::size_t shard : {0, 2}) step(roles[shard], 20, PeerLost{1}, actions);
    REQUIRE(actions.shards.size() == 2);
    CHECK(actions.shards[0].outcome == Outcome::cancelled);
    CHECK(actions.shards[1].worker_seq == 0);
}
