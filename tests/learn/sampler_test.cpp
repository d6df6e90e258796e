#include "learn/sampler.hpp"
#include "core/dealer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

namespace rubato::learn {
namespace {

using Ids = std::vector<std::int32_t>;

Ids numbers(int n, int step = 1) {
    Ids ids;
    for (int i = 0; i < n; i++) ids.push_back(i * step);
    return ids;
}

Ids draw(const Sampler& sampler, WorkerId worker, Batch batch) {
    Ids ids(static_cast<std::size_t>(batch.count));
    sampler.sample_ids(worker, batch, ids);
    return ids;
}

Ids sorted(Ids ids) {
    std::ranges::sort(ids);
    return ids;
}

}  // namespace

TEST_CASE("an epoch's batches hold each sample once, whoever gets them") {
    for (Sampling mode : {Sampling::shared_epoch, Sampling::strided}) {
        const Sampler sampler(mode, 1, numbers(121, 3), 3);
        CHECK(sampler.samples() == 121);
        for (std::int32_t epoch : {0, 1}) {
            Ids seen;
            for (std::int64_t first = 0; first < 121; first += 10) {
                const auto count = static_cast<std::int32_t>(std::min<std::int64_t>(10, 121 - first));
                const Batch batch{epoch, count, first};
                const Ids ids = draw(sampler, static_cast<WorkerId>(first / 10 % 3), batch);
                CHECK(ids == draw(sampler, 0, batch));
                seen.insert(seen.end(), ids.begin(), ids.end());
            }
            CHECK(seen != numbers(121, 3));
            CHECK(sorted(seen) == numbers(121, 3));
        }
        CHECK(draw(sampler, 0, {0, 121, 0}) != draw(sampler, 0, {1, 121, 0}));
    }
}

TEST_CASE("another seed gives another order, the same seed the same") {
    const Sampler a(Sampling::shared_epoch, 1, numbers(50), 2), b(Sampling::shared_epoch, 1, numbers(50), 7),
        c(Sampling::shared_epoch, 2, numbers(50), 2);
    CHECK(draw(a, 0, {4, 50, 0}) == draw(b, 0, {4, 50, 0}));
    CHECK(draw(a, 0, {4, 50, 0}) != draw(c, 0, {4, 50, 0}));
}

TEST_CASE("random samples depend on the worker and their number alone") {
    const Sampler sampler(Sampling::random, 1, numbers(1000), 4);
    const Ids long_run = draw(sampler, 2, {0, 64, 0});
    CHECK(draw(sampler, 2, {5, 32, 32}) == Ids(long_run.begin() + 32, long_run.end()));
    CHECK(draw(sampler, 1, {0, 64, 0}) != long_run);
    CHECK(*std::ranges::max_element(long_run) < 1000);
    // With replacement: 1000 draws of 1000 leave a share of 1/e untouched, give or take 5 standard deviations.
    const Ids many = draw(sampler, 0, {0, 1000, 0});
    CHECK(static_cast<double>(std::set(many.begin(), many.end()).size()) == doctest::Approx(632).epsilon(0.08));
}

TEST_CASE("sharded workers own disjoint parts and run through them by their own epochs") {
    const Sampler sampler(Sampling::sharded, 1, numbers(121), 3);
    CHECK(shard_samples(121, 3, 0) == 41);
    CHECK(shard_samples(121, 3, 1) == 40);
    CHECK(shard_samples(121, 3, 2) == 40);
    CHECK(shard_samples(2, 3, 2) == 0);
    Ids all;
    for (WorkerId worker = 0; worker < 3; worker++) {
        const auto size = static_cast<std::int32_t>(shard_samples(121, 3, worker));
        const Ids own = draw(sampler, worker, {0, size, 0});
        const Ids next = draw(sampler, worker, {1, size, 0});
        CHECK(own != next);
        CHECK(sorted(own) == sorted(next));
        // iid: no part is a run of neighbouring samples.
        CHECK(sorted(own).back() - sorted(own).front() > size);
        all.insert(all.end(), own.begin(), own.end());
    }
    CHECK(sorted(all) == numbers(121));
}

TEST_CASE("what leaves an epoch is refused") {
    const Sampler shared(Sampling::shared_epoch, 1, numbers(20), 2), sharded(Sampling::sharded, 1, numbers(20), 2);
    CHECK_THROWS_AS(draw(shared, 0, {0, 10, 11}), std::out_of_range);
    CHECK_THROWS_AS(draw(shared, 0, {0, 1, -1}), std::out_of_range);
    CHECK_THROWS_AS(draw(shared, 2, {0, 1, 0}), std::out_of_range);
    CHECK_THROWS_AS(draw(sharded, 0, {0, 11, 0}), std::out_of_range);
    CHECK(draw(shared, 0, {0, 0, 20}).empty());
}

TEST_CASE("permutations that were forgotten come back the same, for many threads at once") {
    const Sampler sampler(Sampling::shared_epoch, 1, numbers(2000), 8);
    std::vector<Ids> expected;
    for (std::int32_t epoch = 0; epoch < 10; epoch++) expected.push_back(draw(sampler, 0, {epoch, 2000, 0}));
    std::vector<int> wrong(4);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < wrong.size(); t++) {
        threads.emplace_back([&, t] {
            for (std::int32_t k = 0; k < 200; k++) {
                const auto epoch = static_cast<std::int32_t>((k * 7 + static_cast<int>(t) * 3) % 10);
                wrong[t] += draw(sampler, 0, {epoch, 2000, 0}) != expected[static_cast<std::size_t>(epoch)];
            }
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(4));
}

}  // namespace rubato::learn
