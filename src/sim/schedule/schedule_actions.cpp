// How a run by schedule carries out what the server asks for.
#include "sim/schedule/schedule_run.hpp"

#include <stdexcept>

namespace rubato::sim {

void ScheduleRun::act(const Send& action) {
    due_.push_back(Taken{action.id, now_});
    if (const auto* weights = std::get_if<Weights>(&action.message)) {
        ++report_.messages;
        ++books_.replies;
        report_.bytes += scenario_.cost.pull_bytes;
        books_.bytes_out += scenario_.cost.pull_bytes;
        return dealt(action.to, weights->version, weights->batch);
    }
    ++report_.control_messages;
    if (const auto* proceed = std::get_if<Proceed>(&action.message))
        return dealt(action.to, proceed->version, proceed->batch);
    if (!std::holds_alternative<Stop>(action.message))
        throw std::logic_error("the server sends a message that a schedule does not know");
    stopping_ = true;
}

void ScheduleRun::act(const Fold& action) {
    const bool first = action.accumulator == no_buffer;
    const BufferId accumulator = first ? buffers_.allocate() : action.accumulator;
    if (input_.task) learn::run(learn::resolve(action, accumulator, buffers_, kept_), *optimizer_);
    ++books_.pushes;
    due_.push_back(Folded{action.id, accumulator});
}

void ScheduleRun::act(const Update& action) {
    // Gradients that are still to be computed go on reading the old version.
    const bool in_place = buffers_.sole(action.weights);
    const BufferId to = in_place ? action.weights : buffers_.allocate();
    if (input_.task)
        learn::run(learn::resolve(action, actions_, buffers_.data(action.weights), buffers_.data(to), buffers_, kept_,
                                  *optimizer_),
                   *optimizer_);
    if (!in_place) buffers_.release(action.weights);
    for (const auto& part : actions_.parts) books_.pushes += part.pushes;
    books_.updates += action.step_count;
    steps_ = action.step_count;
    due_.push_back(Applied{action.id, to});
}

// Takes no time.
void ScheduleRun::act(const Evaluate& action) {
    Metrics metrics;
    if (input_.task) metrics = input_.task->evaluate(buffers_.data(action.weights), *pool_);
    due_.push_back(Evaluated{action.id, metrics});
}

void ScheduleRun::act(const SetTimer& action) {
    timer_ = action;
}

void ScheduleRun::act(const Finish& action) {
    finished_ = true;
    report_.status = action.status;
    report_.detail = ending_text(action);
}

}  // namespace rubato::sim
