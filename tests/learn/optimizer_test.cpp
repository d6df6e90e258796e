#include "learn/optimizer.hpp"

#include "learn/random.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>

namespace rubato::learn {
namespace {

constexpr std::size_t size = 10007;  // several blocks and a rest that fills no vector register

std::vector<float> noise(std::uint64_t index, std::size_t n = size) {
    Stream stream(1, 0, Purpose::init, index);
    std::vector<float> values(n);
    for (float& value : values) value = static_cast<float>(stream.normal());
    return values;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); i++)
        if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
    return true;
}

OptimizerSpec spec(const char* name, double decay) {
    OptimizerSpec out;
    out.name = name;
    out.momentum = 0.9;
    out.weight_decay = decay;
    return out;
}

/// The documented rule, one element at a time and with no block.
void naive(const OptimizerSpec& rule, std::vector<float>& w, std::vector<float>& v, const StepInput& step) {
    const auto rate = static_cast<float>(step.learning_rate), mu = static_cast<float>(rule.momentum);
    const auto decay = static_cast<float>(rule.weight_decay);
    for (std::size_t i = 0; i < w.size(); i++) {
        volatile float d = step.summands[0].factor * step.summands[0].gradient[i];  // volatile: no contraction here
        for (const Summand& part : step.summands.subspan(1)) {
            volatile float term = part.factor * part.gradient[i];
            d = d + term;
        }
        volatile float shrink = decay * w[i];
        volatile float slope = d + shrink;
        volatile float move = rate * slope;
        if (rule.name == "momentum") {
            volatile float kept = mu * v[i];
            v[i] = kept - move;
            w[i] = w[i] + v[i];
        } else {
            w[i] = w[i] - move;
        }
    }
}

}  // namespace

TEST_CASE("several steps in one pass have the bits of one by one, and of the documented rule") {
    const auto g0 = noise(10), g1 = noise(11), g2 = noise(12), start = noise(13);
    const Summand first[] = {{g0.data(), 1}};
    const Summand second[] = {{g1.data(), 0.25f}, {g2.data(), 0.6f}, {g0.data(), -0.1f}};
    const Summand third[] = {{g2.data(), 0.3f}};
    const StepInput steps[] = {{first, 0.1}, {second, 0.07}, {third, 0.01}};
    for (const char* name : {"sgd", "momentum"}) {
        for (double decay : {0.0, 5e-4}) {
            CAPTURE(name);
            CAPTURE(decay);
            const auto rule = spec(name, decay);
            Optimizer at_once(rule, size), one_by_one(rule, size);
            std::vector<float> a(size), b = start, c = start, v(size);
            at_once.apply(start, a, steps);
            for (const StepInput& step : steps) {
                one_by_one.apply(b, b, {&step, 1});
                naive(rule, c, v, step);
            }
            CHECK(same_bits(a, b));
            CHECK(same_bits(a, c));
            CHECK(same_bits(at_once.state(), one_by_one.state()));
            CHECK(at_once.state().size() == (std::string(name) == "momentum" ? size : 0));
            CHECK(!same_bits(a, start));
        }
    }
}

TEST_CASE("a folded gradient has the bits of the parts summed by the step") {
    const auto g0 = noise(20), g1 = noise(21), start = noise(22);
    std::vector<float> sum(size);
    fold_first(sum, g0, 0.5f);
    fold(sum, g1, 0.25f);
    const Summand parts[] = {{g0.data(), 0.5f}, {g1.data(), 0.25f}};
    const Summand folded[] = {{sum.data(), 1}};
    Optimizer a(spec("momentum", 1e-4), size), b(spec("momentum", 1e-4), size);
    std::vector<float> wa = start, wb = start;
    const StepInput with_parts{parts, 0.01}, with_sum{folded, 0.01};
    a.apply(wa, wa, {&with_parts, 1});
    b.apply(wb, wb, {&with_sum, 1});
    CHECK(same_bits(wa, wb));
}

TEST_CASE("fold adds and fold_first overwrites") {
    std::vector<float> sum{9, 9};
    const std::vector<float> g{1, -2};
    fold_first(sum, g, 2);
    CHECK(sum == std::vector<float>{2, -4});
    fold(sum, g, 0.5f);
    CHECK(sum == std::vector<float>{2.5f, -5});
}

TEST_CASE("momentum follows the recursion of Krizhevsky et al. by hand") {
    OptimizerSpec rule = spec("momentum", 0);
    rule.momentum = 0.5;
    Optimizer optimizer(rule, 1);
    const std::vector<float> g{1};
    std::vector<float> w{0};
    const Summand part[] = {{g.data(), 1}};
    const StepInput step{part, 0.25};
    for (float expected : {-0.25f, -0.625f, -1.0625f}) {
        optimizer.apply(w, w, {&step, 1});
        CHECK(w[0] == expected);
    }
    CHECK(optimizer.state()[0] == -0.4375f);
    // No gradient at all: the momentum goes on.
    const StepInput nothing{{}, 0.25};
    optimizer.apply(w, w, {&nothing, 1});
    CHECK(w[0] == -1.0625f - 0.21875f);
    // No step at all: a copy.
    std::vector<float> copy{7};
    optimizer.apply(w, copy, {});
    CHECK(copy == w);
}

TEST_CASE("with momentum 0 both rules take the same way") {
    OptimizerSpec still = spec("momentum", 0);
    still.momentum = 0;
    Optimizer a(still, size), b(spec("sgd", 0), size);
    const auto g = noise(30), start = noise(31);
    const Summand part[] = {{g.data(), 1}};
    const StepInput step{part, 0.1};
    std::vector<float> wa = start, wb = start;
    a.apply(wa, wa, {&step, 1});
    b.apply(wb, wb, {&step, 1});
    CHECK(same_bits(wa, wb));
}

}  // namespace rubato::learn
