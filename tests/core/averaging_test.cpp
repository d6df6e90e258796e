// The collective shapes of averaging, each alone.
#include "core/averaging/broadcast.hpp"
#include "core/averaging/passing.hpp"
#include "core/averaging/phase_plan.hpp"
#include "core/averaging/ramp.hpp"
#include "core/averaging/tree_reduce.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace rubato;

namespace {

int levels_of(int size) {
    int levels = 0;
    while ((1 << levels) < size) ++levels;
    return levels;
}

}  // namespace

TEST_CASE("reduce: everybody is added once, by its parent, on a way of ceil(log2 members) hops at most") {
    for (int size = 1; size <= 70; ++size) {
        std::set<int> added;
        for (int rank = 0; rank < size; ++rank)
            for (const int child : reduce_children(rank, size)) {
                CHECK(added.insert(child).second);
                CHECK(reduce_parent(child) == rank);
            }
        CHECK(added.size() == static_cast<std::size_t>(size - 1));
        CHECK(added.count(0) == 0);
        for (int rank = 0; rank < size; ++rank) {
            int hops = 0;
            for (int at = rank; at > 0; at = reduce_parent(at)) ++hops;
            CHECK(hops <= levels_of(size));
        }
        CHECK(reduce_children(0, size).size() == static_cast<std::size_t>(levels_of(size)));
    }
}

TEST_CASE("broadcast: everybody gets the model once, in ceil(log2 nodes) steps of one message a node") {
    for (int nodes = 1; nodes <= 70; ++nodes) {
        std::map<int, int> step{{0, 0}};  // by which a node has it
        for (int node = 0; node < nodes; ++node) {
            REQUIRE(step.count(node) == 1);
            int next = step[node];
            for (const int child : broadcast_children(node, nodes)) CHECK(step.emplace(child, ++next).second);
        }
        CHECK(step.size() == static_cast<std::size_t>(nodes));
        for (const auto& [node, when] : step) CHECK(when <= levels_of(nodes));
    }
}

TEST_CASE("reduce: means are taken in the order of the tree, whatever came first, and every reference ends") {
    const auto run = [](bool late) {
        TreeReduce reduce = Members(4).reduce(0, false);  // adds 1, then 2, which has added 3
        ActionId id = 0;
        const auto next_id = [&] { return ++id; };
        Actions actions;
        const TreeReduce::Sum one{{11, 0, 5}, {0, 1, 3, 20}}, two{{12, 0, 5}, {0, 2, 4, 30}};
        reduce.come(2, two, actions);
        reduce.go_on(next_id, actions);
        CHECK(actions.list.empty());  // its own is missing
        if (!late) reduce.come(1, one, actions);
        reduce.begin({{10, 0, 5}, {0, 1, 1, 10}}, true);
        reduce.go_on(next_id, actions);
        if (late) {
            CHECK(actions.list.empty());
            CHECK(reduce.waits_for() == 1);
            reduce.come(1, one, actions);
            reduce.go_on(next_id, actions);
        }
        REQUIRE(actions.list.size() == 1);
        const auto first = std::get<Mix>(actions.list[0]);
        CHECK(first.out == no_buffer);  // the member keeps its own
        CHECK(first.terms[0] == MixTerm{10, 0.25});
        CHECK(first.terms[1] == MixTerm{11, 0.75});
        actions.clear();
        reduce.on(Mixed{first.id, 13}, actions);
        reduce.go_on(next_id, actions);
        REQUIRE(actions.list.size() == 2);
        CHECK(std::get<Release>(actions.list[0]).buffer == 11);
        const auto second = std::get<Mix>(actions.list[1]);
        CHECK(second.out == 13);
        CHECK(second.terms[0] == MixTerm{13, 0.5});
        CHECK(second.terms[1] == MixTerm{12, 0.5});
        actions.clear();
        CHECK_FALSE(reduce.done());
        reduce.on(Mixed{second.id, 14}, actions);
        REQUIRE(actions.list.size() == 1);
        CHECK(std::get<Release>(actions.list[0]).buffer == 12);
        CHECK(reduce.done());
        CHECK(reduce.owns());
        return reduce.take();
    };
    const auto sum = run(false);
    CHECK(sum == run(true));
    CHECK(sum.mean == Slice{14, 0, 5});
    CHECK(sum.said == Share{0, 4, 8, 30});
}

