// Properties of the engine's parts, each against a second opinion written down naively.
#include "core/dealer.hpp"
#include "core/learning_rate.hpp"
#include "core/role.hpp"
#include "core/staleness_rule.hpp"
#include "core/vector_clock.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

using namespace rubato;

namespace {

DealerConfig any_config(bool barrier) {
    DealerConfig config;
    config.sampling = static_cast<Sampling>(*rc::gen::inRange(0, 4));
    config.samples = *rc::gen::inRange<std::int64_t>(1, 200);
    config.batch_size = *rc::gen::inRange(1, 50);
    config.lambda = *rc::gen::inRange(1, 12);
    config.barrier = barrier;
    config.limit = *rc::gen::inRange<std::int64_t>(1, 700);
    return config;
}

/// Fails the doctest case where rapidcheck finds a counterexample, which it prints with the seed that repeats it.
template <class Property>
void hold(const char* what, Property&& property) {
    CHECK_MESSAGE(rc::check(what, property), what);
}

}  // namespace

TEST_CASE("dealer: rounds hand out the limit exactly, in worker order, and never span two epochs") {
    hold("rounds", [] {
        const auto config = any_config(true);
        Dealer dealer(config);
        std::int64_t total = 0;
        for (int round = 0; !dealer.exhausted(); ++round) {
            RC_ASSERT(round < 2000);
            dealer.open_round();
            std::int32_t epoch = -1;
            int dealt = 0;
            for (WorkerId worker = 0; worker < config.lambda; ++worker) {
                const auto batch = dealer.deal(worker);
                if (batch.count == 0) continue;
                ++dealt;
                RC_ASSERT(batch.count >= 1);
                RC_ASSERT(batch.count <= config.batch_size);
                if (epoch < 0) epoch = batch.epoch;
                RC_ASSERT(batch.epoch == epoch);
                total += batch.count;
            }
            RC_ASSERT(dealt > 0);
        }
        RC_ASSERT(total == config.limit);
    });
}

TEST_CASE("dealer: shared-epoch deals consecutive slices that cover each epoch once, whoever asks") {
    hold("shared-epoch", [] {
        auto config = any_config(false);
        config.sampling = Sampling::shared_epoch;
        Dealer dealer(config);
        std::int64_t position = 0;
        while (!dealer.exhausted()) {
            const auto batch = dealer.deal(*rc::gen::inRange(0, config.lambda));
            RC_ASSERT(batch.count > 0);
            RC_ASSERT(batch.epoch == position / config.samples);
            RC_ASSERT(batch.first == position % config.samples);
            position += batch.count;
        }
        RC_ASSERT(position == config.limit);
    });
}

TEST_CASE("dealer: strided gives a worker's k-th batch whatever the others do") {
    hold("strided", [] {
        auto config = any_config(false);
        config.sampling = Sampling::strided;
        config.limit = -1;
        Dealer dealer(config);
        const auto slices = (config.samples + config.batch_size - 1) / config.batch_size;
        std::map<WorkerId, std::int64_t> dealt;
        for (int i = 0; i < 100; ++i) {
            const auto worker = *rc::gen::inRange(0, config.lambda);
            const auto batch = dealer.deal(worker);
            // Slices worker, worker + lambda, ... of each epoch are this worker's.
            const auto own = worker < slices ? (slices - worker + config.lambda - 1) / config.lambda : 0;
            RC_ASSERT((batch.count > 0) == (own > 0));
            if (batch.count == 0) continue;
            const auto k = dealt[worker]++;
            const auto slice = worker + (k % own) * config.lambda;
            RC_ASSERT(batch.epoch == k / own);
            RC_ASSERT(batch.first == slice * config.batch_size);
            RC_ASSERT(batch.count == std::min<std::int64_t>(config.batch_size, config.samples - batch.first));
        }
    });
}

TEST_CASE("dealer: the parts of sharded sampling differ by one sample at most and add up") {
    hold("shards", [] {
        const auto samples = *rc::gen::inRange<std::int64_t>(0, 1000);
        const auto lambda = *rc::gen::inRange(1, 40);
        std::int64_t sum = 0;
        for (WorkerId worker = 0; worker < lambda; ++worker) {
            const auto part = shard_samples(samples, lambda, worker);
            RC_ASSERT(std::abs(part - shard_samples(samples, lambda, 0)) <= 1);
            sum += part;
        }
        RC_ASSERT(sum == samples);
    });
}

TEST_CASE("vector clock: the mean staleness is that of the single gradients, whatever their order") {
    hold("clock", [] {
        const auto versions = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 50)));
        VectorClock clock;
        double sum = 0;
        for (const auto version : versions) {
            clock.add(version);
            sum += 60 - version;
        }
        RC_ASSERT(std::abs(clock.mean_staleness(60) - sum / static_cast<double>(versions.size())) < 1e-9);
        for (std::size_t i = 1; i < clock.pairs().size(); ++i)
            RC_ASSERT(clock.pairs()[i - 1].first < clock.pairs()[i].first);
    });
}

