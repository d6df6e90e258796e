// Rules that look at weights, by hand.
#include "helpers.hpp"
#include "learn/apply.hpp"
#include "learn/late_update.hpp"
#include "support/optimizers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace rubato::learn {
namespace {

constexpr std::size_t size = 5003;

std::vector<float> noise(std::uint64_t index) {
    return learn::noise(3, index, size);
}

OptimizerSpec sgd(const StalenessRule& rule, double rate = 0.5) {
    auto out = test::optimizer_named("sgd", rate);
    out.staleness_rule = rule;
    return out;
}

/// Of one element, in double precision.
struct Reference {
    OptimizerSpec spec;
    std::vector<double> square = std::vector<double>(8);
    double steps_square = 0;
    int steps = 0;

    double ruled(double g, double now, double then, int worker) {
        const auto& rule = spec.staleness_rule;
        if (rule.kind == StalenessRule::Kind::gap_aware) {
            const double mean = steps == 0 ? 0 : steps_square / (1 - std::pow(rule.decay, steps));
            return g / (1 + std::abs(now - then) / (spec.learning_rate * (std::sqrt(mean) + 1e-8)));
        }
        double strength = rule.strength;
        if (rule.adaptive) {
            double& s = square[static_cast<std::size_t>(rule.mean_square_by_worker ? worker : 0)];
            s = rule.decay * s + (1 - rule.decay) * g * g;
            strength /= std::sqrt(s + 1e-7);
        }
        return g + strength * g * g * (now - then);
    }
    double step(double w, double direction, double rate) {
        const double made = w - rate * direction, decay = spec.staleness_rule.decay;
        steps_square = decay * steps_square + (1 - decay) * direction * direction;
        ++steps;
        return made;
    }
};

}  // namespace

TEST_CASE("rules on weights follow the recursion in double precision, as parts and as folds") {
    constexpr int workers = 3;
    for (const auto& rule : test::rules_on_weights())
        for (const bool folded : {false, true}) {
            const auto spec = sgd(rule);
            CAPTURE(test::label(spec));
            CAPTURE(folded);
            Optimizer optimizer(spec, size, workers);
            std::vector<std::vector<float>> versions{noise(1)};
            std::vector<Reference> reference(size, Reference{spec});
            std::vector<double> w(versions[0].begin(), versions[0].end());
            for (int number = 1; number <= 6; ++number) {
                // Two gradients an update: of worker 1 on the version before the last, of worker 2 on the present one.
                const auto a = noise(static_cast<std::uint64_t>(10 * number)),
                           b = noise(static_cast<std::uint64_t>(10 * number + 1));
                const auto& now = versions.back();
                const auto& then = versions[versions.size() > 2 ? versions.size() - 3 : 0];
                const bool stale = versions.size() > 1;
                const Summand parts[] = {{a.data(), 0.25f, stale ? then.data() : nullptr, 1},
                                         {b.data(), 0.5f, nullptr, 2}};
                std::vector<float> made(size), sum(size);
                const Summand whole[] = {{sum.data(), 1}};
                if (folded) {
                    optimizer.fold_in(sum, parts[0], true, now, number - 1);
                    optimizer.fold_in(sum, parts[1], false, now, number - 1);
                }
                const StepInput step{folded ? std::span<const Summand>(whole) : parts, 0.125, -1, number};
                optimizer.apply(now, made, {&step, 1});
                double distance = 0;
                for (std::size_t i = 0; i < size; ++i) {
                    auto& one = reference[i];
                    const double direction =
                        0.25 * one.ruled(a[i], now[i], then[i], 1) + 0.5 * one.ruled(b[i], now[i], now[i], 2);
                    w[i] = one.step(now[i], direction, 0.125);
                    distance = std::max(distance, std::abs(w[i] - static_cast<double>(made[i])));
                }
                CAPTURE(number);
                CHECK(distance < 1e-4);  // a small step is a difference of larger weights
                versions.push_back(std::move(made));
            }
        }
}

