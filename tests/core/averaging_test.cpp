// The collective shapes of averaging, each alone.
#include "core/averaging/broadcast.hpp"
#include "core/averaging/tree_reduce.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <map>
#include <set>

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
            for (const int child : broadcast_children(node, nodes)) {
                CHECK(step.emplace(child, ++next).second);
                CHECK(broadcast_parent(child) == node);
            }
        }
        CHECK(step.size() == static_cast<std::size_t>(nodes));
        for (const auto& [node, when] : step) CHECK(when <= levels_of(nodes));
    }
}

TEST_CASE("reduce: means are taken in the order of the tree, whatever came first, and every reference ends") {
    const auto run = [](bool late) {
        TreeReduce reduce(0, 4);  // adds 1, then 2, which has added 3
        ActionId id = 0;
        const auto next_id = [&] { return ++id; };
        Actions actions;
        const TreeReduce::Sum one{{11, 0, 5}, {0, 1, 3, 20}}, two{{12, 0, 5}, {0, 2, 4, 30}};
        reduce.come(2, two);
        reduce.go_on(next_id, actions);
        CHECK(actions.list.empty());  // its own is missing
        if (!late) reduce.come(1, one);
        reduce.begin({{10, 0, 5}, {0, 1, 1, 10}});
        reduce.go_on(next_id, actions);
        if (late) {
            CHECK(actions.list.empty());
            CHECK(reduce.waits_for() == 1);
            reduce.come(1, one);
            reduce.go_on(next_id, actions);
        }
        REQUIRE(actions.list.size() == 1);
        const auto first = std::get<Mix>(actions.list[0]);
        CHECK(first.out == no_buffer);  // others may hold the member's own model
        CHECK(first.terms[0] == MixTerm{10, 0.25});
        CHECK(first.terms[1] == MixTerm{11, 0.75});
        actions.clear();
        reduce.on(Mixed{first.id, 13}, actions);
        reduce.go_on(next_id, actions);
        REQUIRE(actions.list.size() == 3);
        CHECK(std::get<Release>(actions.list[0]).buffer == 10);
        CHECK(std::get<Release>(actions.list[1]).buffer == 11);
        const auto second = std::get<Mix>(actions.list[2]);
        CHECK(second.out == 13);
        CHECK(second.terms[0] == MixTerm{13, 0.5});
        CHECK(second.terms[1] == MixTerm{12, 0.5});
        actions.clear();
        CHECK_FALSE(reduce.done());
        reduce.on(Mixed{second.id, 14}, actions);
        REQUIRE(actions.list.size() == 1);
        CHECK(std::get<Release>(actions.list[0]).buffer == 12);
        CHECK(reduce.done());
        return reduce.take();
    };
    const auto sum = run(false);
    CHECK(sum == run(true));
    CHECK(sum.mean == Slice{14, 0, 5});
    CHECK(sum.said == Share{0, 4, 8, 30});
}

TEST_CASE("reduce: where one has nothing there is no mean, and what others sent is let go") {
    TreeReduce reduce(0, 4);
    ActionId id = 0;
    Actions actions;
    reduce.begin({{10, 0, 5}, {0, 1, 1, 0}});
    reduce.come(2, {{12, 0, 5}, {0, 2, 2, 0}});
    reduce.come(1, {{}, {0, 1, 0, 0}});
    reduce.go_on([&] { return ++id; }, actions);
    CHECK(reduce.done());
    const auto sum = reduce.take();
    CHECK(sum.mean.buffer == no_buffer);
    CHECK(sum.said.workers == 4);
    std::set<BufferId> released;
    for (const auto& action : actions.list) released.insert(std::get<Release>(action).buffer);
    CHECK(released == std::set<BufferId>{10, 12});
}

TEST_CASE("broadcast: one message at a time, and the next when that is taken") {
    Broadcast broadcast(0, 4);
    ActionId id = 0;
    const auto next_id = [&] { return ++id; };
    Actions actions;
    CHECK(broadcast.done());  // there is nothing to send yet
    broadcast.begin(Model{7, 3, 0.5, 9}, Slice{10, 0, 5});
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
