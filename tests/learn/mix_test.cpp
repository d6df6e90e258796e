#include "learn/mix.hpp"
#include "learn/apply.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <vector>

using namespace rubato;
using namespace rubato::learn;

namespace {

std::vector<float> some(std::size_t n, float seed) {
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = std::sin(seed + static_cast<float>(i) * 0.7f) * 3.1f;
    return values;
}

}  // namespace

TEST_CASE("mix: each element is the sum in double, rounded once, for any number of terms") {
    for (std::size_t count = 0; count <= Mix::most; ++count) {
        std::vector<std::vector<float>> values;
        std::vector<const float*> terms;
        const double factors[] = {0.3, -1.7, 1e-3, 2};
        for (std::size_t k = 0; k < count; ++k)
            terms.push_back(values.emplace_back(some(101, static_cast<float>(k))).data());
        std::vector<float> to(101, 5);
        mix(to, terms, factors);
        for (std::size_t i = 0; i < to.size(); ++i) {
            double sum = 0;
            for (std::size_t k = 0; k < count; ++k) sum += factors[k] * static_cast<double>(terms[k][i]);
            CHECK(to[i] == static_cast<float>(sum));
        }
    }
}

TEST_CASE("mix: a mean of equal models has their bits, whatever the weights") {
    const auto model = some(1000, 1);
    for (int workers = 2; workers <= 40; ++workers) {
        std::vector<float> mean = model;
        for (int others = 1; others < workers; ++others) {
            const double part = 1.0 / (others + 1);
            const float* const terms[] = {mean.data(), model.data()};
            const double factors[] = {1 - part, part};
            mix(mean, terms, factors);
        }
        CHECK(mean == model);
    }
}

TEST_CASE("mix: a part of a buffer, and the rest as it was, in place and in a copy") {
    BufferPool pool(6);
    const BufferId out = pool.allocate(), other = pool.allocate();
    for (std::size_t i = 0; i < 6; ++i) {
        pool.data(out)[i] = 1;
        pool.data(other)[i] = 3;
    }
    Mix action;
    action.out = out;
    action.first = 2;
    action.count = 3;
    action.add(out, 0.5);
    action.add(other, 0.5);
    const BufferId copy = pool.allocate();
    run(resolve(action, copy, pool));
    const std::vector<float> expected{1, 1, 2, 2, 2, 1};
    CHECK(std::vector(pool.data(copy).begin(), pool.data(copy).end()) == expected);
    CHECK(pool.data(out)[2] == 1);
    run(resolve(action, out, pool));
    CHECK(std::vector(pool.data(out).begin(), pool.data(out).end()) == expected);
}
