// A learning task: a model on a dataset with a sampling mode. The one door between drivers and gradient kernels.
#pragma once

#include "core/event.hpp"
#include "core/scenario.hpp"
#include "learn/error.hpp"

#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace rubato::learn {

class Factors;

/// Scratch memory of one gradient in computation; one a thread, made by Task::workspace, reused from call to call.
class Workspace {
public:
    virtual ~Workspace() = default;
    /// Where somebody wants to know: called by gradient(), on its thread, each time that elements from `first` on to
    /// the end do not change any more, but for the last time, which is its end.
    std::function<void(std::int64_t first)> on_layers;
};

/// Runs n independent jobs 0..n-1, perhaps at once, and returns when all are done.
class Parallel {
public:
    virtual ~Parallel() = default;
    virtual void run(int jobs, const std::function<void(int)>& job) = 0;
};

/// Immutable after construction; every const member may be called from several threads, each with its own workspace.
class Task {
public:
    virtual ~Task() = default;

    /// Number of elements of weights and gradients (float32).
    virtual std::int64_t parameters() const = 0;
    /// Training samples of one epoch (validation samples left out).
    virtual std::int64_t samples() const = 0;
    virtual std::unique_ptr<Workspace> workspace() const = 0;

    /// Version 0 of the weights, a pure function of seeds.init. weights: [parameters].
    virtual void initialize(std::span<float> weights) const = 0;

    /// Mean gradient over the batch that `worker` was dealt as its worker_seq-th. Returns the mean loss.
    /// weights, gradient: [parameters]. The same bits for the same arguments, whatever thread calls.
    virtual double gradient(std::span<const float> weights, WorkerId worker, std::int64_t worker_seq,
                            const Batch& batch, std::span<float> gradient, Workspace& workspace) const = 0;

    /// Whether a gradient over so many samples is smaller as factors.
    virtual bool has_factors(int) const { return false; }
    /// The same where it is: multiplied out, they have the bits of the above.
    virtual double gradient(std::span<const float>, WorkerId, std::int64_t, const Batch&, Factors&, Workspace&) const {
        throw std::logic_error("a task without factors was asked for them");
    }

    /// Figures over the validation and test samples; the same bits whatever `parallel` does.
    virtual Metrics evaluate(std::span<const float> weights, Parallel& parallel) const = 0;

    /// Sample ids of a batch, in order (empty for analytic models).
    virtual std::vector<std::int32_t> sample_ids(WorkerId worker, const Batch& batch) const = 0;
};

/// Throws learn::InputError (one line: file, what was expected, what was found) where data are missing or broken.
std::unique_ptr<Task> make_task(const Scenario& scenario);

/// Number of training samples of one epoch, and of elements of the model, without keeping the data in memory.
struct TaskSize {
    std::int64_t samples = 0;               ///< training samples of one epoch
    std::int64_t parameters = 0;            ///< 0 where there is no model
    double flops_per_sample = 0;            ///< forward and backward
    std::vector<std::int64_t> layers = {};  ///< their parameters, in the order of the weights
};
TaskSize task_size(const Scenario& scenario);

}  // namespace rubato::learn
