#include "learn/task.hpp"

#include "helpers.hpp"
#include "learn/optimizer.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>

#include <cmath>
#include <future>
#include <set>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace rubato::learn {
namespace {

std::vector<float> initial(const Task& task) {
    std::vector<float> weights(static_cast<std::size_t>(task.parameters()));
    task.initialize(weights);
    return weights;
}

/// Trains with momentum for some epochs of batches of 20; returns the weights.
std::vector<float> train(const Task& task, int epochs, double rate) {
    auto weights = initial(task);
    std::vector<float> gradient(weights.size());
    OptimizerSpec spec;
    spec.name = "momentum";
    spec.momentum = 0.9;
    Optimizer optimizer(spec, task.parameters());
    const auto workspace = task.workspace();
    std::int64_t seq = 0;
    for (std::int32_t epoch = 0; epoch < epochs; epoch++) {
        for (std::int64_t first = 0; first < task.samples(); first += 20) {
            const auto count = static_cast<std::int32_t>(std::min<std::int64_t>(20, task.samples() - first));
            task.gradient(weights, 0, seq++, {epoch, count, first}, gradient, *workspace);
            const Summand part[] = {{gradient.data(), 1}};
            const StepInput step{part, rate};
            optimizer.apply(weights, weights, {&step, 1});
        }
    }
    return weights;
}

}  // namespace

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("gradients take no memory from the system, whatever was freed before") {
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);  // as the C library begins
    mallopt(M_TRIM_THRESHOLD, 128 * 1024);
    Scenario scenario = small_scenario("mlp");
    scenario.data.shape = {28, 28, 1};
    scenario.data.samples = 600;
    const auto task = make_task(scenario);
    const auto page_faults = [&] {  // of 20 gradients, on a thread with memory of its own and on this one
        const auto weights = initial(*task);
        std::vector<float> gradient(weights.size());
        const auto workspace = task->workspace();
        rusage before{}, after{};
        for (std::int64_t seq = 0; seq < 25; ++seq) {
            if (seq == 5) getrusage(RUSAGE_THREAD, &before);
            task->gradient(weights, 0, seq, {0, 256, 0}, gradient, *workspace);
        }
        getrusage(RUSAGE_THREAD, &after);
        return after.ru_minflt - before.ru_minflt;
    };
    CHECK(page_faults() < 20);
    CHECK(std::async(std::launch::async, page_faults).get() < 20);
}
#endif

TEST_CASE("each model learns the synthetic task") {
    for (const char* model : {"softmax", "mlp", "cnn"}) {
        CAPTURE(model);
        Scenario scenario = small_scenario(model);
        scenario.data.shape = {16, 16, 1};
        scenario.data.validation = 0.1;
        const auto task = make_task(scenario);
        Backwards parallel;
        const Metrics before = task->evaluate(initial(*task), parallel);
        CHECK(*before.test_error > 0.6);
        const Metrics after = task->evaluate(train(*task, 10, 0.02), parallel);
        CHECK(*after.test_error < 0.1);
        CHECK(*after.valid_error < 0.15);
        CHECK(*after.test_loss < 0.5 * *before.test_loss);
        CHECK(*after.valid_loss < 0.5 * *before.valid_loss);
    }
}

TEST_CASE("the size of a task is that of the task") {
    for (const char* model : {"softmax", "mlp", "cnn", "quadratic", "tagged", "constant"}) {
        Scenario scenario = small_scenario(model);
        scenario.data.validation = 0.25;
        scenario.model.dimension = 12;
        const auto task = make_task(scenario);
        const TaskSize size = task_size(scenario);
        CHECK(size.samples == 300);
        CHECK(size.samples == task->samples());
        CHECK(size.parameters == task->parameters());
        CHECK(size.flops_per_sample > 0);
    }
    Scenario timing = small_scenario("");
    CHECK(task_size(timing).samples == 400);
    CHECK(task_size(timing).parameters == 0);
    timing.data.samples = 0;
    CHECK(task_size(timing).samples == 60000);
    timing.model.name = "cnn";
    timing.model.gradients = false;
    timing.data.shape = {32, 32, 3};
    timing.data.classes = 10;
    CHECK(task_size(timing).parameters == 89578);
    CHECK(contains(error_of([] { make_task(small_scenario("")); }), "found none"));
    Scenario bad = small_scenario("mlp");
    bad.model.hidden = {4, 0};
    CHECK(contains(error_of([&] { make_task(bad); }), "found [4, 0]"));
}

