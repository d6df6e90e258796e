#include "learn/late_update.hpp"

#include "chain.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>
#include <vector>

using namespace rubato;
using namespace rubato::learn;

namespace {

/// An old version full of ones, gradients full of 1, 2, ..., and an Update that applies them.
struct Bench {
    static constexpr std::int64_t size = 5000;
    BufferPool buffers{size};
    Optimizer optimizer;
    Kept kept{buffers};
    LateUpdate late{buffers, optimizer, kept};
    BufferId old_version = buffers.allocate();
    std::vector<BufferId> gradients;
    Actions actions;
    Update update;

    Bench(const OptimizerSpec& spec, std::vector<std::int32_t> parts_of_steps) : optimizer(spec, size) {
        std::ranges::fill(buffers.data(old_version), 1.0f);
        for (const auto parts : parts_of_steps) {
            actions.steps.push_back({static_cast<std::int32_t>(actions.parts.size()), parts, 0.25});
            for (std::int32_t i = 0; i < parts; ++i) {
                gradients.push_back(buffers.allocate());
                std::ranges::fill(buffers.data(gradients.back()), static_cast<float>(gradients.size()));
                actions.parts.push_back({gradients.back(), 1.0 / parts});
            }
        }
        update.weights = old_version;
        update.step_count = static_cast<std::int32_t>(actions.steps.size());
    }
    /// What the new version has to be: by a pass of its own over fresh memory.
    std::vector<float> expected(const OptimizerSpec& spec) {
        std::vector<float> weights(size);
        const auto job = resolve(update, actions, buffers.data(old_version), weights, buffers, kept, optimizer);
        Optimizer own(spec, size);
        run(job, own);
        return weights;
    }
    bool holds(BufferId buffer, const std::vector<float>& values) {
        return std::ranges::equal(buffers.data(buffer), values);
    }
};

}  // namespace

TEST_CASE("late update: the new version takes the memory of a gradient that nobody else holds, with the same bits") {
    for (const auto& spec : {OptimizerSpec{}, momentum()}) {
        for (const std::vector<std::int32_t>& steps : {std::vector{1}, {3}, {2, 1}}) {
            Bench it(spec, steps);
            const auto expected = it.expected(spec);
            const float* spent = it.buffers.data(it.gradients[static_cast<std::size_t>(steps[0] - 1)]).data();
            const BufferId to = it.buffers.allocate();
            it.late.defer(it.update, it.actions, to);
            for (const BufferId gradient : it.gradients) it.buffers.release(gradient);
            it.late.run();
            CHECK(it.holds(to, expected));
            CHECK(it.buffers.data(to).data() == spent);
            CHECK(it.holds(it.old_version, std::vector(it.size, 1.0f)));
            it.buffers.release(to);
            it.buffers.release(it.old_version);
            CHECK(it.buffers.outstanding() == 0);
        }
    }
}

TEST_CASE("late update: a gradient that somebody holds stays as it is, and so does an old version") {
    Bench it({}, {1});
    const auto expected = it.expected({});
    const BufferId to = it.buffers.allocate();
    it.late.defer(it.update, it.actions, to);
    it.buffers.release(it.old_version);
    const BufferId sent = it.buffers.share(to, 0);
    it.late.run();
    it.late.run();  // nothing waits any more
    CHECK(it.holds(to, expected));
    CHECK(it.holds(sent, expected));
    CHECK(it.holds(it.gradients[0], std::vector(it.size, 1.0f)));
}

TEST_CASE("late update: a chain has the bits of one by one, also where it looks at versions in between") {
    for (const auto& spec : optimizers_and_rules()) {
        for (const int folds : {0, 1, 3}) {
            Chain chain(spec), apart(spec);
            constexpr int updates = 2 * static_cast<int>(LateUpdate::most) + 5;
            for (int i = 0; i < updates; ++i) {
                chain.add(folds);
                apart.add(folds);
                apart.late.run();
            }
            chain.late.run();
            for (Version version = 0; version <= updates; ++version)
                REQUIRE_MESSAGE(chain.values(version) == apart.values(version), spec.name, " version ", version);
            CHECK(std::ranges::equal(chain.optimizer.state(), apart.optimizer.state()));
            CHECK(chain.values(updates) != chain.values(updates - 1));
        }
    }
}

TEST_CASE("late update: threads that need versions at the same time make the same bits, whoever comes first") {
    for (const auto& spec : optimizers_and_rules()) {
        constexpr int updates = 12, threads = 4;
        Chain shared(spec), alone(spec);
        shared.late.share_among(threads);
        std::vector<std::int64_t> numbers;
        std::vector<std::span<const float>> versions;
        std::vector<float> seen[updates];
        std::vector<std::thread> readers;
        for (int i = 0; i < updates; ++i) {
            shared.add(i % 3);
            alone.add(i % 3);
            numbers.push_back(shared.late.needed_for(shared.versions.back()));
            versions.push_back(shared.buffers.data(shared.versions.back()));
        }
        CHECK(std::ranges::is_sorted(numbers));
        for (int thread = 0; thread < threads; ++thread) {
            readers.emplace_back([&, thread] {
                for (auto i = static_cast<std::size_t>(thread); i < numbers.size(); i += threads) {
                    shared.late.run_to(numbers[i]);
                    seen[i].assign(versions[i].begin(), versions[i].end());
                }
            });
        }
        for (auto& reader : readers) reader.join();
        shared.late.run();
        alone.late.run();
        for (Version version = 1; version <= updates; ++version) {
            REQUIRE(shared.values(version) == alone.values(version));
            REQUIRE(seen[version - 1] == alone.values(version));
        }
        CHECK(std::ranges::equal(shared.optimizer.state(), alone.optimizer.state()));
    }
}

