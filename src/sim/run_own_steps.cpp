// Steps that workers take with optimizers of their own.
#include "sim/after.hpp"
#include "sim/run.hpp"

#include "learn/apply.hpp"
#include "trace/checkpoint.hpp"

namespace rubato::sim {

// A part of what it takes for all elements, where replicas have parts at all.
double Run::part_of_replica(RoleId role, std::int64_t count) const {
    if (serves(role) || !needs_.replicas || count == 0) return 1;
    return static_cast<double>(count) / static_cast<double>(elements_);
}

learn::Optimizer& Run::own_optimizer(RoleId role) {
    const auto found = own_optimizers_.find(role);
    if (found != own_optimizers_.end()) return found->second;
    auto& own = own_optimizers_.emplace(role, learn::own_optimizer(scenario_.optimizer, input_.task->parameters()))
                    .first->second;
    if (input_.resume && needs_.replicas) own.restore(input_.resume->velocity);
    return own;
}

void Run::act(RoleId role, Time, const KeepState& action) {
    if (!input_.task || input_.checkpoints == nullptr) return;
    const auto state = own_optimizer(role).state();
    kept_states_[action.version].assign(state.begin(), state.end());
}

// What it takes is part of the seconds of a gradient, but where a replica is all that there is.
void Run::step_of_worker(RoleId role, Time now, const Update& action) {
    if (late_) late_->run();  // it holds what it has not run
    const bool in_place = buffers_.sole(action.weights);
    const BufferId to = in_place ? action.weights : buffers_.allocate();
    if (input_.task) {
        learn::Optimizer& own = own_optimizer(role);
        learn::run(
            learn::resolve(action, actions_, buffers_.data(action.weights), buffers_.data(to), buffers_, kept_, own),
            own);
    }
    if (!in_place) release(action.weights, now);
    Time end = now;
    if (needs_.replicas) end = after(now, seconds_of(role).update * part_of_replica(role, action.count));
    if (end > now) span(role, "apply", now, end);
    complete(role, end, Applied{action.id, to});
}

}  // namespace rubato::sim