TEST_CASE("gradients and evaluation have the same bits on any number of threads") {
    for (const char* model : {"mlp", "cnn"}) {
        Scenario scenario = small_scenario(model);
        scenario.data.validation = 0.5;
        scenario.data.samples = 2600;
        scenario.data.test_samples = 1100;
        scenario.data.shape = {8, 8, 1};
        const auto task = make_task(scenario);
        const auto weights = initial(*task);
        Threads threads;
        Backwards backwards;
        const Metrics metrics = task->evaluate(weights, backwards);
        CHECK(task->evaluate(weights, threads) == metrics);
        CHECK(metrics.valid_error.has_value());
        CHECK(metrics.test_loss.has_value());

        constexpr int jobs = 6;
        std::vector<std::vector<float>> alone(jobs), together(jobs);
        std::vector<double> losses_alone(jobs), losses_together(jobs);
        const auto compute = [&](int job, auto& gradients, auto& losses) {
            const auto workspace = task->workspace();
            const auto i = static_cast<std::size_t>(job);
            gradients[i].resize(weights.size());
            for (int repeat = 0; repeat < 3; repeat++)
                losses[i] = task->gradient(weights, job % 4, job, {job, 33 + job, 5 * job}, gradients[i], *workspace);
        };
        backwards.run(jobs, [&](int job) { compute(job, alone, losses_alone); });
        threads.run(jobs, [&](int job) { compute(job, together, losses_together); });
        CHECK(alone == together);
        CHECK(losses_alone == losses_together);
        CHECK(alone[0] != alone[1]);
    }
}

TEST_CASE("sample ids are those of the dataset, without the validation samples") {
    Scenario scenario = small_scenario("softmax");
    scenario.data.validation = 0.25;
    const auto task = make_task(scenario);
    std::set<std::int32_t> seen;
    for (std::int64_t first = 0; first < 300; first += 30)
        for (std::int32_t id : task->sample_ids(static_cast<WorkerId>(first / 30 % 4), {2, 30, first})) seen.insert(id);
    CHECK(seen.size() == 300);
    CHECK(*seen.rbegin() >= 300);
    CHECK(*seen.rbegin() < 400);
}

TEST_CASE("without validation or test samples their figures are empty") {
    Scenario scenario = small_scenario("softmax");
    scenario.data.test_samples = 0;
    const auto task = make_task(scenario);
    Backwards parallel;
    CHECK(task->evaluate(initial(*task), parallel) == Metrics{});
}

TEST_CASE("seeds do what they are named for") {
    const auto first_gradient = [](const Scenario& scenario) {
        const auto task = make_task(scenario);
        std::vector<float> gradient(static_cast<std::size_t>(task->parameters()));
        task->gradient(initial(*task), 0, 0, {0, 16, 0}, gradient, *task->workspace());
        return gradient;
    };
    Scenario a = small_scenario("mlp"), init = a, data = a, timing = a;
    init.seeds.init = 2;
    data.seeds.data = 2;
    timing.seeds.timing = 2;
    CHECK(initial(*make_task(init)) != initial(*make_task(a)));
    CHECK(initial(*make_task(data)) == initial(*make_task(a)));
    CHECK(first_gradient(data) != first_gradient(a));
    CHECK(first_gradient(timing) == first_gradient(a));
}

}  // namespace rubato::learn
