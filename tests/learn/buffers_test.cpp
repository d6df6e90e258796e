// What handles stand for, and which memory they are given.
#include "learn/buffers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

using namespace rubato;
using namespace rubato::learn;

TEST_CASE("buffers: handles share contents until the last of them ends") {
    BufferPool pool(3);
    const BufferId first = pool.allocate();
    pool.data(first)[2] = 7;
    CHECK(pool.sole(first));
    const BufferId second = pool.share(first, 4);
    CHECK(second != first);
    CHECK(!pool.sole(first));
    CHECK(pool.data(second).data() == pool.data(first).data());
    pool.retain(second);
    CHECK(pool.release(first) == -1);
    CHECK(pool.release(second) == -1);
    CHECK(pool.data(second)[2] == 7);
    CHECK(!pool.sole(pool.hold(second)));
    CHECK(pool.release(second) == 4);  // the slot of its channel is free
    CHECK(pool.outstanding() == 0);
    CHECK_THROWS_AS(pool.release(second), std::logic_error);
    CHECK_THROWS_AS(pool.data(first), std::logic_error);
}

TEST_CASE("buffers: without elements there are handles alone") {
    BufferPool pool(0);
    const BufferId first = pool.allocate(2);
    const BufferId second = pool.share(first, 3);
    CHECK(pool.data(first).empty());
    CHECK(pool.sole(first));
    CHECK(pool.release(second) == 3);
    CHECK(pool.release(first) == 2);
}

TEST_CASE("buffers: the memory that was given up last is given out first, and no line of a cache is in two") {
    BufferPool pool(5);
    BufferId ids[3];
    float* memory[3];
    for (int i = 0; i < 3; ++i) {
        memory[i] = pool.data(ids[i] = pool.allocate()).data();
        CHECK(reinterpret_cast<std::uintptr_t>(memory[i]) % 64 == 0);
    }
    for (const int i : {1, 0, 2}) pool.release(ids[i]);
    for (const int i : {2, 0, 1}) CHECK(pool.data(pool.allocate()).data() == memory[i]);
}

TEST_CASE("buffers: what is held outlives its handle, and its memory can become that of something else") {
    BufferPool pool(2);
    const BufferId gradient = pool.allocate(), weights = pool.allocate();
    float* memory = pool.data(gradient).data();
    const auto from = pool.hold(gradient), to = pool.hold(weights);
    pool.release(gradient);
    CHECK(pool.sole(from));
    CHECK(pool.stands_for(weights, to));
    pool.move(from, to);
    CHECK(pool.data(weights).data() == memory);
    pool.drop(from);
    pool.drop(to);
    pool.release(weights);
    CHECK(pool.outstanding() == 0);
}

TEST_CASE("buffers: factors are contents, multiplied out when somebody asks for the elements, once for all handles") {
    BufferPool pool(7);
    const float slope[] = {1, 2}, input[] = {3, 4, 5};
    const auto fill = [&](BufferId buffer) {
        Factors& factors = pool.factors(buffer);
        factors.rest(1)[0] = 9;
        factors.set(slope, input, 1, 2, 3);
        return &factors;
    };
    const BufferId gradient = pool.allocate();
    const Factors* factors = fill(gradient);
    const BufferId sent = pool.share(gradient, 0);
    const auto held = pool.hold(gradient);
    pool.release(gradient);
    CHECK(pool.factors(held) == factors);
    CHECK(pool.multiplied_out() == 0);
    const std::vector<float> expected{3, 4, 5, 6, 8, 10, 9};
    CHECK(std::ranges::equal(pool.data(sent), expected));
    CHECK(pool.factors(held) == nullptr);
    CHECK(std::ranges::equal(pool.data(held), expected));
    CHECK(pool.multiplied_out() == 1);
    pool.drop(held);
    pool.release(sent);

    const BufferId next = pool.allocate();
    CHECK(fill(next) == factors);  // their memory serves again
    pool.release(next);            // and nobody has asked for the elements
    CHECK(fill(pool.allocate()) == factors);
    CHECK(pool.multiplied_out() == 1);
}