TEST_CASE("reduce: where one has nothing there is no mean, and what others sent is let go") {
    TreeReduce reduce = Members(4).reduce(0, false);
    ActionId id = 0;
    Actions actions;
    reduce.begin({{10, 0, 5}, {0, 1, 1, 0}}, false);
    reduce.come(2, {{12, 0, 5}, {0, 2, 2, 0}}, actions);
    reduce.come(1, {{}, {0, 1, 0, 0}}, actions);
    reduce.go_on([&] { return ++id; }, actions);
    CHECK(reduce.done());
    const auto sum = reduce.take();
    CHECK(sum.mean.buffer == no_buffer);
    CHECK(sum.said.workers == 4);
    std::set<BufferId> released;
    for (const auto& action : actions.list) released.insert(std::get<Release>(action).buffer);
    CHECK(released == std::set<BufferId>{10, 12});
}

TEST_CASE("members: whoever is there, trees reach all of them once, and nobody else") {
    for (int lambda = 1; lambda <= 9; ++lambda) {
        for (unsigned gone = 0; gone + 1 < 1U << lambda; ++gone) {
            Members members(lambda);
            members.change(0, false);
            members.change(0, true);  // it came back
            std::set<WorkerId> there;
            for (WorkerId worker = 0; worker < lambda; ++worker) {
                if (gone >> worker & 1U)
                    members.change(worker, false);
                else
                    there.insert(worker);
            }
            CHECK(members.size() == static_cast<int>(there.size()));
            std::set<RoleId> reached;
            std::set<WorkerId> added;
            std::vector<RoleId> senders{0};
            for (const WorkerId worker : there) senders.push_back(worker + 1);
            for (const RoleId role : senders)
                for (const RoleId child : members.below(role, members.number()))
                    CHECK(reached.insert(child - 1).second);
            CHECK(reached == there);
            for (const WorkerId worker : there) {
                const RoleId parent = members.reduce(worker, false).parent();
                CHECK(parent <= worker);  // so that all of them end at the driver
                CHECK((parent == 0 || there.count(parent - 1) == 1));
                CHECK((parent > 0 || worker == *there.begin()));
            }
            CHECK(members.below(0, 0) == Members(lambda).below(0, 0));  // as it was before all changes
        }
    }
}

TEST_CASE("reduce: what was summed among others than those who are there is let go, and its own is kept") {
    Members members(4);
    members.change(3, false);
    TreeReduce reduce = members.reduce(0, false);
    Actions actions;
    ActionId id = 0;
    reduce.come(1, {{11, 0, 5}, {0, 1, 1, 0, 0}}, actions);  // of all four
    REQUIRE(actions.list.size() == 1);
    CHECK(std::get<Release>(actions.list[0]).buffer == 11);
    actions.clear();
    reduce.begin({{10, 0, 5}, {0, 1, 1, 0}}, true);
    reduce.come(1, {{21, 0, 5}, {0, 1, 1, 0, 1}}, actions);
    reduce.go_on([&] { return ++id; }, actions);
    CHECK(reduce.mixing());
    actions.clear();
    reduce.on(Mixed{id, 13}, actions);
    actions.clear();
    reduce.end(actions);
    REQUIRE(actions.list.size() == 1);
    CHECK(std::get<Release>(actions.list[0]).buffer == 13);
}

