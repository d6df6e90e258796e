#include "learn/task.hpp"

#include "learn/analytic.hpp"
#include "learn/dataset.hpp"
#include "learn/network.hpp"
#include "learn/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <mutex>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace rubato::learn {
namespace {

constexpr int evaluation_chunk = 500;  // samples of one job; also fixes the order in which losses are summed

std::unique_ptr<Network> make_network(const Scenario& scenario, ImageShape shape, int classes) {
    const ModelSpec& model = scenario.model;
    if (model.name == "softmax") return make_dense(shape.size(), {}, classes);
    if (model.name == "mlp") {
        const std::vector<int> hidden = model.hidden.empty() ? std::vector<int>{128} : model.hidden;
        if (std::ranges::any_of(hidden, [](int width) { return width < 1; }))
            throw InputError(fmt::format("model.hidden: expected widths of at least 1, found {}", list(hidden)));
        return make_dense(shape.size(), hidden, classes);
    }
    if (model.name == "cnn") return make_cnn(shape, classes, scenario.threads_per_worker);
    throw InputError(fmt::format("model.name: expected constant, tagged, quadratic, softmax, mlp or cnn, found {}",
                                 model.name.empty() ? "none" : model.name));
}

void check_dimension(const ModelSpec& model) {
    if (model.dimension < 1)
        throw InputError(fmt::format("model.dimension: expected at least 1, found {}", model.dimension));
    if (model.name == "quadratic" && !(model.conditioning > 0))
        throw InputError(fmt::format("model.conditioning: expected more than 0, found {}", model.conditioning));
}

struct ClassifierWorkspace : Workspace {
    std::unique_ptr<Scratch> scratch;
    std::vector<std::int32_t> ids;
    std::vector<float> images;
    std::vector<std::uint8_t> labels;
};

/// A network on a dataset.
class Classifier : public Task {
public:
    explicit Classifier(const Scenario& scenario)
        : seed_(scenario.seeds.init),
          data_(load_dataset(scenario.data, scenario.seeds.data)),
          network_(make_network(scenario, data_.shape, data_.classes)),
          sampler_(scenario.data.sampling, scenario.seeds.data, data_.training_ids, scenario.lambda()) {}

    std::int64_t parameters() const override { return network_->parameters(); }
    std::int64_t samples() const override { return sampler_.samples(); }
    void initialize(std::span<float> weights) const override { network_->initialize(weights, seed_); }

    std::unique_ptr<Workspace> workspace() const override {
        auto workspace = std::make_unique<ClassifierWorkspace>();
        workspace->scratch = network_->scratch();
        return workspace;
    }

    double gradient(std::span<const float> weights, WorkerId worker, std::int64_t, const Batch& batch,
                    std::span<float> gradient, Workspace& workspace) const override {
        return gradient_into(gradient.data(), weights, worker, batch, workspace);
    }

    bool has_factors(int count) const override { return network_->has_factors(count); }
    double gradient(std::span<const float> weights, WorkerId worker, std::int64_t, const Batch& batch, Factors& factors,
                    Workspace& workspace) const override {
        return gradient_into(factors, weights, worker, batch, workspace);
    }

    Metrics evaluate(std::span<const float> weights, Parallel& parallel) const override {
        std::vector<std::int32_t> test(static_cast<std::size_t>(data_.test.count()));
        for (std::size_t i = 0; i < test.size(); i++) test[i] = static_cast<std::int32_t>(i);
        Metrics metrics;
        score(data_.train, data_.validation_ids, weights, parallel, metrics.valid_loss, metrics.valid_error);
        score(data_.test, test, weights, parallel, metrics.test_loss, metrics.test_error);
        return metrics;
    }

    std::vector<std::int32_t> sample_ids(WorkerId worker, const Batch& batch) const override {
        std::vector<std::int32_t> ids(static_cast<std::size_t>(batch.count));
        sampler_.sample_ids(worker, batch, ids);
        return ids;
    }

private:
    /// to: elements or factors.
    template <class To>
    double gradient_into(To&& to, std::span<const float> weights, WorkerId worker, const Batch& batch,
                         Workspace& workspace) const {
        assert(batch.count >= 1);
        auto& memory = static_cast<ClassifierWorkspace&>(workspace);
        memory.ids.resize(static_cast<std::size_t>(batch.count));
        sampler_.sample_ids(worker, batch, memory.ids);
        collect(data_.train, memory.ids, memory);
        memory.scratch->on_layers = &workspace.on_layers;
        return network_->gradient(weights.data(), memory.images.data(), memory.labels.data(), batch.count, to,
                                  *memory.scratch) /
               batch.count;
    }

