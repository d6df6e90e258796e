// How the local backend carries out each action.
#include "exec/local_run.hpp"

namespace rubato::exec {

void LocalRun::act(Seat& seat, const Send& action) {
    if (action.payload.buffer != no_buffer) {
        std::lock_guard lock(report_mutex_);
        auto& bytes = seat.id == 0 ? server_.bytes_out : server_.bytes_in;
        bytes += action.payload.count * static_cast<std::int64_t>(sizeof(float));
        if (seat.id == 0) ++server_.replies;
    }
    office_.send(seat.id, action, seat.now);
}

void LocalRun::act(Seat& seat, const Compute& action) {
    office_.retain(action.weights);
    const BufferId gradient = office_.allocate();
    seat.compute = action.id;
    give(*seat.compute_lane, [this, &seat, action, gradient] {
        const Time begin = clock();
        if (seat.cancel == action.id) {
            office_.release(gradient, begin);
            office_.release(action.weights, begin);
            return mail(seat.id, Cancelled{action.id, begin});
        }
        const double loss = input_.task->gradient(office_.data(action.weights), seat.id - 1, action.worker_seq,
                                                  action.batch, office_.data(gradient), *seat.workspace);
        const Time end = clock();
        office_.release(action.weights, end);
        span(seat.id, "compute", begin, end);
        mail(seat.id, GradientReady{action.id, gradient, begin, end, loss});
    });
}

// A kernel that runs is not interrupted: it then ends in GradientReady.
void LocalRun::act(Seat& seat, const Cancel& action) {
    seat.cancel = action.target;
}

void LocalRun::act(Seat& seat, const Fold& action) {
    const bool first = action.accumulator == no_buffer;
    const BufferId accumulator = first ? office_.allocate() : action.accumulator;
    const learn::FoldJob job{office_.data(accumulator), office_.data(action.gradient),
                             static_cast<float>(action.factor), first};
    give(*seat.apply_lane, [this, &seat, job, accumulator, id = action.id] {
        const Time begin = clock();
        learn::run(job);
        const Time end = clock();
        {
            std::lock_guard lock(report_mutex_);
            ++server_.pushes;
            server_.push_ns += end - begin;
        }
        span(seat.id, "apply", begin, end);
        mail(seat.id, Folded{id, accumulator});
    });
}

void LocalRun::act(Seat& seat, const Update& action) {
    std::int64_t pushes = 0;
    for (const auto& part : seat.actions.parts) pushes += part.pushes;
    const BufferId to = office_.writable(action.weights);
    auto job = office_.locked([&](auto& pool) { return learn::resolve(action, seat.actions, to, pool); });
    give(*seat.apply_lane, [this, &seat, job = std::move(job), to, action, pushes] {
        const Time begin = clock();
        learn::run(job, optimizer_);
        const Time end = clock();
        if (to != action.weights) office_.release(action.weights, end);
        {
            std::lock_guard lock(report_mutex_);
            server_.pushes += pushes;
            server_.updates += action.step_count;
            server_.update_ns += end - begin;
        }
        span(seat.id, "apply", begin, end);
        mail(seat.id, Applied{action.id, to});
    });
}

// An evaluation takes cores from the workers, so it waits until they are done. Where a target depends on it, it holds
// the server up instead: the run then ends at the evaluation that reaches the target, and no backlog builds up.
void LocalRun::act(Seat& seat, const Evaluate& action) {
    office_.retain(action.weights);
    if (!defer_)
        return give(*seat.apply_lane, [this, role = seat.id, action] {
            const Time spent = evaluate_now(role, action);
            std::lock_guard lock(report_mutex_);
            server_.evaluate_ns += spent;
        });
    {
        std::lock_guard lock(deferred_mutex_);
        deferred_.emplace_back(seat.id, action);
        if (finished_ < static_cast<int>(seats_.size()) - 1) return;
    }
    run_deferred();
}

void LocalRun::run_deferred() {
    std::lock_guard lock(deferred_mutex_);
    for (const auto& [role, action] : deferred_)
        give(*evaluate_lane_, [this, r = role, a = action] { evaluate_now(r, a); });
    deferred_.clear();
}

Time LocalRun::evaluate_now(RoleId role, const Evaluate& action) {
    const Time begin = clock();
    const auto metrics = input_.task->evaluate(office_.data(action.weights), *evaluators_);
    const Time end = clock();
    office_.release(action.weights, end);
    mail(role, Evaluated{action.id, metrics});
    return end - begin;
}

void LocalRun::act(Seat& seat, const Release& action) {
    office_.release(action.buffer, seat.now);
}

void LocalRun::act(Seat& seat, const SetTimer& action) {
    std::lock_guard lock(seat.mailbox_mutex);
    seat.timers.emplace_back(action.at_ns, action.id);
}

void LocalRun::act(Seat& seat, const Finish& action) {
    seat.finished = true;
    if (seat.id != 0) return;
    std::lock_guard lock(report_mutex_);
    report_.status = action.status;
    report_.detail = ending_text(action);
}

}  // namespace rubato::exec
