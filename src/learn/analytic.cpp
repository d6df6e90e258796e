#include "learn/analytic.hpp"

#include "learn/random.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::learn {
namespace {

class Analytic : public Task {
public:
    Analytic(const Scenario& scenario, std::int64_t samples)
        : spec_(scenario.model), lambda_(scenario.lambda()), seed_(scenario.seeds.data), samples_(samples) {}

    std::int64_t parameters() const override { return spec_.dimension; }
    std::int64_t samples() const override { return samples_; }
    std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Workspace>(); }
    void initialize(std::span<float> weights) const override { std::ranges::fill(weights, 0.0f); }
    Metrics evaluate(std::span<const float>, Parallel&) const override { return {}; }
    std::vector<std::int32_t> sample_ids(WorkerId, const Batch&) const override { return {}; }

protected:
    ModelSpec spec_;
    int lambda_;
    std::uint64_t seed_;
    std::int64_t samples_;
};

class Constant : public Analytic {
public:
    using Analytic::Analytic;

    double gradient(std::span<const float> weights, WorkerId, std::int64_t, const Batch&, std::span<float> gradient,
                    Workspace&) const override {
        std::ranges::fill(gradient, static_cast<float>(spec_.value));
        double sum = 0;
        for (float w : weights) sum += w;
        return spec_.value * sum;
    }

    Metrics evaluate(std::span<const float>, Parallel&) const override {
        Metrics metrics;
        metrics.gradient_norm = std::abs(spec_.value) * std::sqrt(static_cast<double>(spec_.dimension));
        return metrics;
    }
};

class Tagged : public Analytic {
public:
    using Analytic::Analytic;

    double gradient(std::span<const float>, WorkerId worker, std::int64_t worker_seq, const Batch&,
                    std::span<float> gradient, Workspace&) const override {
        std::ranges::fill(gradient, 0.0f);
        const auto tag = static_cast<float>(worker_seq + 1);
        if (gradient.size() == 1) {
            gradient[0] = tag;
            return 0;
        }
        const std::size_t pairs = std::min(static_cast<std::size_t>(lambda_), gradient.size() / 2);
        for (std::size_t i = 2 * (static_cast<std::size_t>(worker) % pairs); i < gradient.size(); i += 2 * pairs) {
            gradient[i] = 1;
            if (i + 1 < gradient.size()) gradient[i + 1] = tag;
        }
        return 0;
    }
};

class Quadratic : public Analytic {
public:
    Quadratic(const Scenario& scenario, std::int64_t samples) : Analytic(scenario, samples) {
        const double log_ratio =
            spec_.dimension > 1 ? log_portable(spec_.conditioning) / static_cast<double>(spec_.dimension - 1) : 0;
        for (std::int64_t i = 0; i < spec_.dimension; i++)
            curvatures_.push_back(exp_portable(log_ratio * static_cast<double>(i)));
    }

    void initialize(std::span<float> weights) const override { std::ranges::fill(weights, 1.0f); }

    double gradient(std::span<const float> weights, WorkerId worker, std::int64_t worker_seq, const Batch& batch,
                    std::span<float> gradient, Workspace&) const override {
        for (std::size_t i = 0; i < gradient.size(); i++) gradient[i] = static_cast<float>(curvatures_[i] * weights[i]);
        if (spec_.noise > 0) {
            Stream stream(seed_, static_cast<std::uint32_t>(worker), Purpose::noise_gradient,
                          static_cast<std::uint64_t>(worker_seq));
            const double deviation = spec_.noise / std::sqrt(static_cast<double>(std::max(batch.count, 1)));
            for (std::size_t i = 0; i < gradient.size(); i++)
                gradient[i] = static_cast<float>(curvatures_[i] * weights[i] + deviation * stream.normal());
        }
        return value(weights);
    }

    Metrics evaluate(std::span<const float> weights, Parallel&) const override {
        double squares = 0;
        for (std::size_t i = 0; i < weights.size(); i++) {
            const double slope = curvatures_[i] * weights[i];
            squares += slope * slope;
        }
        Metrics metrics;
        metrics.gradient_norm = std::sqrt(squares);
        metrics.suboptimality = value(weights);
        return metrics;
    }

private:
    double value(std::span<const float> weights) const {
        double sum = 0;
        for (std::size_t i = 0; i < weights.size(); i++) sum += curvatures_[i] * weights[i] * weights[i];
        return sum / 2;
    }

    std::vector<double> curvatures_;
};

}  // namespace

bool is_analytic(const std::string& model) {
    return model == "constant" || model == "tagged" || model == "quadratic";
}

std::unique_ptr<Task> make_analytic(const Scenario& scenario, std::int64_t samples) {
    const std::string& name = scenario.model.name;
    if (name == "constant") return std::make_unique<Constant>(scenario, samples);
    if (name == "tagged") return std::make_unique<Tagged>(scenario, samples);
    if (name == "quadratic") return std::make_unique<Quadratic>(scenario, samples);
    return nullptr;
}

}  // namespace rubato::learn