TEST_CASE("what was computed on the present weights keeps its bits; what is stale does not") {
    const auto g = noise(30), w = noise(31), old = noise(32);
    std::vector<float> plain(size);
    const Summand bare[] = {{g.data(), 1}};
    const StepInput bare_step{bare, 0.5};
    Optimizer(sgd({}), size).apply(w, plain, {&bare_step, 1});
    for (const auto& rule : test::rules_on_weights()) {
        CAPTURE(test::label(sgd(rule)));
        for (const float* then : {static_cast<const float*>(nullptr), w.data(), old.data()}) {
            std::vector<float> made(size);
            const Summand part[] = {{g.data(), 1, then, 0}};
            const StepInput step{part, 0.5};
            Optimizer(sgd(rule), size).apply(w, made, {&step, 1});
            std::size_t same = 0;
            for (std::size_t i = 0; i < size; ++i) same += made[i] == plain[i];
            CHECK((then == old.data() ? same < size / 100 : same == size));
        }
    }
}

TEST_CASE("hand values: delay compensation and gap") {
    const std::vector<float> g{2}, now{3}, then{1};
    const auto made = [&](const StalenessRule& rule, double rate, Version number, std::span<const float> state) {
        Optimizer optimizer(sgd(rule, rate), 1);
        if (!state.empty()) optimizer.restore(state);
        std::vector<float> w{3};
        const Summand part[] = {{g.data(), 1, then.data(), 0}};
        const StepInput step{part, 0.125, -1, number};
        optimizer.apply(w, w, {&step, 1});
        return static_cast<double>(w[0]);
    };
    StalenessRule rule;
    rule.kind = StalenessRule::Kind::delay_compensation;
    rule.strength = 0.25;
    CHECK(made(rule, 0.125, 1, {}) == 3 - 0.125 * (2 + 0.25 * 4 * 2));
    rule.adaptive = true;
    rule.decay = 0.75;  // the mean square is 1 after the first gradient
    CHECK(made(rule, 0.125, 1, {}) == doctest::Approx(3 - 0.125 * (2 + 0.25 * 4 * 2)).epsilon(1e-6));
    rule = {};
    rule.kind = StalenessRule::Kind::gap_aware;
    rule.decay = 0.5;
    // Mean square of steps 0.5 / (1 - 0.5) = 1, so a mean step is 0.5, and 2 is four of them.
    const std::vector<float> state{0.5f};
    CHECK(made(rule, 0.5, 2, state) == doctest::Approx(3 - 0.125 * 2 / 5.0).epsilon(1e-6));
    CHECK(made(rule, 0, 2, state) == 3 - 0.25);  // a configured rate of 0: no step to measure by
}

TEST_CASE("a version that is kept is never changed, though nobody else holds it any more") {
    for (const bool late : {false, true}) {
        BufferPool pool(4);
        Kept kept(pool);
        StalenessRule rule;
        rule.kind = StalenessRule::Kind::delay_compensation;
        rule.strength = 1;
        Optimizer optimizer(sgd(rule), 4);
        LateUpdate waiting(pool, optimizer, kept);
        BufferId weights = pool.allocate();
        std::ranges::fill(pool.data(weights), 1.0f);
        kept.keep(0, weights);
        CHECK(!pool.sole(weights));
        CHECK_THROWS_AS(kept.keep(0, weights), std::logic_error);
        CHECK_THROWS_AS(kept.at(1), std::logic_error);
        // Two gradients of 1 on version 0: the second is compensated by how far the first has moved the weights.
        for (Version version = 0; version < 2; ++version) {
            const BufferId gradient = pool.allocate();
            std::ranges::fill(pool.data(gradient), 1.0f);
            Actions actions;
            actions.parts.push_back({gradient, 1, 0, 1, 0});
            actions.steps.push_back({0, 1, 0.5});
            const Update update{1, weights, version, 0, 1};
            waiting.run();
            const bool in_place = pool.sole(weights);
            CHECK(in_place == (version > 0));
            const BufferId to = in_place ? weights : pool.allocate();
            if (late) {
                waiting.defer(update, actions, to);
            } else {
                run(resolve(update, actions, pool.data(weights), pool.data(to), pool, kept, optimizer), optimizer);
            }
            if (!in_place) pool.release(weights);
            if (version == 1) kept.forget(0);  // before a late one has run
            pool.release(gradient);
            weights = to;
        }
        waiting.run();
        CHECK(kept.count() == 0);
        // 1 - 0.5 * 1 = 0.5; 0.5 - 0.5 * (1 + 1 * (0.5 - 1)) = 0.25. An alias of the live weights would give 0.
        CHECK(std::ranges::all_of(pool.data(weights), [](float w) { return w == 0.25f; }));
        pool.release(weights);
        CHECK(pool.outstanding() == 0);
    }
}

}  // namespace rubato::learn