    void collect(const Samples& samples, std::span<const std::int32_t> ids, ClassifierWorkspace& memory) const {
        memory.images.resize(ids.size() * static_cast<std::size_t>(data_.shape.size()));
        memory.labels.resize(ids.size());
        copy_images(data_, samples, ids, memory.images.data());
        for (std::size_t i = 0; i < ids.size(); i++)
            memory.labels[i] = samples.labels[static_cast<std::size_t>(ids[i])];
    }

    /// Leaves loss and error empty where there are no samples.
    void score(const Samples& samples, std::span<const std::int32_t> ids, std::span<const float> weights,
               Parallel& parallel, std::optional<double>& loss, std::optional<double>& error) const {
        if (ids.empty()) return;
        const int jobs = static_cast<int>((ids.size() + evaluation_chunk - 1) / evaluation_chunk);
        std::vector<Score> scores(static_cast<std::size_t>(jobs));
        parallel.run(jobs, [&](int job) {
            auto memory = borrow();
            const std::size_t first = static_cast<std::size_t>(job) * evaluation_chunk;
            const auto part = ids.subspan(first, std::min<std::size_t>(evaluation_chunk, ids.size() - first));
            collect(samples, part, *memory);
            scores[static_cast<std::size_t>(job)] =
                network_->score(weights.data(), memory->images.data(), memory->labels.data(),
                                static_cast<int>(part.size()), *memory->scratch);
            give_back(std::move(memory));
        });
        Score total;
        for (const Score& part : scores) {
            total.loss += part.loss;
            total.errors += part.errors;
        }
        loss = total.loss / static_cast<double>(ids.size());
        error = static_cast<double>(total.errors) / static_cast<double>(ids.size());
    }

    std::unique_ptr<ClassifierWorkspace> borrow() const {
        {
            const std::lock_guard lock(spare_mutex_);
            if (!spare_.empty()) {
                auto memory = std::move(spare_.back());
                spare_.pop_back();
                return memory;
            }
        }
        auto memory = std::make_unique<ClassifierWorkspace>();
        memory->scratch = network_->scratch();
        return memory;
    }

    void give_back(std::unique_ptr<ClassifierWorkspace> memory) const {
        const std::lock_guard lock(spare_mutex_);
        spare_.push_back(std::move(memory));
    }

    std::uint64_t seed_;
    Dataset data_;
    std::unique_ptr<Network> network_;
    Sampler sampler_;
    // Workspaces of evaluation jobs, which do not know their thread. Scratch memory: invisible in any result.
    mutable std::mutex spare_mutex_;
    mutable std::vector<std::unique_ptr<ClassifierWorkspace>> spare_;
};

/// Eigen's products take memory and give it back with each call. As the C library comes, it may hand some hundred
/// kilobytes to the system each time, which clears every page anew: a fifth of the time of a gradient.
void keep_freed_memory() {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20);  // its largest
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

}  // namespace

std::unique_ptr<Task> make_task(const Scenario& scenario) {
    if (!is_analytic(scenario.model.name)) {
        keep_freed_memory();
        return std::make_unique<Classifier>(scenario);
    }
    check_dimension(scenario.model);
    return make_analytic(scenario, task_size(scenario).samples);
}

TaskSize task_size(const Scenario& scenario) {
    const ModelSpec& model = scenario.model;
    const bool analytic = is_analytic(model.name);
    const bool real = model.gradients && !model.name.empty() && !analytic;
    const DatasetSize data = dataset_size(scenario.data, real);
    if (model.name.empty()) return {data.samples, 0, 0};
    if (analytic) {
        check_dimension(model);
        return {data.samples, model.dimension, 2.0 * static_cast<double>(model.dimension), {model.dimension}};
    }
    const auto network = make_network(scenario, data.shape, data.classes);
    return {data.samples, network->parameters(), network->flops_per_sample(), network->layers()};
}

}  // namespace rubato::learn
