// A chain of late updates, for tests.
#pragma once

#include "helpers.hpp"
#include "learn/late_update.hpp"

#include <algorithm>
#include <vector>

namespace rubato::learn {

inline OptimizerSpec momentum() {
    OptimizerSpec spec;
    spec.name = "momentum";
    spec.momentum = 0.5;
    spec.weight_decay = 0.125;
    return spec;
}

/// Asynchronous training in small: each gradient has been computed three versions ago, and makes a version of its own.
struct Chain {
    static constexpr std::int64_t size = 40000;
    BufferPool buffers{size};
    Kept kept{buffers};
    Optimizer optimizer;
    LateUpdate late;
    std::vector<BufferId> versions;
    enum class Gradients { elements, factors, multiplied_out } gradients = Gradients::elements;

    explicit Chain(const OptimizerSpec& spec, std::size_t bytes = LateUpdate::most_bytes)
        : optimizer(spec, size, 2), late(buffers, optimizer, kept, bytes) {
        versions.push_back(buffers.allocate());
        fill(versions[0], 0);
        kept.keep(0, versions[0]);
    }
    void fill(BufferId buffer, std::int64_t seed) {
        auto values = buffers.data(buffer);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = 0.01f * static_cast<float>((static_cast<std::int64_t>(i) * 7 + seed * 13) % 31 - 15);
    }
    /// folds: so many gradients are summed up first.
    void add(int folds = 0) {
        const auto version = static_cast<Version>(versions.size()) - 1;
        add(versions, 0, 0, std::max<Version>(0, version - 2), folds);
        kept.keep(version + 1, versions.back());
    }
    /// The next version of a part of the weights, count 0: of all.
    void add(std::vector<BufferId>& of, std::int64_t first, std::int64_t count, Version read, int folds = 0) {
        const auto version = static_cast<Version>(of.size()) - 1;
        BufferId sum = no_buffer;
        for (int i = 0; i < folds; ++i) {
            Fold fold{0, sum, gradient(version + 100 * i), 0.5, of.back(), version, read, i % 2};
            const BufferId accumulator = sum == no_buffer ? buffers.allocate() : sum;
            if (optimizer.looks_at_weights()) late.run();
            run(resolve(fold, accumulator, buffers, kept), optimizer);
            buffers.release(fold.gradient);
            sum = accumulator;
        }
        const bool folded = sum != no_buffer;
        if (!folded) sum = gradient(first + version + 1);
        Actions actions;
        actions.parts.push_back({sum, 1, read, 1, folded ? -1 : static_cast<WorkerId>(version % 2)});
        actions.steps.push_back({0, 1, 0.5});
        Update update{1, of.back(), version, 0, 1};
        update.first = first;
        update.count = count;
        of.push_back(buffers.allocate());
        late.defer(update, actions, of.back());
        buffers.release(sum);
    }
    BufferId gradient(std::int64_t seed) {
        const BufferId buffer = buffers.allocate();
        if (gradients == Gradients::elements)
            fill(buffer, seed);
        else
            fill(buffers.factors(buffer), seed);
        if (gradients == Gradients::multiplied_out) buffers.data(buffer);
        return buffer;
    }
    /// Of [39][1000] weights and 1000 others.
    static void fill(Factors& factors, std::int64_t seed) {
        const auto slope = noise(5, static_cast<std::uint64_t>(seed), 2 * 39);
        const auto input = noise(6, static_cast<std::uint64_t>(seed), 2 * 1000);
        std::ranges::copy(noise(7, static_cast<std::uint64_t>(seed), 1000), factors.rest(1000).begin());
        factors.set(slope.data(), input.data(), 2, 39, 1000);
    }
    std::vector<float> values(Version version) {
        const auto data = buffers.data(versions[static_cast<std::size_t>(version)]);
        return {data.begin(), data.end()};
    }
};

inline std::vector<OptimizerSpec> optimizers_and_rules() {
    std::vector<OptimizerSpec> specs{{}, momentum()};
    for (const char* name : {"nesterov", "adagrad", "adam"}) (specs.emplace_back()).name = name;
    for (const auto kind : {StalenessRule::Kind::delay_compensation, StalenessRule::Kind::gap_aware}) {
        auto& rule = specs.emplace_back(momentum()).staleness_rule;
        rule.kind = kind;
        rule.strength = 0.5;
        rule.decay = 0.5;
        rule.adaptive = kind == StalenessRule::Kind::delay_compensation;
        rule.mean_square_by_worker = rule.adaptive;
    }
    return specs;
}

}  // namespace rubato::learn