TEST_CASE("broadcast: one message at a time, and the next when that is taken") {
    Broadcast broadcast;
    ActionId id = 0;
    const auto next_id = [&] { return ++id; };
    Actions actions;
    CHECK(broadcast.done());  // there is nothing to send yet
    broadcast.begin(Model{7, 3, 0.5, 9});
    Members(3).spread({10, 0, 5}, {}, broadcast);
    CHECK(broadcast.go_on(next_id, actions));
    CHECK_FALSE(broadcast.go_on(next_id, actions));
    REQUIRE(actions.list.size() == 1);
    CHECK(std::get<Send>(actions.list[0]).to == 1);
    CHECK(std::get<Model>(std::get<Send>(actions.list[0]).message).version == 7);
    CHECK(broadcast.is_of(Taken{1, 0}));
    broadcast.on(Taken{1, 0});
    CHECK(broadcast.go_on(next_id, actions));
    CHECK(std::get<Send>(actions.list[1]).to == 2);
    CHECK_FALSE(broadcast.done());
    broadcast.on(Taken{2, 0});
    CHECK(broadcast.done());
}

TEST_CASE("swarm: the driver sends every chunk once, every worker has every chunk once, and so the whole") {
    for (int lambda = 1; lambda <= 6; ++lambda) {
        for (int chunks = 2; chunks <= 7; ++chunks) {
            const SpreadSpec how{true, chunks};
            const Slice whole{10, 4, 11};
            Members members(lambda);
            if (lambda > 2) members.change(1, false);
            std::vector<Passing> workers;
            for (RoleId role = 1; role <= lambda; ++role) workers.emplace_back(role, how, false);
            ActionId id = 0;
            BufferId buffers = 100;
            std::map<RoleId, std::int64_t> copied;
            const auto next_id = [&] { return ++id; };
            Actions actions;
            const Model model{7, 3, 0.5, 9, members.number()};
            Broadcast driver;
            driver.begin(model);
            members.spread(whole, how, driver);
            std::map<std::pair<RoleId, std::int64_t>, int> had;  // elements of a worker
            std::int64_t sent = 0;
            const auto deliver = [&](RoleId from, const Send& send) {
                Delivered event;
                event.from = from;
                event.payload = send.payload;
                event.payload.buffer = static_cast<BufferId>(++buffers);
                Passing& to = workers[static_cast<std::size_t>(send.to - 1)];
                CHECK(to.come(members, 7, event, model, {no_buffer, 4, 11}, actions));
                for (std::int64_t i = 0; i < send.payload.count; ++i) ++had[{send.to, send.payload.first + i}];
                if (from == 0) sent += send.payload.count;
            };
            for (bool goes_on = true; goes_on;) {
                goes_on = driver.go_on(next_id, actions);
                if (goes_on) deliver(0, std::get<Send>(actions.list.back()));
                driver.on(Taken{id, 0});
                for (RoleId role = 1; role <= lambda; ++role) {
                    Passing& worker = workers[static_cast<std::size_t>(role - 1)];
                    for (bool passes = true; passes;) {
                        actions.clear();
                        passes = worker.go_on(next_id, actions);
                        const auto todo = actions.list;
                        for (const auto& action : todo) {
                            goes_on = true;
                            if (const auto* mix = std::get_if<Mix>(&action)) {
                                copied[role] += mix->count;
                                worker.on(Mixed{mix->id, 1}, actions);
                            } else if (const auto* send = std::get_if<Send>(&action)) {
                                deliver(role, *send);
                                worker.on(Taken{send->id, 0}, actions);
                            }
                        }
                    }
                }
            }
            CHECK(sent == whole.count);
            CHECK(had.size() == static_cast<std::size_t>(members.size() * whole.count));
            for (const auto& [key, times] : had) CHECK(times == 1);
            for (RoleId role = 1; role <= lambda; ++role) {
                if (lambda > 2 && role == 2) continue;  // it is gone
                CHECK(workers[static_cast<std::size_t>(role - 1)].done());
                CHECK(copied[role] == whole.count);
            }
        }
    }
}

