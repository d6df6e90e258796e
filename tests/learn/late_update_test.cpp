#include "learn/late_update.hpp"

#include <doctest/doctest.h>

#include <algorithm>
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

OptimizerSpec momentum() {
    OptimizerSpec spec;
    spec.name = "momentum";
    spec.momentum = 0.5;
    spec.weight_decay = 0.125;
    return spec;
}

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

TEST_CASE("late update: works in place where the driver says so, and one that follows finds its result") {
    Bench it({}, {1});
    it.late.defer(it.update, it.actions, it.old_version);
    it.late.defer(it.update, it.actions, it.old_version);
    it.buffers.release(it.gradients[0]);
    it.late.run();
    CHECK(it.holds(it.old_version, std::vector(it.size, 0.5f)));
}

TEST_CASE("late update: fetching what is read next changes nothing, be it the new version itself") {
    for (const bool own : {false, true}) {
        Bench it({}, {1});
        const auto expected = it.expected({});
        const BufferId to = it.buffers.allocate();
        it.late.defer(it.update, it.actions, to);
        it.buffers.release(it.gradients[0]);
        it.late.run(own ? to : it.old_version);
        CHECK(it.holds(to, expected));
        CHECK(it.holds(it.old_version, std::vector(it.size, 1.0f)));
    }
}
