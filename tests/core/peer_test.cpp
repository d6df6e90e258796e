// Peers that are lost.
#include "core/role.hpp"

#include <doctest/doctest.h>

using namespace rubato;

TEST_CASE("server: what a lost peer was dealt and never sent is cancelled, and nothing else") {
    int sum = 1;
    SUBCASE("gradients") {}
    SUBCASE("sums of three, of which nobody knows how many were begun") {
        sum = 3;
    }
    Scenario scenario;
    scenario.model.gradients = false;
    scenario.workers.groups = {{2, "default", 0}};
    scenario.workers.batch_size = 5;
    scenario.workers.communication.push_every = sum;
    scenario.protocol.name = "async";
    scenario.stop.epochs = 10;
    auto roles = make_roles(scenario, 20 * sum, 0);
    Actions actions;
    step(roles[0], 0, Start{0}, actions);  // both are dealt a batch
    Push push;
    push.batch = {0, 5 * sum, 0};
    push.count = sum;
    actions.clear();
    step(roles[0], 10, Delivered{1, Channel::gradient, push, {1, 0, 0}, 5, 5}, actions);
    actions.clear();
    step(roles[0], 20, PeerLost{1}, actions);
    CHECK(actions.gradients.empty());  // its gradient has come
    step(roles[0], 20, PeerLost{2}, actions);
    REQUIRE(actions.gradients.size() == 1);
    const auto& row = actions.gradients.front();
    CHECK(row.outcome == Outcome::cancelled);
    CHECK(row.worker == 1);
    CHECK(row.worker_seq == 0);
    CHECK(row.count == sum);
    CHECK(row.batch == Batch{0, 5 * sum, 5 * sum});
    CHECK(row.read_version == 0);
    actions.clear();
    step(roles[0], 30, Abandoned{Status::stalled}, actions);
    REQUIRE(actions.gradients.size() == 1);
    CHECK(actions.gradients.front().worker == 0);
    CHECK(actions.gradients.front().outcome == Outcome::leftover);
}

TEST_CASE("ssp, dssp: a worker that is far ahead when it returns waits until it is near") {
    bool resumed = false;
    SUBCASE("in the same run") {}
    SUBCASE("in one that goes on from a checkpoint") {
        resumed = true;
    }
    for (const char* name : {"ssp", "dssp"}) {
        CAPTURE(name);
        ProtocolSpec spec;
        spec.name = name;
        spec.bound = spec.dssp.lower_bound = 1;
        spec.dssp.r_max = 0;
        Policy policy = make_policy(spec, 2);
        Orders orders;
        Time now = 0;
        const auto push = [&](WorkerId worker) {
            orders.clear();
            on_arrival(policy, {worker, 0, 0, 1, ++now}, orders);
            on_applied(policy, now, orders);
            return orders.release;
        };
        on_lost(policy, 1, orders);
        for (int i = 0; i < 50; ++i) CHECK(push(0) == std::vector<WorkerId>{0});
        on_lost(policy, 0, orders);
        on_back(policy, 1);
        if (resumed)
            on_resume(policy);
        else
            on_back(policy, 0);
        CHECK(on_ready(policy, 0) == Ready::hold);
        CHECK(on_ready(policy, 1) == Ready::start);
        for (int i = 0; i < 48; ++i) CHECK(push(1) == std::vector<WorkerId>{1});
        CHECK(push(1) == std::vector<WorkerId>{0, 1});
        CHECK(on_ready(policy, 0) == Ready::start);
    }
}
