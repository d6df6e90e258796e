// Each optimizer against its formula: bit for bit in the documented order, and near a recursion in double precision.
#include "support/optimizers.hpp"
#include "helpers.hpp"
#include "learn/optimizer.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>

namespace rubato::learn {
namespace {

using test::optimizer_named;

constexpr std::size_t size = 5003;

std::vector<float> noise(std::uint64_t index) {
    return learn::noise(2, index, size);
}

/// One element in Real; every operation is rounded to it, in the documented order.
template <class Real>
struct Reference {
    Real w = 0, first = 0, second = 0;

    static Real round(double value) {
        volatile Real out = static_cast<Real>(value);  // no contraction
        return out;
    }
    static Real times(Real a, Real b) {
        volatile Real out = a * b;
        return out;
    }
    void step(const OptimizerSpec& spec, Real g, double wanted_rate, int number) {
        const Real rate = round(wanted_rate), decay = round(spec.weight_decay), mu = round(spec.momentum);
        const Real shrink = times(decay, w);
        Real s = g, start = w;
        if (spec.weight_decay > 0 && !spec.decoupled_weight_decay) s = g + shrink;
        if (spec.decoupled_weight_decay) start = w - times(rate, shrink);
        const Real move = times(rate, s);
        if (spec.name == "sgd") w = start - move;
        if (spec.name == "momentum") w = start + (first = times(mu, first) - move);
        if (spec.name == "nesterov") {
            first = times(mu, first) - move;
            w = start + (times(mu, first) - move);
        }
        if (spec.name == "adagrad") {
            first = first + times(s, s);
            w = start - move / (std::sqrt(first) + round(spec.epsilon));
        }
        if (spec.name == "adam") {
            const Real b1 = round(spec.beta1), b2 = round(spec.beta2);
            first = times(b1, first) + times(1 - b1, s);
            second = times(b2, second) + times(1 - b2, times(s, s));
            const Real corrected = round(wanted_rate / (1 - std::pow(spec.beta1, number)));
            const Real correction = round(1 / (1 - std::pow(spec.beta2, number)));
            w = start - times(corrected, first) / (std::sqrt(times(second, correction)) + round(spec.epsilon));
        }
    }
};

std::vector<OptimizerSpec> plain_optimizers() {
    std::vector<OptimizerSpec> out;
    for (const auto& it : test::all_optimizers())
        if (it.staleness_rule.kind == StalenessRule::Kind::none && !it.decoupled_momentum) out.push_back(it);
    return out;
}

}  // namespace

TEST_CASE("every optimizer has the bits of its formula, and is near the same in double precision") {
    for (const auto& spec : plain_optimizers()) {
        CAPTURE(test::label(spec));
        const auto start = noise(1);
        std::vector<float> w = start;
        std::vector<Reference<float>> single(size);
        std::vector<Reference<double>> exact(size);
        for (std::size_t i = 0; i < size; ++i) exact[i].w = single[i].w = start[i];
        Optimizer optimizer(spec, size);
        for (int number = 1; number <= 6; ++number) {
            const auto g = noise(static_cast<std::uint64_t>(10 + number));
            const double rate = spec.learning_rate / number;
            const Summand part[] = {{g.data(), 1}};
            const StepInput step{part, rate, -1, number};
            optimizer.apply(w, w, {&step, 1});
            int wrong = 0;
            double distance = 0;
            for (std::size_t i = 0; i < size; ++i) {
                single[i].step(spec, g[i], rate, number);
                exact[i].step(spec, g[i], rate, number);
                wrong += std::bit_cast<std::uint32_t>(single[i].w) != std::bit_cast<std::uint32_t>(w[i]);
                distance = std::max(distance, std::abs(exact[i].w - static_cast<double>(w[i])));
            }
            CAPTURE(number);
            CHECK(wrong == 0);
            CHECK(distance < 3e-6);
        }
        CHECK(optimizer.state().size() == static_cast<std::size_t>(optimizer.arrays()) * size);
    }
}

TEST_CASE("every optimizer takes several steps in one pass, also over the memory of a gradient, with the same bits") {
    for (const auto& spec : plain_optimizers()) {
        CAPTURE(test::label(spec));
        const auto g0 = noise(20), g1 = noise(21), start = noise(22);
        const Summand first[] = {{g0.data(), 0.5f}, {g1.data(), 0.5f}};
        const Summand second[] = {{g1.data(), 1}};
        const StepInput steps[] = {{first, 0.1, -1, 1}, {second, 0.05, -1, 2}, {{}, 0.05, -1, 3}};
        Optimizer at_once(spec, size), one_by_one(spec, size), over(spec, size);
        std::vector<float> a(size), b = start, c = g0;
        at_once.apply(start, a, steps);
        for (const StepInput& step : steps) one_by_one.apply(b, b, {&step, 1});
        const Summand reused[] = {{c.data(), 0.5f}, {g1.data(), 0.5f}};
        const StepInput again[] = {{reused, 0.1, -1, 1}, steps[1], steps[2]};
        over.apply(start, c, again);
        CHECK(a == b);
        CHECK(a == c);
        CHECK(std::ranges::equal(at_once.state(), one_by_one.state()));
        // What is restored goes on as if nothing had been.
        Optimizer resumed(spec, size);
        resumed.restore(one_by_one.state());
        const StepInput next{second, 0.05, -1, 4};
        resumed.apply(a, a, {&next, 1});
        one_by_one.apply(b, b, {&next, 1});
        CHECK(a == b);
    }
}

TEST_CASE("hand values: two steps of each from w = 1 with the gradients 1 and 0.5") {
    const std::vector<float> g0{1}, g1{0.5f};
    const Summand one[] = {{g0.data(), 1}}, two[] = {{g1.data(), 1}};
    const StepInput steps[] = {{one, 0.25, -1, 1}, {two, 0.25, -1, 2}};
    const auto end = [&](OptimizerSpec spec) {
        spec.momentum = spec.momentum > 0 ? 0.5 : 0;
        std::vector<float> w{1};
        Optimizer(spec, 1).apply(w, w, steps);
        return static_cast<double>(w[0]);
    };
    CHECK(end(optimizer_named("sgd", 0)) == 0.625);
    CHECK(end(optimizer_named("momentum", 0)) == 0.5);    // v: -0.25, -0.25
    CHECK(end(optimizer_named("nesterov", 0)) == 0.375);  // moves: -0.375, -0.25
    CHECK(end(optimizer_named("adagrad", 0)) == doctest::Approx(1 - 0.25 - 0.125 / std::sqrt(1.25)).epsilon(1e-6));
    const double m = (0.09 + 0.05) / 0.19, v = (0.000999 + 0.00025) / 0.001999;
    CHECK(end(optimizer_named("adam", 0)) == doctest::Approx(0.75 - 0.25 * m / std::sqrt(v)).epsilon(1e-5));
    auto decoupled = optimizer_named("adam", 0);
    decoupled.weight_decay = 0.5;
    decoupled.decoupled_weight_decay = true;
    // The first step of Adam is the rate, whatever the gradient: 1 - 0.25 * 0.5 - 0.25.
    std::vector<float> w{1};
    Optimizer(decoupled, 1).apply(w, w, {steps, 1});
    CHECK(w[0] == doctest::Approx(0.625).epsilon(1e-5));
}

TEST_CASE("a step may bring a momentum of its own") {
    const auto spec = optimizer_named("momentum", 0);
    const std::vector<float> g{1};
    const Summand part[] = {{g.data(), 1}};
    const StepInput steps[] = {{part, 0.25, -1, 1}, {part, 0.25, 0.5, 2}, {part, 0.25, 0, 3}};
    std::vector<float> w{0};
    Optimizer(spec, 1).apply(w, w, steps);
    CHECK(w[0] == -0.25f - 0.375f - 0.25f);
}

TEST_CASE("the state of another optimizer is refused") {
    Optimizer adam(optimizer_named("adam", 0.1), 10);
    CHECK(adam.state().empty());  // memory only where steps are taken
    CHECK_THROWS_AS(adam.restore(std::vector<float>(10)), std::invalid_argument);
    adam.restore(std::vector<float>(20));
}

}  // namespace rubato::learn
