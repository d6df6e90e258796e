// How drivers in real time carry out each action.
#include "exec/execution.hpp"

#include <stdexcept>
#include <thread>

namespace rubato::exec {

void Execution::pad(Time begin, double seconds) const {
    std::this_thread::sleep_until(begin_ + std::chrono::nanoseconds(begin + static_cast<Time>(seconds * 1e9)));
}

// What a gradient is to take; less than 0: as long as it takes.
double Execution::gradient_seconds(Time begin, RoleId role, const Compute& action) const {
    if (!input_.emulated || !input_.emulated->compute_s) return -1;
    return input_.emulated->compute_s(role, action.worker_seq, action.batch.count, begin) *
           input_.emulated->slow[static_cast<std::size_t>(role - 1)];
}

void Execution::pad_gradient(Time begin, RoleId role, double seconds) const {
    if (!input_.emulated) return;
    if (seconds < 0)
        seconds =
            static_cast<double>(clock() - begin) * 1e-9 * input_.emulated->slow[static_cast<std::size_t>(role - 1)];
    pad(begin, seconds);
}

// Of a gradient that is to take `seconds`, each bucket is to take its part.
void Execution::tell_layers(Seat& seat, const Compute& action, BufferId gradient, Time begin, double seconds) {
    std::size_t next = 0;
    Time before = begin;
    seat.workspace->on_layers = [this, &seat, &action, gradient, begin, seconds, next,
                                 before](std::int64_t first) mutable {
        for (; next + 1 < buckets_.size() && buckets_[next].range.first >= first; ++next) {
            if (seconds >= 0) pad(begin, seconds * buckets_[next].end);
            const Time now = clock();
            mail(seat.id, LayerReady{action.id, gradient, buckets_[next].range.first, std::exchange(before, now), now});
        }
    };
}

void Execution::act(Seat& seat, const Send& action) {
    const bool counts = !among_shards(seat.id, action.to);
    // A worker that passes weights on has no server's costs.
    const bool answers = action.channel == Channel::weights && serves(seat.id) && counts;
    if (action.payload.buffer != no_buffer) {
        std::lock_guard lock(report_mutex_);
        const auto bytes = payload_bytes(action.channel, action.payload);
        if (counts && serves(seat.id)) totals(seat.id).bytes_out += bytes;
        if (counts && serves(action.to)) totals(action.to).bytes_in += bytes;
        report_.bytes += bytes;
        if (answers) ++totals(seat.id).replies;
    }
    const double pull_s = answers && input_.emulated ? input_.emulated->of(seat.id).pull_s : 0;
    if (pull_s <= 0) return dispatch(seat, action);
    office_.retain(action.payload.buffer);
    give(*seat.apply_lane, [this, &seat, action, pull_s] {
        const Time begin = clock();
        pad(begin, pull_s);
        const Time end = clock();
        {
            std::lock_guard lock(report_mutex_);
            totals(seat.id).pull_ns += end - begin;
        }
        later(seat, [this, &seat, action, end] {
            dispatch(seat, action);
            office_.release(action.payload.buffer, end);
        });
    });
}

void Execution::dispatch(Seat& seat, const Send& action) {
    const Time sent = clock();
    if (!links_ || among_shards(seat.id, action.to)) return transmit(seat, action, sent);
    const bool payload = action.payload.buffer != no_buffer;
    if (payload) office_.retain(action.payload.buffer);
    ++working_;
    links_->carry(seat.id, action.to, payload ? payload_bytes(action.channel, action.payload) : 0,
                  [this, &seat, action, sent, payload] {
                      later(seat, [this, &seat, action, sent, payload] {
                          transmit(seat, action, sent);
                          if (payload) office_.release(action.payload.buffer, clock());
                          --working_;
                      });
                  });
}

void Execution::act(Seat& seat, const Compute& action) {
    office_.retain(action.weights);
    const BufferId gradient = office_.allocate();
    // Looked up here, so that the lane needs no lock.
    const auto weights = office_.data(action.weights);
    const auto into = office_.data(gradient);
    give(*seat.compute_lane, [this, &seat, action, gradient, weights, into] {
        const Time begin = clock();
        if (seat.cancel == action.id) {
            office_.release(gradient, begin);
            office_.release(action.weights, begin);
            return mail(seat.id, Cancelled{action.id, begin});
        }
        const double seconds = gradient_seconds(begin, seat.id, action);
        if (action.by_layers) tell_layers(seat, action, gradient, begin, seconds);
        const double loss =
            input_.task->gradient(weights, seat.id - 1, action.worker_seq, action.batch, into, *seat.workspace);
        seat.workspace->on_layers = nullptr;
        pad_gradient(begin, seat.id, seconds);
        const Time end = clock();
        office_.release(action.weights, end);
        span(seat.id, "compute", begin, end);
        mail(seat.id, GradientReady{action.id, gradient, begin, end, loss});
    });
}

// A kernel that runs is not interrupted: it then ends in GradientReady.
void Execution::act(Seat& seat, const Cancel& action) {
    seat.cancel = action.target;
}

void Execution::act(Seat& seat, const LocalStep& action) {
    BufferId local = action.local;
    if (action.steps() && local == no_buffer) local = office_.allocate();
    const auto job = office_.locked([&](auto& pool) { return learn::resolve(action, local, pool); });
    give(*seat.compute_lane, [this, &seat, job, done = Stepped{action.id, local, action.sum}] {
        const Time begin = clock();
        learn::run(job);
        span(seat.id, "compute", begin, clock());
        mail(seat.id, done);
    });
}

void Execution::act(Seat& seat, const Place& action) {
    const BufferId whole = action.whole == no_buffer ? office_.allocate() : action.whole;
    for (const BufferId held : {action.weights, action.part.buffer})
        if (held != no_buffer) office_.retain(held);
    const auto job = office_.locked([&](auto& pool) { return learn::resolve(action, whole, pool); });
    give(*(seat.apply_lane ? seat.apply_lane : seat.compute_lane), [this, &seat, job, action, whole] {
        learn::run(job);
        const Time end = clock();
        for (const BufferId held : {action.weights, action.part.buffer})
            if (held != no_buffer) office_.release(held, end);
        mail(seat.id, Placed{action.id, whole});
    });
}

void Execution::act(Seat& seat, const Mix& action) {
    // Where nobody else holds what is replaced, in its place.
    const BufferId out = action.out == no_buffer ? office_.allocate() : office_.writable(action.out);
    for (std::int32_t i = 0; i < action.term_count; ++i)
        if (action.terms[i].buffer != action.out) office_.retain(action.terms[i].buffer);
    const auto job = office_.locked([&](auto& pool) { return learn::resolve(action, out, pool); });
    if (seat.id == 0 && (action.work == Mix::Work::update || action.work == Mix::Work::adopt)) seat.weights = out;
    give(*(seat.compute_lane && !action.beside ? seat.compute_lane : seat.apply_lane), [this, &seat, job, action, out] {
        const Time begin = clock();
        learn::run(job);
        const bool update = action.work == Mix::Work::update;
        if (input_.emulated && (action.work == Mix::Work::sum || update)) {
            const auto& its = input_.emulated->of(seat.id);
            pad(begin, update ? its.update_s : its.push_s);
        }
        const Time end = clock();
        for (std::int32_t i = 0; i < action.term_count; ++i)
            if (action.terms[i].buffer != action.out) office_.release(action.terms[i].buffer, end);
        if (action.out != no_buffer && out != action.out) office_.release(action.out, end);
        if (serves(seat.id) && (action.work == Mix::Work::sum || update)) {
            std::lock_guard lock(report_mutex_);
            auto& its = totals(seat.id);
            ++(update ? its.updates : its.pushes);
            (update ? its.update_ns : its.push_ns) += end - begin;
        }
        span(seat.id, "apply", begin, end);
        mail(seat.id, Mixed{action.id, out});
    });
}

void Execution::add_up(Seat&, const SumAll&) {
    throw std::logic_error("backend " + report_.backend + " has no library that sums");
}

void Execution::act(Seat& seat, const Fold& action) {
    const bool first = action.accumulator == no_buffer;
    const BufferId accumulator = first ? office_.allocate() : action.accumulator;
    const auto job =
        office_.locked([&](auto& pool) { return learn::resolve(action, accumulator, pool, office_.kept()); });
    give(*seat.apply_lane, [this, &seat, job, accumulator, id = action.id] {
        const Time begin = clock();
        // A relay's sums need nothing of the optimizer, which belongs to the server.
        seat.id == 0 ? learn::run(job, optimizer_) : learn::run(job);
        if (input_.emulated) pad(begin, input_.emulated->of(seat.id).push_s);
        const Time end = clock();
        if (serves(seat.id)) {
            std::lock_guard lock(report_mutex_);
            ++totals(seat.id).pushes;
            totals(seat.id).push_ns += end - begin;
        }
        span(seat.id, "apply", begin, end);
        mail(seat.id, Folded{id, accumulator});
    });
}

void Execution::act(Seat& seat, const Update& action) {
    std::int64_t pushes = 0;
    for (const auto& part : seat.actions.parts) pushes += part.pushes;
    const BufferId to = office_.writable(action.weights);
    const bool own = !serves(seat.id);
    learn::Optimizer& optimizer = own ? own_optimizer(seat) : optimizer_;
    auto job = office_.locked([&](auto& pool) {
        return learn::resolve(action, seat.actions, pool.data(action.weights), pool.data(to), pool, office_.kept(),
                              optimizer);
    });
    if (own) return take_own_step(seat, action, to, std::move(job));
    give(*seat.apply_lane, [this, &seat, job = std::move(job), to, action, pushes] {
        const Time begin = clock();
        learn::run(job, optimizer_);
        if (input_.emulated) {
            const auto& its = input_.emulated->of(seat.id);
            pad(begin, static_cast<double>(pushes) * its.push_s + action.step_count * its.update_s);
        }
        const Time end = clock();
        if (to != action.weights) office_.release(action.weights, end);
        {
            std::lock_guard lock(report_mutex_);
            auto& its = totals(seat.id);
            its.pushes += pushes;
            its.updates += action.step_count;
            its.update_ns += end - begin;
        }
        span(seat.id, "apply", begin, end);
        mail(seat.id, Applied{action.id, to});
    });
}

learn::Optimizer& Execution::own_optimizer(Seat& seat) {
    if (seat.optimizer) return *seat.optimizer;
    seat.optimizer =
        std::make_unique<learn::Optimizer>(learn::own_optimizer(scenario_.optimizer, input_.task->parameters()));
    if (input_.resume && needs_.replicas) seat.optimizer->restore(input_.resume->velocity);
    return *seat.optimizer;
}

void Execution::take_own_step(Seat& seat, const Update& action, BufferId to, learn::UpdateJob job) {
    give(*seat.compute_lane, [this, &seat, job = std::move(job), to, action] {
        const Time begin = clock();
        learn::run(job, *seat.optimizer);
        const Time end = clock();
        if (to != action.weights) office_.release(action.weights, end);
        span(seat.id, "compute", begin, end);
        mail(seat.id, Applied{action.id, to});
    });
}

// An evaluation takes cores from the workers, so by default it waits until they are done.
void Execution::act(Seat& seat, const Evaluate& action) {
    office_.retain(action.weights);
    evaluations_.push_back(action);
    if (scenario_.evaluate.mode != EvaluateSpec::Mode::deferred)
        return give(*evaluate_lane_, [this, role = seat.id, action] { evaluate_now(role, action); });
    {
        std::lock_guard lock(deferred_mutex_);
        deferred_.emplace_back(seat.id, action);
    }
    if (others_finished()) run_deferred();
}

void Execution::run_deferred() {
    std::lock_guard lock(deferred_mutex_);
    for (const auto& [role, action] : deferred_)
        give(*evaluate_lane_, [this, r = role, a = action] { evaluate_now(r, a); });
    deferred_.clear();
}

void Execution::evaluate_now(RoleId role, const Evaluate& action) {
    const Time begin = clock();
    const auto metrics = input_.task->evaluate(office_.data(action.weights), *evaluators_);
    const Time end = clock();
    {
        std::lock_guard lock(report_mutex_);
        server_.evaluate_ns += end - begin;
    }
    span(role, "evaluate", begin, end);
    mail(role, Evaluated{action.id, metrics});
}

void Execution::act(Seat& seat, const Release& action) {
    office_.release(action.buffer, seat.now);
}

void Execution::act(Seat& seat, const SetTimer& action) {
    seat.timers.emplace_back(action.at_ns, action.id);
}

void Execution::act(Seat& seat, const Finish& action) {
    seat.finished = true;
    if (seat.id != 0) return;
    std::lock_guard lock(report_mutex_);
    report_.status = action.status;
    report_.detail = ending_text(action);
}

void Execution::act(Seat&, const Keep& action) {
    office_.locked([&](auto&) { office_.kept().keep(action); });
}

// What looked at it is done.
void Execution::act(Seat&, const Forget& action) {
    office_.locked([&](auto&) { office_.kept().forget(action.version); });
}

}  // namespace rubato::exec