TEST_CASE("staleness rules: values by hand; staleness 0 and 1 are left alone where the rule divides by staleness") {
    StalenessRule rule;
    RuleInfo info;
    info.lambda = 30;
    info.batch_size = 128;
    info.n = 4;
    const auto factors = [&](StalenessRule::Kind kind, double staleness, double mean) {
        rule.kind = kind;
        info.staleness = staleness;
        info.mean_staleness = mean;
        return std::pair(rule.update_factor(info), rule.gradient_factor(info));
    };
    using Kind = StalenessRule::Kind;
    CHECK(factors(Kind::none, 7, 7) == std::pair(1.0, 1.0));
    CHECK(factors(Kind::sqrt_batch, 7, 7) == std::pair(std::sqrt(30.0), 1.0));
    CHECK(factors(Kind::inverse_n, 7, 7) == std::pair(0.25, 1.0));
    CHECK(factors(Kind::inverse_mean_staleness, 7, 5) == std::pair(0.2, 1.0));
    CHECK(factors(Kind::inverse_mean_staleness, 7, 0) == std::pair(1.0, 1.0));
    CHECK(factors(Kind::inverse_staleness, 0, 0) == std::pair(1.0, 1.0));
    CHECK(factors(Kind::inverse_staleness, 1, 0) == std::pair(1.0, 1.0));
    CHECK(factors(Kind::inverse_staleness, 8, 0) == std::pair(1.0, 0.125));
    CHECK(factors(Kind::polynomial, 3, 0) == std::pair(1.0, 0.5));
}

TEST_CASE("rates: within their bounds, rising in a warm-up and falling after it, without a jump where it ends") {
    const auto part = [](int most) { return *rc::gen::inRange(1, most) / 100.0; };
    hold("rates", [&] {
        OptimizerSpec spec;
        spec.learning_rate = part(1000);
        if (*rc::gen::arbitrary<bool>()) spec.warm_up = {part(500), part(100)};
        const double end = spec.warm_up.epochs + part(2000);
        if (*rc::gen::arbitrary<bool>())
            spec.cosine = OptimizerSpec::Cosine{end, part(100)};
        else if (*rc::gen::arbitrary<bool>())
            spec.schedule = {{spec.warm_up.epochs + part(300), part(100)}, {end, part(100)}};
        const double before = end * part(100), after = before + end * part(100);
        const double first = scheduled_rate(spec, before), second = scheduled_rate(spec, after);
        RC_ASSERT(first >= 0);
        RC_ASSERT(first <= spec.learning_rate);
        if (after <= spec.warm_up.epochs) RC_ASSERT(first <= second);
        if (before >= spec.warm_up.epochs) RC_ASSERT(first >= second);
        const double whole = scheduled_rate(spec, spec.warm_up.epochs);
        RC_ASSERT(whole == spec.learning_rate);
        if (spec.warm_up.epochs > 0)
            RC_ASSERT(std::abs(scheduled_rate(spec, spec.warm_up.epochs * (1 - 1e-9)) - whole) < 1e-6 * whole);
    });
}

TEST_CASE("momentum: the more stale, the less of it is left, and lags add up") {
    hold("decoupled momentum", [] {
        const double momentum = *rc::gen::inRange(0, 1000) / 1000.0;
        const double staleness = *rc::gen::inRange(0, 10000) / 100.0,
                     more = staleness + *rc::gen::inRange(1, 500) / 100.0;
        const auto left = decoupled_momentum(momentum, staleness), less = decoupled_momentum(momentum, more);
        RC_ASSERT(left.momentum >= less.momentum);
        RC_ASSERT(less.gain >= left.gain);
        const double lag = momentum / (1 - momentum), rest = left.momentum / (1 - left.momentum);
        RC_ASSERT(std::abs(rest - std::max(0.0, lag - staleness)) < 1e-9 * (1 + lag));
    });
}

TEST_CASE("controller: vectors by hand, with r_max = 4") {
    const auto r = [](Time fast, Time fast_interval, Time slow, Time slow_interval, bool smallest = true) {
        return synchronize({fast, fast_interval}, {slow, slow_interval}, 4, 4, smallest).r;
    };
    // Zhao et al. 2019, figure 2: intervals of 1 and 3.1, equal last pushes.
    CHECK(r(1000, 1000, 1000, 3100) == 3);
    // Equal intervals; the slowest pushed 0, 0.3 or 0.7 before.
    CHECK(r(5000, 1000, 5000, 1000) == 1);
    CHECK(r(5000, 1000, 4700, 1000) == 1);
    CHECK(r(5000, 1000, 4300, 1000) == 0);
    CHECK(r(5000, 1000, 4300, 1000, false) == 4);  // 0.3 apart, whatever r: D3
    CHECK(r(5000, 1000, 4300, -1) == 0);           // D6
    const auto figure = synchronize({1000, 1000}, {1000, 3100}, 4, 4);
    CHECK(figure == Prediction{3, 4000, 4100});
    CHECK(synchronize({1000, 1000}, {1000, 3100}, 2, 4).r == 2);
    CHECK(synchronize({1000, 1000}, {1000, 3100}, -1, 4) == Prediction{});
}