TEST_CASE("late update: the owner sums gradients up while other threads run what it let them, also the first update") {
    for (int repeat = 0; repeat < 20; ++repeat) {
        Chain shared(momentum()), alone(momentum());
        shared.late.share_among(2);
        constexpr int updates = 2 * static_cast<int>(LateUpdate::most) + 5;
        for (int i = 0; i < updates; ++i) {
            shared.add();
            alone.add();
            const auto number = shared.late.needed_for(shared.versions.back());
            CHECK(!shared.optimizer.state().empty());
            std::thread other([&] { shared.late.run_to(number); });
            shared.add(3);
            alone.add(3);
            other.join();
        }
        shared.late.run();
        alone.late.run();
        REQUIRE(shared.values(2 * updates) == alone.values(2 * updates));
        CHECK(std::ranges::equal(shared.optimizer.state(), alone.optimizer.state()));
    }
}

TEST_CASE("late update: no more waits than a bound on memory allows, but one") {
    for (const std::size_t vectors : {0, 1, 3}) {
        Chain chain({}, vectors * Chain::size * sizeof(float));
        const auto bound = std::max<std::size_t>(1, vectors);
        for (std::size_t i = 0; i < bound; ++i) chain.add();
        chain.buffers.data(chain.versions[1])[0] = -1;
        chain.add();
        CHECK(chain.buffers.data(chain.versions[bound])[0] != -1);
        CHECK(chain.buffers.data(chain.versions[1])[0] != -1);
        CHECK(chain.late.needed_for(chain.versions[0]) == 0);
        chain.buffers.data(chain.versions.back())[0] = -1;
        chain.late.run();
        CHECK(chain.buffers.data(chain.versions.back())[0] != -1);
    }
    Bench it({}, {3});  // one update of three gradients is as much as three of one
    for (const std::size_t vectors : {3, 4}) {
        LateUpdate late(it.buffers, it.optimizer, it.kept, vectors * Bench::size * sizeof(float));
        const BufferId first = it.buffers.allocate(), second = it.buffers.allocate();
        it.buffers.data(first)[0] = -1;
        late.defer(it.update, it.actions, first);
        Update next = it.update;
        next.weights = first;
        late.defer(next, it.actions, second);
        CHECK((it.buffers.data(first)[0] != -1) == (vectors == 3));
        late.run();
    }
}

TEST_CASE("late update: weights that are there need none, and others only what leads to them, but of a thread alone") {
    for (const int threads : {1, 2}) {
        CAPTURE(threads);
        Chain chain({}), apart({});
        chain.late.share_among(threads);
        constexpr auto count = static_cast<std::int64_t>(LateUpdate::most);
        const auto ran = [&](std::int64_t version) {
            return chain.buffers.data(chain.versions[static_cast<std::size_t>(version)])[0] ==
                   apart.buffers.data(apart.versions[static_cast<std::size_t>(version)])[0];
        };
        for (std::int64_t i = 0; i < count; ++i) {
            chain.add();
            apart.add();
            apart.late.run();
            REQUIRE(chain.late.needed_for(chain.versions[0]) == 0);
        }
        SUBCASE("the third version") {
            for (std::int64_t i = 1; i <= count; ++i) chain.buffers.data(chain.versions[std::size_t(i)])[0] = -1;
            chain.late.run_to(chain.late.needed_for(chain.versions[3]));
            CHECK(ran(3));
            CHECK(ran(4) == (threads == 1));
            CHECK(chain.late.needed_for(chain.versions[3]) == 0);
        }
        SUBCASE("one more comes") {
            chain.add();
            CHECK(ran(1));
            CHECK(ran(count));
        }
        chain.late.run();
        CHECK(chain.values(count) == apart.values(count));
    }
}

TEST_CASE("late update: what does not follow from those that wait goes by itself, such as a shard's after another's") {
    std::vector<std::vector<float>> made[2];
    for (const bool apart : {false, true}) {
        Chain chain({});
        std::vector<BufferId> shards[2]{{chain.versions[0]}, {chain.versions[0]}};
        for (const std::size_t shard : {0, 0, 1, 0, 1, 1, 0}) {
            chain.add(shards[shard], shard == 0 ? 0 : 5000, shard == 0 ? 5000 : 4000, 0);
            if (apart) chain.late.run();
        }
        chain.late.run();
        for (const std::size_t shard : {0, 1}) {
            for (const BufferId version : shards[shard]) {
                const auto part = chain.buffers.data(version).subspan(shard * 5000, shard == 0 ? 5000 : 4000);
                made[apart].emplace_back(part.begin(), part.end());
            }
        }
    }
    CHECK(made[0] == made[1]);
    CHECK(std::ranges::adjacent_find(made[0]) == made[0].end());
}
