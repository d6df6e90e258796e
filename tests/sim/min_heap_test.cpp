#include "sim/flow/min_heap.hpp"

#include "learn/random.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace rubato;
using sim::MinHeap;

namespace {

/// A heap beside the plain set that it has to agree with.
struct Pair {
    MinHeap heap;
    std::set<std::tuple<double, std::uint64_t, std::int32_t>> set;
    std::map<std::int32_t, std::pair<MinHeap::Item, std::int32_t>> items;  ///< by id, with their positions

    auto placer() {
        return [this](std::int32_t id, std::int32_t position) { items.at(id).second = position; };
    }
    void push(double key, std::uint64_t tie, std::int32_t id) {
        items[id] = {{key, tie, id}, -1};
        set.emplace(key, tie, id);
        heap.push({key, tie, id}, placer());
    }
    void forget(std::int32_t id) {
        const auto& item = items.at(id).first;
        set.erase({item.key, item.tie, id});
        items.erase(id);
    }
    void pop() {
        const auto id = heap.top().id;
        heap.pop(placer());
        forget(id);
    }
    void erase(std::int32_t id) {
        const auto position = static_cast<std::size_t>(items.at(id).second);
        heap.erase(position, placer());
        forget(id);
    }
    void update(std::int32_t id, double key) {
        auto& [item, position] = items.at(id);
        set.erase({item.key, item.tie, id});
        item.key = key;
        set.emplace(key, item.tie, id);
        heap.update(static_cast<std::size_t>(position), item, placer());
    }
    void check() const {
        REQUIRE(heap.size() == set.size());
        REQUIRE(heap.empty() == set.empty());
        if (!set.empty()) REQUIRE(heap.top().id == std::get<2>(*set.begin()));
    }
};

}  // namespace

TEST_CASE("a heap agrees with a plain set, in a row and out of it") {
    learn::Stream stream(5, 0, learn::Purpose::sample, 1);
    for (const int disorder : {0, 1, 20, 100}) {  // of a hundred operations, so many are out of order
        CAPTURE(disorder);
        Pair pair;
        double last = 0;
        std::int32_t next = 0;
        for (int i = 0; i < 20000; ++i) {
            const bool odd = static_cast<int>(stream.below(100)) < disorder;
            const auto any = [&] {
                return std::next(pair.items.begin(), static_cast<std::ptrdiff_t>(stream.below(pair.items.size())))
                    ->first;
            };
            // Between empty and some sixty, up and down, so that rows are begun anew and close up.
            const bool grow = stream.below(100) < (i / 500 % 2 == 0 ? 60u : 40u);
            if (pair.items.empty() || (grow && pair.items.size() < 60)) {
                last = odd ? last - 5 * stream.uniform() : last + (stream.below(3) == 0 ? 0 : stream.uniform());
                pair.push(last, static_cast<std::uint64_t>(next), next);
                ++next;
            } else if (!odd) {
                pair.pop();
            } else if (stream.below(2) == 0) {
                pair.erase(any());
            } else {
                pair.update(any(), last - 5 * stream.uniform());
            }
            pair.check();
        }
        while (!pair.items.empty()) {
            pair.pop();
            pair.check();
        }
    }
}
