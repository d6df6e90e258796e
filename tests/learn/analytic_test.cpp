#include "learn/task.hpp"

#include "helpers.hpp"
#include "learn/optimizer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <deque>

namespace rubato::learn {
namespace {

Scenario scenario_of(const char* model, std::int64_t dimension, int workers = 4) {
    Scenario scenario;
    scenario.model.name = model;
    scenario.model.dimension = dimension;
    scenario.data.samples = 1000;
    scenario.workers.groups = {{workers, "default", 0}};
    return scenario;
}

std::vector<float> gradient(const Task& task, std::span<const float> weights, WorkerId worker, std::int64_t seq,
                            std::int32_t count = 8) {
    std::vector<float> out(static_cast<std::size_t>(task.parameters()), NAN);
    const auto workspace = task.workspace();
    task.gradient(weights, worker, seq, {0, count, 0}, out, *workspace);
    return out;
}

std::vector<float> initial(const Task& task) {
    std::vector<float> weights(static_cast<std::size_t>(task.parameters()), NAN);
    task.initialize(weights);
    return weights;
}

}  // namespace

TEST_CASE("constant: each element is the value") {
    Scenario scenario = scenario_of("constant", 5);
    scenario.model.value = -0.5;
    const auto task = make_task(scenario);
    CHECK(task->samples() == 1000);
    CHECK(initial(*task) == std::vector<float>(5, 0));
    CHECK(gradient(*task, initial(*task), 1, 2) == std::vector<float>(5, -0.5f));
    Backwards parallel;
    CHECK(*task->evaluate(initial(*task), parallel).gradient_norm == doctest::Approx(0.5 * std::sqrt(5)));
    CHECK(task->sample_ids(0, {0, 8, 0}).empty());
}

TEST_CASE("tagged: a gradient names its worker and number, all over its length") {
    const auto task = make_task(scenario_of("tagged", 18, 4));
    std::vector<float> expected(18, 0);
    expected[4] = expected[12] = 1;
    expected[5] = expected[13] = 8;
    CHECK(gradient(*task, initial(*task), 2, 7) == expected);
    expected.assign(18, 0);
    expected[0] = expected[8] = expected[16] = 1;
    expected[1] = expected[9] = expected[17] = 1000001;
    CHECK(gradient(*task, initial(*task), 0, 1000000) == expected);
    CHECK(gradient(*make_task(scenario_of("tagged", 1)), std::vector<float>{0}, 3, 7) == std::vector<float>{8});
    // Fewer elements than pairs: worker 3 shares the pair of worker 1.
    CHECK(gradient(*make_task(scenario_of("tagged", 5)), std::vector<float>(5), 3, 0) ==
          std::vector<float>{0, 0, 1, 1, 0});
}

TEST_CASE("tagged: sums show what was lost and what came twice") {
    const auto task = make_task(scenario_of("tagged", 8, 4));
    std::vector<float> sum(8, 0);
    for (WorkerId worker = 0; worker < 4; worker++)
        for (std::int64_t seq = 0; seq < 100 + worker; seq++) fold(sum, gradient(*task, sum, worker, seq), 1);
    for (std::size_t worker = 0; worker < 4; worker++) {
        const float n = 100 + static_cast<float>(worker);
        CHECK(sum[2 * worker] == n);
        CHECK(sum[2 * worker + 1] == n * (n + 1) / 2);
    }
}

TEST_CASE("quadratic: curvatures in equal ratios, and the figures of its evaluation") {
    Scenario scenario = scenario_of("quadratic", 3);
    scenario.model.conditioning = 100;
    const auto task = make_task(scenario);
    const auto weights = initial(*task);
    CHECK(weights == std::vector<float>(3, 1));
    CHECK(gradient(*task, weights, 0, 0) == std::vector<float>{1, 10, 100});
    const auto workspace = task->workspace();
    std::vector<float> out(3);
    CHECK(task->gradient(weights, 0, 0, {0, 8, 0}, out, *workspace) == doctest::Approx(55.5));
    Backwards parallel;
    const Metrics metrics = task->evaluate(weights, parallel);
    CHECK(*metrics.suboptimality == doctest::Approx(55.5));
    CHECK(*metrics.gradient_norm == doctest::Approx(std::sqrt(1 + 100 + 10000)));
    CHECK(!metrics.test_error);
}

TEST_CASE("quadratic: the gradient is the slope of the loss") {
    Scenario scenario = scenario_of("quadratic", 4);
    scenario.model.conditioning = 7;
    const auto task = make_task(scenario);
    const auto workspace = task->workspace();
    std::vector<float> weights{0.5f, -2, 3, 0.25f}, out(4);
    const auto slopes = gradient(*task, weights, 0, 0);
    for (std::size_t i = 0; i < 4; i++) {
        // f is a parabola: central differences are exact but for the rounding of the sum, and 1/8 is exact.
        auto up = weights, down = weights;
        up[i] += 0.125f;
        down[i] -= 0.125f;
        const double difference = task->gradient(up, 0, 0, {0, 1, 0}, out, *workspace) -
                                  task->gradient(down, 0, 0, {0, 1, 0}, out, *workspace);
        CHECK(slopes[i] == doctest::Approx(difference / 0.25).epsilon(1e-6));
    }
}

TEST_CASE("quadratic: noise is that of a mean over the batch, keyed by worker and number") {
    Scenario scenario = scenario_of("quadratic", 20000);
    scenario.model.noise = 2;
    const auto task = make_task(scenario);
    const auto weights = initial(*task);
    for (std::int32_t count : {1, 16}) {
        const auto g = gradient(*task, weights, 1, 5, count);
        double sum = 0, squares = 0;
        for (float value : g) {
            sum += value - 1;
            squares += (value - 1.0) * (value - 1.0);
        }
        const double deviation = 2 / std::sqrt(count);
        CHECK(std::abs(sum / 20000) < 5 * deviation / std::sqrt(20000));
        CHECK(std::sqrt(squares / 20000) == doctest::Approx(deviation).epsilon(0.03));
    }
    CHECK(gradient(*task, weights, 1, 5) == gradient(*task, weights, 1, 5));
    CHECK(gradient(*task, weights, 1, 5) != gradient(*task, weights, 1, 6));
    CHECK(gradient(*task, weights, 1, 5) != gradient(*task, weights, 2, 5));
    scenario.seeds.data = 2;
    CHECK(gradient(*make_task(scenario), weights, 1, 5) != gradient(*task, weights, 1, 5));
}

TEST_CASE("delayed descent on w^2 / 2 is stable just below 2 cos(d pi / (2 d + 1)), and not just above") {
    const auto task = make_task(scenario_of("quadratic", 1));
    const auto grows = [&](int delay, double rate) {
        std::deque<std::vector<float>> read(static_cast<std::size_t>(delay) + 1, initial(*task));
        Optimizer optimizer({}, 1);
        for (int k = 0; k < 5000; k++) {
            const auto g = gradient(*task, read.front(), 0, k);
            const Summand part[] = {{g.data(), 1}};
            const StepInput step{part, rate};
            std::vector<float> next(1);
            optimizer.apply(read.back(), next, {&step, 1});
            read.pop_front();
            read.push_back(next);
        }
        return !(std::abs(read.back()[0]) < 1);
    };
    CHECK(!grows(0, 1.99));
    CHECK(grows(0, 2.01));
    CHECK(!grows(1, 0.99));
    CHECK(grows(1, 1.01));
}

TEST_CASE("a model without meaning is refused") {
    CHECK(contains(error_of([] { make_task(scenario_of("tagged", 0)); }), "model.dimension"));
    Scenario scenario = scenario_of("quadratic", 2);
    scenario.model.conditioning = 0;
    CHECK(contains(error_of([&] { make_task(scenario); }), "model.conditioning"));
    CHECK(contains(error_of([] { make_task(scenario_of("quadrratic", 2)); }), "found quadrratic"));
}

}  // namespace rubato::learn
