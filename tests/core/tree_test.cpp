// Trees of servers: their shape, and what relays add up.
#include "core/role.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <algorithm>
#include <numeric>
#include <set>

using namespace rubato;

TEST_CASE("tree: every worker has one leaf, every relay one parent, and no node more than fan_out children") {
    CHECK(rc::check("shape", [] {
        const int lambda = *rc::gen::inRange(1, 300), fan_out = *rc::gen::inRange(2, 12);
        const Tree tree(even_leaves(lambda, fan_out), fan_out);
        RC_ASSERT(tree.lambda() == lambda);
        RC_ASSERT(static_cast<int>(tree.top().size()) <= fan_out);
        std::multiset<RoleId> below(tree.top().begin(), tree.top().end());
        RoleId next = lambda + 1;
        for (const auto& relay : tree.relays()) {
            RC_ASSERT(relay.role == next++);
            RC_ASSERT(tree.relay(relay.role) == relay);
            RC_ASSERT(!relay.children.empty());
            RC_ASSERT(static_cast<int>(relay.children.size()) <= fan_out);
            RC_ASSERT(relay.parent == 0 || relay.parent > relay.role);
            RC_ASSERT(relay.children.size() == relay.ends.size());
            RC_ASSERT(relay.ends.back() == relay.end);
            below.insert(relay.children.begin(), relay.children.end());
            for (const RoleId child : relay.children) {
                if (child <= lambda)
                    RC_ASSERT(tree.server_of(child - 1) == relay.role);
                else
                    RC_ASSERT(tree.relay(child).parent == relay.role);
            }
        }
        RC_ASSERT(static_cast<int>(below.size()) == next - 1);
        RC_ASSERT(std::set<RoleId>(below.begin(), below.end()).size() == below.size());
        // As even as can be: leaves differ by a worker at most.
        const auto sizes = even_leaves(lambda, fan_out);
        RC_ASSERT(*std::max_element(sizes.begin(), sizes.end()) - *std::min_element(sizes.begin(), sizes.end()) <= 1);
        RC_ASSERT(static_cast<int>(sizes.size()) == (lambda + fan_out - 1) / fan_out);
    }));
    CHECK(Tree().star());
    CHECK(Tree().server_of(3) == 0);
    const Tree one({3}, 8);
    CHECK(one.relays().size() == 1);
    CHECK(one.depth() == 1);
    CHECK(Tree(even_leaves(10'000, 32), 32).relays().size() == 313 + 10);
    CHECK(Tree(even_leaves(10'000, 32), 32).depth() == 2);
}

TEST_CASE("tree: leaves by host hold the workers of a host, whatever their number") {
    Scenario scenario;
    scenario.topology = "tree";
    scenario.tree.leaves_by_host = true;
    scenario.workers.groups = {{5, "a", 2}, {3, "b", 3}};
    const Tree tree = make_tree(scenario);
    REQUIRE(tree.relays().size() == 4);
    std::vector<int> sizes;
    for (const auto& relay : tree.relays()) sizes.push_back(relay.workers());
    CHECK(sizes == std::vector<int>{2, 2, 1, 3});
    scenario.workers.hosts = 3;
    CHECK(make_tree(scenario).relays().size() == 3);
    scenario.topology = "star";
    CHECK(make_tree(scenario).star());
}

TEST_CASE("tree: a relay adds up a divisor of what an update takes, not above its share") {
    CHECK(rc::check("divisor", [] {
        const int lambda = *rc::gen::inRange(1, 200), gradients = *rc::gen::inRange(1, lambda + 1);
        const int below = *rc::gen::inRange(1, lambda + 1);
        const int sum = gradients_of_relay(gradients, lambda, below);
        RC_ASSERT(sum >= 1);
        RC_ASSERT(gradients % sum == 0);
        RC_ASSERT(sum == 1 || sum * lambda <= below * gradients);
        for (int more = sum + 1; more <= gradients; ++more)
            RC_ASSERT(gradients % more != 0 || more * lambda > below * gradients);
    }));
    CHECK(gradients_of_relay(30, 30, 8) == 6);  // 1-softsync
    CHECK(gradients_of_relay(54, 54, 7) == 6);
    CHECK(gradients_of_relay(7, 30, 8) == 1);  // 4-softsync
    CHECK(gradients_of_relay(10'000, 10'000, 32) == 25);
    CHECK(gradients_of_relay(10'000, 10'000, 1'024) == 1'000);
}

TEST_CASE("tree: relays sum up only for policies that never wait for a single gradient") {
    const auto arranged = [](ProtocolSpec protocol) {
        RelayConfig config;
        config.place.end = 8;
        config.lambda = 32;
        arrange(config, traits(make_policy(protocol, 32)));
        return config;
    };
    const auto named = [](const char* name) {
        ProtocolSpec protocol;
        protocol.name = name;
        return protocol;
    };
    CHECK(arranged(named("n-softsync")).gradients == 8);
    CHECK(arranged(named("hardsync")).rounds);
    CHECK(arranged(named("bsp")).rounds);
    for (const char* name :
         {"async", "asp", "ssp", "dssp", "bounded-delay", "backup-workers", "rennala", "ringmaster", "admission"}) {
        CAPTURE(name);
        CHECK(arranged(named(name)).gradients == 1);
        CHECK_FALSE(arranged(named(name)).rounds);
    }
    CHECK(arranged(named("admission")).in_order);
    CHECK_FALSE(arranged(named("n-softsync")).in_order);
}

TEST_CASE("tree: a relay refuses what is not for it") {
    Scenario scenario;
    scenario.workers.groups = {{4, "default", 0}};
    scenario.protocol.name = "n-softsync";
    scenario.topology = "tree";
    scenario.tree.fan_out = 2;
    auto roles = make_roles(scenario, 100, 10);
    REQUIRE(roles.size() == 7);
    CHECK(describe(roles[5]).find("relay of workers 0 to 1 at version 0") == 0);
    CHECK(role_name(5, 4) == "relay 0");
    CHECK(role_name(4, 4) == "worker 3");
    Actions actions;
    step(roles[5], 0, Start{1}, actions);
    CHECK_THROWS(step(roles[5], 1, Applied{7, 1}, actions));
    CHECK_THROWS(step(roles[5], 1, Folded{7, 1}, actions));
    CHECK_THROWS(
        step(roles[5], 1, Delivered{0, Channel::control, Proceed{0, {}, 0, 0, 0, false, 3}, {}, 0, 0}, actions));
}

// Each is in an event queue thousands of times.
static_assert(sizeof(Push) == 80 && sizeof(Message) == 104);

TEST_CASE(
    "tree: weights reach every worker once, over at most fan_out other hosts and fan_out neighbours of each node") {
    CHECK(rc::check("downcast", [] {
        const int hosts = *rc::gen::inRange(1, 60), fan_out = *rc::gen::inRange(1, 6);
        std::vector<int> host_of;
        for (int host = 0; host < hosts; ++host)
            host_of.insert(host_of.end(), static_cast<std::size_t>(*rc::gen::inRange(1, 9)), host);
        const auto lambda = static_cast<int>(host_of.size());
        Tree tree(even_leaves(lambda, 8), 8);
        RC_ASSERT(!tree.downcast());
        RC_ASSERT(tree.feeder_of(0) == -1);
        tree.lay_downcast(host_of, fan_out);
        std::multiset<RoleId> fed(tree.fed_by_root().begin(), tree.fed_by_root().end());
        RC_ASSERT(static_cast<int>(fed.size()) <= fan_out);
        std::set<int> reached;
        for (WorkerId worker = 0; worker < lambda; ++worker) {
            int near = 0, far = 0;
            for (const RoleId it : tree.fed_by(worker)) {
                RC_ASSERT(tree.feeder_of(it - 1) == worker + 1);
                const bool same =
                    host_of[static_cast<std::size_t>(it - 1)] == host_of[static_cast<std::size_t>(worker)];
                ++(same ? near : far);
                if (!same) RC_ASSERT(reached.insert(host_of[static_cast<std::size_t>(it - 1)]).second);
                fed.insert(it);
            }
            RC_ASSERT(near <= fan_out && far <= fan_out);
        }
        RC_ASSERT(static_cast<int>(fed.size()) == lambda);
        RC_ASSERT(std::set<RoleId>(fed.begin(), fed.end()).size() == fed.size());
    }));
}