TEST_CASE("controller: the closed search finds what looking at every pair of pushes finds") {
    hold("controller", [] {
        const Time fast = *rc::gen::inRange(0, 100), slow = *rc::gen::inRange(0, 100);
        const Time fast_interval = *rc::gen::inRange(1, 40), slow_interval = *rc::gen::inRange(1, 40);
        const std::int64_t limit = *rc::gen::inRange(-1, 9), r_max = *rc::gen::inRange(0, 9);
        std::int64_t best = 0;
        Time least = std::numeric_limits<Time>::max();
        for (std::int64_t r = 0; r <= limit; ++r)
            for (std::int64_t k = 0; k <= r_max; ++k) {
                const Time apart = std::abs(slow + (k + 1) * slow_interval - fast - r * fast_interval);
                if (apart < least) best = r, least = apart;
            }
        RC_ASSERT(synchronize({fast, fast_interval}, {slow, slow_interval}, limit, r_max).r == best);
    });
}

TEST_CASE("counts and lists of waiting workers agree with naive ones") {
    hold("counts", [] {
        const int lambda = *rc::gen::inRange(1, 8);
        Counts counts(lambda);
        WaitLists lists(lambda);
        std::vector<std::int64_t> naive(static_cast<std::size_t>(lambda), 0), keys(naive.size(), -1);
        std::vector<bool> gone(naive.size(), false);
        for (int i = 0; i < 60; ++i) {
            const auto worker = *rc::gen::inRange(0, lambda);
            const auto at = static_cast<std::size_t>(worker);
            if (*rc::gen::inRange(0, 12) == 0) {
                counts.retire(worker);
                gone[at] = true;
            } else if (!gone[at]) {
                counts.push(worker);
                ++naive[at];
            }
            WorkerId slowest = -1;
            std::int64_t highest = 0;
            for (std::size_t w = 0; w < naive.size(); ++w) {
                if (gone[w]) continue;
                highest = std::max(highest, naive[w]);
                if (slowest < 0 || naive[w] < naive[static_cast<std::size_t>(slowest)]) slowest = static_cast<int>(w);
            }
            RC_ASSERT(counts.slowest() == slowest);
            if (slowest >= 0) {
                RC_ASSERT(counts.lowest() == naive[static_cast<std::size_t>(slowest)]);
                RC_ASSERT(counts.highest() == highest);
            }
            const auto key = *rc::gen::inRange<std::int64_t>(0, 9);
            if (keys[at] < 0) {
                lists.add(key, worker);
                keys[at] = key;
            } else {
                lists.remove(worker);
                keys[at] = -1;
            }
            if (*rc::gen::inRange(0, 4) > 0) continue;
            std::vector<WorkerId> taken, expected;
            lists.take_until(key, taken);
            for (std::size_t w = 0; w < keys.size(); ++w)
                if (keys[w] >= 0 && keys[w] <= key) expected.push_back(static_cast<WorkerId>(w)), keys[w] = -1;
            std::sort(taken.begin(), taken.end());
            RC_ASSERT(taken == expected);
        }
    });
}

TEST_CASE("roles are values: a copy that is fed the same events does the same and stays equal") {
    Scenario scenario;
    scenario.workers.groups = {{3, "default", 0}};
    scenario.protocol.name = "async";
    scenario.stop.epochs = 1;
    auto roles = make_roles(scenario, 100, 10);
    auto copies = roles;
    CHECK(roles == copies);
    Actions a, b;
    step(roles[0], 5, Start{1}, a);
    CHECK_FALSE(roles == copies);
    step(copies[0], 5, Start{1}, b);
    CHECK(roles == copies);
    CHECK(a == b);
    CHECK(a.list.size() == 3);
    CHECK(describe(roles[0]).find("server of async at version 0") == 0);
    CHECK(describe(roles[1]) == describe(copies[1]));
}

TEST_CASE("a role refuses what cannot be: a worker that is not there, a completion that it did not ask for") {
    Scenario scenario;
    scenario.workers.groups = {{2, "default", 0}};
    scenario.protocol.name = "async";
    auto roles = make_roles(scenario, 100, 10);
    Actions actions;
    step(roles[0], 0, Start{1}, actions);
    CHECK_THROWS(step(roles[0], 1, Delivered{9, Channel::gradient, Push{}, {2, 0, 10}, 0, 0}, actions));
    CHECK_THROWS(step(roles[0], 1, Applied{77, 1}, actions));
    step(roles[0], 2, Delivered{1, Channel::gradient, Push{}, {2, 0, 10}, 0, 0}, actions);
    CHECK_THROWS(step(roles[0], 3, Applied{77, 1}, actions));
    CHECK_THROWS(step(roles[1], 0, Interrupted{}, actions));
}