TEST_CASE("phases: with three, every shard is in one stage and every stage has one shard, in the order of the paper") {
    // j: reduce, prepare, broadcast; Langer et al. 2018, figure 9.
    const int expected[3][3] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}};
    for (std::int64_t cycle = 0; cycle < 12; ++cycle) {
        const CyclePlan plan = plan_cycle(3, 3, cycle);
        CHECK(plan.reduce == expected[cycle % 3][0]);
        CHECK(plan.prepare == expected[cycle % 3][1]);
        CHECK(plan.broadcast == expected[cycle % 3][2]);
        CHECK_FALSE(plan.reduce_waits);
        CHECK_FALSE(plan.prepare_waits);
    }
}

TEST_CASE("phases: a shard is reduced, then made ready, then broadcast, before it is reduced again") {
    for (int phases = 1; phases <= 3; ++phases) {
        for (int shards = phases; shards <= 7; ++shards) {
            CAPTURE(phases);
            CAPTURE(shards);
            std::vector<std::string> lives(static_cast<std::size_t>(shards));
            for (std::int64_t cycle = 0; cycle < 10 * shards; ++cycle) {
                const CyclePlan plan = plan_cycle(phases, shards, cycle);
                std::set<int> at_once{plan.reduce, plan.broadcast};
                if (phases == 3) at_once.insert(plan.prepare);
                if (phases > 1) CHECK(at_once.size() == static_cast<std::size_t>(phases));
                // In the order in which the stages of a cycle begin, where they wait for each other.
                lives[static_cast<std::size_t>(plan.broadcast)] += 'b';
                lives[static_cast<std::size_t>(plan.reduce)] += 'r';
                lives[static_cast<std::size_t>(plan.prepare)] += 'p';
            }
            for (const std::string& life : lives) {
                const std::string cycles = "rpb";
                const auto begin = life.find('r');
                REQUIRE(begin <= 2);
                for (std::size_t i = begin; i < life.size(); ++i) CHECK(life[i] == cycles[(i - begin) % 3]);
            }
        }
    }
}

TEST_CASE("ramps: constant, by a constant factor, or by a constant difference where one end is 0") {
    CHECK(Ramp::constant(0.3).at(0) == 0.3);
    CHECK(Ramp::constant(0.3).at(1000) == 0.3);
    const Ramp beta{1, 0.9, 20, 0, 0};  // of the paper: over the first 20 exchanges
    CHECK(beta.at(0) == 1);
    CHECK(beta.at(10) == doctest::Approx(std::sqrt(0.9)));
    CHECK(beta.at(19) > 0.9);
    CHECK(beta.at(20) == 0.9);
    CHECK(beta.at(50) == 0.9);
    const Ramp gamma{0, 0.7, 7, 0, 0};
    for (int i = 0; i <= 7; ++i) CHECK(gamma.at(i) == doctest::Approx(0.1 * i));
    const Ramp alpha{0.5, 0.05, 100, 0, 30};  // nothing at first, then a jump
    CHECK(alpha.at(29) == 0);
    CHECK(alpha.at(30) == 0.5);
    CHECK(alpha.at(80) == doctest::Approx(0.5 * std::sqrt(0.1)));
    CHECK(alpha.at(130) == 0.05);
    CHECK(Ramp{1, 2, 0, 0, 0}.at(0) == 2);
    CHECK(Ramp{}.zero());
    CHECK_FALSE(alpha.zero());
}

TEST_CASE("reduce: where nobody has taken a step, all count alike") {
    TreeReduce reduce = Members(2).reduce(0, true);
    ActionId id = 0;
    Actions actions;
    reduce.begin({{10, 0, 5}, {0, 1, 0, 0}}, false);
    reduce.come(1, {{11, 0, 5}, {0, 1, 0, 0}}, actions);
    reduce.go_on([&] { return ++id; }, actions);
    REQUIRE(actions.list.size() == 1);
    const auto mix = std::get<Mix>(actions.list[0]);
    CHECK(mix.beside);
    CHECK(mix.out == 10);  // a copy, which nobody else has
    CHECK(mix.terms[0] == MixTerm{10, 0.5});
    CHECK(mix.terms[1] == MixTerm{11, 0.5});
}
