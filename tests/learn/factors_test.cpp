// Gradients that are not multiplied out: of which elements, in which pieces, with which bits.
#include "learn/factors.hpp"

#include "helpers.hpp"
#include "learn/network.hpp"
#include "learn/optimizer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace rubato::learn {
namespace {

struct Shape {
    int count, outputs, inputs;
    std::size_t rest;
};

/// One piece and many, whole ones and others, fewer rows than the kernel takes at a time.
const Shape shapes[] = {{1, 1, 1, 0},    {3, 2, 5, 2},      {32, 128, 784, 1418}, {7, 33, 1000, 5},
                        {256, 6, 31, 1}, {2, 130, 9, 5000}, {5, 9, 5001, 10}};

void fill(Factors& factors, const Shape& shape) {
    const auto count = static_cast<std::size_t>(shape.count);
    const auto slope = noise(1, 0, count * static_cast<std::size_t>(shape.outputs));
    const auto input = noise(1, 1, count * static_cast<std::size_t>(shape.inputs));
    std::ranges::copy(noise(1, 2, shape.rest), factors.rest(shape.rest).begin());
    factors.set(slope.data(), input.data(), shape.count, shape.outputs, shape.inputs);
}

std::vector<float> whole(const Factors& factors) {
    std::vector<float> out(factors.size(), NAN);
    factors.multiply_out(0, out.size(), out.data());
    return out;
}

}  // namespace

TEST_CASE("factors: an element is the sum of its samples' products, and behind the matrix what was filled in") {
    Factors factors;  // the same for all: memory of a larger one serves a smaller
    for (const Shape& shape : shapes) {
        CAPTURE(shape.inputs);
        fill(factors, shape);
        const auto count = static_cast<std::size_t>(shape.count), outputs = static_cast<std::size_t>(shape.outputs),
                   inputs = static_cast<std::size_t>(shape.inputs);
        const auto slope = noise(1, 0, count * outputs), input = noise(1, 1, count * inputs),
                   rest = noise(1, 2, shape.rest);
        REQUIRE(factors.size() == outputs * inputs + shape.rest);
        const auto elements = whole(factors);
        double worst = 0;
        for (std::size_t row = 0; row < outputs; row++)
            for (std::size_t column = 0; column < inputs; column++) {
                double sum = 0;
                for (std::size_t i = 0; i < count; i++)
                    sum += double{slope[i * outputs + row]} * input[i * inputs + column];
                worst = std::max(worst, std::abs(sum - elements[row * inputs + column]));
            }
        CHECK(worst < 1e-5 * std::sqrt(shape.count) * 10);
        CHECK(std::equal(rest.begin(), rest.end(), elements.end() - static_cast<std::ptrdiff_t>(shape.rest)));
    }
}

TEST_CASE("factors: pieces have the bits of the whole, last one first, and cover it once") {
    for (const Shape& shape : shapes) {
        CAPTURE(shape.inputs);
        Factors factors;
        fill(factors, shape);
        const auto expected = whole(factors);
        std::vector<std::size_t> begins;
        for (std::size_t first = 0; first < factors.size(); first = factors.end_of_piece(first)) {
            REQUIRE(factors.end_of_piece(first) > first);
            begins.push_back(first);
        }
        std::vector<float> elements(factors.size(), NAN);
        std::size_t end = factors.size();
        for (std::size_t i = begins.size(); i-- > 0; end = begins[i])
            factors.multiply_out(begins[i], end - begins[i], elements.data() + begins[i]);
        CHECK(elements == expected);
    }
}

TEST_CASE("factors: a step along them has the bits of a plain one, whole or in pieces, in place or apart") {
    for (const Shape& shape : shapes) {
        CAPTURE(shape.inputs);
        Factors factors;
        fill(factors, shape);
        const std::size_t size = factors.size();
        const auto gradient = whole(factors), weights = noise(1, 3, size);
        constexpr float rate = 0.3f;
        std::vector<float> expected(size);
        descend_plainly(expected, weights, gradient, rate);
        std::vector<float> apart(size, NAN), in_place(weights);
        factors.descend(apart.data(), weights.data(), rate, 0, size);
        CHECK(apart == expected);
        for (std::size_t first = size, end; (end = first) > 0;) {  // the last piece first
            first = (end - 1) / factors.piece() * factors.piece();
            factors.descend(in_place.data(), in_place.data(), rate, first, end - first);
        }
        CHECK(in_place == expected);
    }
}

TEST_CASE("factors: they pay where they are smaller, and for no batch that is cut") {
    CHECK(Factors::pay(32, 128, 784));
    CHECK(Factors::pay(110, 128, 784));
    CHECK(!Factors::pay(111, 128, 784));  // 111 * 912 > 128 * 784
    CHECK(!Factors::pay(1, 2, 2));        // as large
    CHECK(Factors::pay(256, 100000, 100000));
    CHECK(!Factors::pay(257, 100000, 100000));
}

TEST_CASE("factors: a network's have the bits and the loss of its gradient") {
    for (const std::vector<int>& hidden : {std::vector{33}, {20, 30, 7}, {}}) {
        const auto network = make_dense(144, hidden, 10);
        std::vector<float> weights(static_cast<std::size_t>(network->parameters()));
        network->initialize(weights, 3);
        const auto scratch = network->scratch();
        for (const int count : {1, 2, 7, 8, 20}) {
            const auto images = noise(2, 0, static_cast<std::size_t>(count) * 144);
            std::vector<std::uint8_t> labels;
            for (int i = 0; i < count; i++) labels.push_back(static_cast<std::uint8_t>(i % 10));
            std::vector<float> gradient(weights.size(), NAN);
            const double loss =
                network->gradient(weights.data(), images.data(), labels.data(), count, gradient.data(), *scratch);
            Factors factors;
            if (!network->has_factors(count)) {
                CHECK(count > (hidden.empty() ? 9 : 15));
                CHECK_THROWS_AS(make_cnn({8, 8, 1}, 3, 1)
                                    ->gradient(weights.data(), images.data(), labels.data(), count, factors, *scratch),
                                std::logic_error);
                continue;
            }
            CHECK(loss == network->gradient(weights.data(), images.data(), labels.data(), count, factors, *scratch));
            CHECK(whole(factors) == gradient);
        }
    }
}

}  // namespace rubato::learn
