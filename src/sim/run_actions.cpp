// How the simulation carries out each action.
#include "sim/after.hpp"
#include "sim/run.hpp"

#include "trace/checkpoint_writer.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::sim {

namespace {

/// A message without payload: identities, a version and a few times.
constexpr double control_bytes = 64;

}  // namespace

// The apply lane is first in, first out: the work begins when the lane is free.
Time Run::occupy_apply(RoleId role, Time now, double seconds) {
    auto& free_ns = apply_free_ns_[static_cast<std::size_t>(role)];
    return free_ns = after(std::max(free_ns, now), seconds);
}

void Run::release(BufferId buffer, Time now) {
    const auto channel = buffers_.release(buffer);
    if (channel < 0) return;
    transport_.slot_freed(channel, now);
    if (transport_.has_local()) deliver_local(now);
}

Run::ControlChannel& Run::control_channel(RoleId from, RoleId to) {
    const RoleId below = lower(from, to);
    const RoleId above = below == from ? to : from;
    if (above > scenario_.lambda() && shards_.any()) {
        const auto shard = static_cast<std::size_t>(shards_.shard_of(above) - 1);
        const auto worker = static_cast<std::size_t>(below - 1);
        const auto others = static_cast<std::size_t>(shards_.count() - 1);
        return shard_channels_[2 * (worker * others + shard) + (below == from ? 0 : 1)];
    }
    if (!serves(from) && !serves(to)) return worker_channels_[{from, to}];
    auto& seat = seats_[static_cast<std::size_t>(below)];
    return to == below ? seat.from_server : seat.to_server;
}

// Control messages take latency and bandwidth, but no share of the links; each channel keeps their order.
void Run::send_control(RoleId role, Time now, const Send& action) {
    auto& channel = control_channel(role, action.to);
    if (channel.delay_ns < 0)
        channel.delay_ns =
            network_.control_delay(placement_.host_of_role[static_cast<std::size_t>(role)],
                                   placement_.host_of_role[static_cast<std::size_t>(action.to)], control_bytes);
    const Time at = channel.free_ns = std::max(channel.free_ns, now + channel.delay_ns);
    Due& due = queue_.create();
    emplace_in<Delivered>(due.event, role, action.channel, action.message, action.payload, now, now);
    due.sender = role;
    due.taken = Taken{action.id, now};
    queue_.schedule(due, at, action.to, role, static_cast<int>(action.channel));
    if (action.payload.buffer == no_buffer) {
        ++report_.control_messages;
        report_.bytes += static_cast<std::int64_t>(control_bytes);
        return;
    }
    // What is handed over for an evaluation takes nothing of the cluster, as the evaluation does.
    auto& payload = std::get<Delivered>(due.event).payload;
    payload.buffer = buffers_.share(payload.buffer, -1);
    ++report_.messages;
    report_.bytes += bytes_of(false, action.payload);
}

void Run::act(RoleId role, Time now, const Send& action) {
    if (crashed_) {
        const Seat& receiver = seats_[static_cast<std::size_t>(action.to)];
        if (receiver.down() || receiver.finished) return complete(role, now, Taken{action.id, now});
    }
    if (action.payload.buffer == no_buffer || for_evaluation(role, action)) return send_control(role, now, action);
    buffers_.retain(action.payload.buffer);
    const bool pushes = action.channel == Channel::gradient;
    Flow flow;
    flow.from = role;
    flow.to = action.to;
    flow.channel = action.channel;
    flow.bytes = static_cast<double>(bytes_of(pushes, action.payload));
    Due& due = queue_.create();
    flow.due = &due;
    // A relay sends the records of a sum ahead of it on its channel: until it is on its way, started_ns is when they
    // have all come.
    const bool relays = pushes && role > scenario_.lambda();
    const Time earliest = relays ? seats_[static_cast<std::size_t>(role)].to_server.free_ns : now;
    emplace_in<Delivered>(due.event, role, action.channel, action.message, action.payload, now, earliest);
    due.taken = Taken{action.id, now};
    ++report_.messages;
    report_.bytes += static_cast<std::int64_t>(flow.bytes);
    const FlowId id = transport_.create(flow);
    Time at = now;
    const Time begin = std::max(now, apply_free_ns_[static_cast<std::size_t>(role)]);
    if (needs_.exchanges) {
        const double takes = scenario_.cluster.exchange.send(flow.bytes);
        if (takes > 0) at = occupy_apply(role, now, takes);
    }
    if (!pushes && serves(role)) {  // a worker that passes weights on has no server's costs
        at = std::max(at, occupy_apply(role, now, seconds_of(role).pull));
        auto& totals = server(role);
        ++totals.replies;
        totals.pull_ns += at - begin;
        totals.bytes_out += static_cast<std::int64_t>(flow.bytes);
    } else if (serves(role)) {
        server(role).bytes_out += static_cast<std::int64_t>(flow.bytes);
    }
    if (at > now) {
        queue_.complete(at, role).flow = id;
        return;
    }
    if (transport_.submit(id, now)) deliver_local(now);
}

void Run::act(RoleId role, Time now, const Compute& action) {
    auto& seat = seats_[static_cast<std::size_t>(role)];
    if (seat.batch != action.batch.count) {
        seat.batch = action.batch.count;
        seat.seconds = placement_.device_seconds(role, action.batch.count);
    }
    const Time begin = std::max(now, seat.compute_free_ns);
    const double factor = noise_.factor({role, action.worker_seq, action.batch.count, begin, seat.seconds});
    const double sum_s = sums_ ? placement_.sum_seconds(role) : 0;
    const double work_s = seat.seconds * factor + sum_s;
    const double speed = speed_.empty() ? 1 : speed_[static_cast<std::size_t>(host_of(role))];
    seat.stalled = speed <= 0;
    if (seat.stalled)
        seat.left_s = pace_.work(role, action.worker_seq, work_s);
    else
        seat.compute_free_ns = after_work(begin, pace_.seconds(role, action.worker_seq, begin, work_s / speed));
    buffers_.retain(action.weights);
    const BufferId gradient = buffers_.allocate();
    std::int32_t job = -1;
    if (pool_) {
        if (free_jobs_.empty()) {
            free_jobs_.push_back(static_cast<std::int32_t>(jobs_.size()));
            jobs_.push_back(std::make_unique<learn::GradientJob>());
        }
        job = free_jobs_.back();
        free_jobs_.pop_back();
        auto& work = *jobs_[static_cast<std::size_t>(job)];
        work.weights_buffer = action.weights;
        work.gradient_buffer = gradient;
        work.worker = role - 1;
        work.worker_seq = action.worker_seq;
        work.batch = action.batch;
        work.due = seat.compute_free_ns;
        pool_->submit(work);
    }
    Due& due = seat.stalled ? queue_.create() : queue_.complete(seat.compute_free_ns, role);
    due.to = role;
    emplace_in<GradientReady>(due.event, action.id, gradient, begin, seat.compute_free_ns, 0.0);
    due.job = job;
    due.weights = action.weights;
    seat.compute = &due;
    if (action.by_layers && !seat.stalled) tell_layers(role, action.id, gradient, begin, seat.compute_free_ns);
}

// The last bucket comes with the gradient.
void Run::tell_layers(RoleId role, ActionId id, BufferId gradient, Time begin, Time end) {
    const auto at = [&](double part) { return begin + std::llround(part * static_cast<double>(end - begin)); };
    for (const Bucket& bucket : buckets_) {
        if (&bucket == &buckets_.back()) break;
        Due& due = queue_.complete(at(bucket.end), role);
        emplace_in<LayerReady>(due.event, id, gradient, bucket.range.first, at(bucket.begin), at(bucket.end));
    }
}

void Run::act(RoleId role, Time now, const Cancel& action) {
    auto& seat = seats_[static_cast<std::size_t>(role)];
    if (seat.compute == nullptr) return;
    const auto ready = std::get<GradientReady>(seat.compute->event);
    if (ready.id != action.target) return;
    drop_computation(role);
    complete(role, now, Cancelled{action.target, ready.begin_ns});
}

// What it takes is part of the seconds of a gradient.
void Run::act(RoleId role, Time now, const LocalStep& action) {
    BufferId local = action.local;
    if (action.steps() && local == no_buffer) local = buffers_.allocate();
    if (input_.task) {
        late_->run();
        learn::run(learn::resolve(action, local, buffers_));
    }
    complete(role, now, Stepped{action.id, local, action.sum});
}

// Takes no virtual time: workers put what arrives where it belongs as they receive it.
void Run::act(RoleId role, Time now, const Place& action) {
    const BufferId whole = action.whole == no_buffer ? buffers_.allocate() : action.whole;
    if (input_.task) {
        late_->run();
        learn::run(learn::resolve(action, whole, buffers_));
    }
    complete(role, now, Placed{action.id, whole});
}

/// A copy waits for nothing but the worker itself.
double Run::copy_seconds(const Mix& action) const {
    return scenario_.cluster.exchange.copy(
        static_cast<double>(bytes_of(false, {no_buffer, action.first, action.count})));
}

// Where nobody else holds what is replaced, in its place.
void Run::act(RoleId role, Time now, const Mix& action) {
    if (late_) late_->run();  // it holds what it has not run
    const bool in_place = action.out != no_buffer && buffers_.sole(action.out);
    const BufferId out = in_place ? action.out : buffers_.allocate();
    if (input_.task) learn::run(learn::resolve(action, out, buffers_));
    if (!in_place && action.out != no_buffer) release(action.out, now);
    if (role == 0 && (action.work == Mix::Work::update || action.work == Mix::Work::adopt)) server_weights_ = out;
    const ServerSeconds& seconds = seconds_of(role);
    const bool copies = action.work == Mix::Work::copy;
    const double takes = action.work == Mix::Work::sum      ? seconds.push * part_of_replica(role, action.count)
                         : action.work == Mix::Work::update ? seconds.update
                                                            : 0;
    // What takes no time waits for nothing.
    const Time begin = takes > 0 ? std::max(now, apply_free_ns_[static_cast<std::size_t>(role)]) : now;
    const Time end = copies ? after(now, copy_seconds(action)) : takes > 0 ? occupy_apply(role, now, takes) : now;
    if (serves(role) && (action.work == Mix::Work::sum || action.work == Mix::Work::update)) {
        auto& totals = server(role);
        const bool update = action.work == Mix::Work::update;
        ++(update ? totals.updates : totals.pushes);
        (update ? totals.update_ns : totals.push_ns) += end - begin;
    }
    if (end > now) span(role, copies ? "copy" : "apply", begin, end);
    complete(role, end, Mixed{action.id, out});
}

void Run::act(RoleId role, Time now, const Fold& action) {
    const bool first = action.accumulator == no_buffer;
    const BufferId accumulator = first ? buffers_.allocate() : action.accumulator;
    // At once, while the gradient is in the caches, and not into what a late update still reads: a role lets go of an
    // accumulator when its update is applied, and the next sum has one of its own. The state of the optimizer is read
    // with the weights alone.
    if (input_.task) {
        if (action.weights != no_buffer) late_->run();
        learn::run(learn::resolve(action, accumulator, buffers_, kept_), *optimizer_);
    }
    const Time begin = std::max(now, apply_free_ns_[static_cast<std::size_t>(role)]);
    const Time end = occupy_apply(role, now, seconds_of(role).push * part_of_replica(role, action.count));
    if (serves(role)) {
        auto& totals = server(role);
        ++totals.pushes;
        totals.push_ns += end - begin;
    }
    if (end > begin) span(role, "apply", begin, end);
    complete(role, end, Folded{action.id, accumulator});
}

void Run::act(RoleId role, Time now, const Update& action) {
    if (!serves(role)) return step_of_worker(role, now, action);
    std::int64_t pushes = 0;
    for (std::int32_t i = 0; i < action.step_count; ++i) {
        const auto& step = actions_.steps[static_cast<std::size_t>(action.first_step + i)];
        for (std::int32_t p = 0; p < step.part_count; ++p)
            pushes += actions_.parts[static_cast<std::size_t>(step.first_part + p)].pushes;
    }
    // Whoever else holds the old version (a gradient in computation, a model on its way) goes on reading it. Late
    // updates hold it, too, until some thread has run them; which handle comes next must not depend on when.
    const bool in_place = late_ == nullptr && buffers_.sole(action.weights);
    const BufferId to = in_place ? action.weights : buffers_.allocate();
    if (late_) late_->defer(action, actions_, to);
    if (!in_place) release(action.weights, now);
    const Time begin = std::max(now, apply_free_ns_[static_cast<std::size_t>(role)]);
    const ServerSeconds& seconds = seconds_of(role);
    const double push_s = static_cast<double>(pushes) * seconds.push;
    const Time end = occupy_apply(role, now, push_s + seconds.update * action.step_count);
    auto& totals = server(role);
    totals.pushes += pushes;
    totals.updates += action.step_count;
    const Time push_ns = after(0, push_s);
    totals.push_ns += push_ns;
    totals.update_ns += end - begin - push_ns;
    span(role, "apply", begin, end);
    complete(role, end, Applied{action.id, to});
}

// Takes no virtual time, and its result goes before any later event.
void Run::act(RoleId role, Time now, const Evaluate& action) {
    Metrics metrics;
    if (input_.task) {
        late_->run();
        metrics = input_.task->evaluate(buffers_.data(action.weights), *pool_);
    }
    complete(role, now, Evaluated{action.id, metrics});
}

// Takes no virtual time, and nothing of the run waits for the disk: what is written is a copy.
void Run::act(RoleId role, Time now, const Save& action) {
    complete(role, now, Saved{action.id});
    if (input_.checkpoints == nullptr) return;
    struct Copies {
        std::vector<float> weights, velocity, trend;
    };
    const auto copies = std::make_shared<Copies>();
    if (input_.task) {
        late_->run();
        const auto weights = buffers_.data(action.weights);
        copies->weights.assign(weights.begin(), weights.end());
        if (needs_.replicas) {
            copies->velocity = std::move(kept_states_[action.version]);
            kept_states_.erase(kept_states_.begin(), kept_states_.upper_bound(action.version));
        } else {
            const auto velocity = optimizer_->state();
            copies->velocity.assign(velocity.begin(), velocity.end());
        }
        if (action.trend != no_buffer) {
            const auto trend = buffers_.data(action.trend);
            copies->trend.assign(trend.begin(), trend.end());
        }
    }
    trace::CheckpointView view;
    view.head.roles.server = *saved_state(roles_[static_cast<std::size_t>(role)]);
    for (std::size_t worker = 1; worker <= static_cast<std::size_t>(scenario_.lambda()); ++worker)
        view.head.roles.books.push_back(books(roles_[worker], now));
    view.head.totals = {report_.messages, report_.control_messages, report_.bytes, servers_.front()};
    if (input_.recorder != nullptr) view.head.recorder = input_.recorder->take_mark();
    view.weights = copies->weights;
    view.velocity = copies->velocity;
    view.trend = copies->trend;
    input_.checkpoints->submit(std::move(view), [copies] {});
}

void Run::act(RoleId, Time now, const Release& action) {
    release(action.buffer, now);
}

void Run::act(RoleId role, Time, const SetTimer& action) {
    Due& due = queue_.complete(action.at_ns, role);
    due.event = TimerFired{action.id};
    timers_.emplace_back(role, &due);
}

void Run::act(RoleId role, Time, const Finish& action) {
    seats_[static_cast<std::size_t>(role)].finished = true;
    ++finished_;
    std::erase_if(timers_, [&](const auto& timer) {
        if (timer.first == role) queue_.cancel(*timer.second);
        return timer.first == role;
    });
    if (seats_[static_cast<std::size_t>(role)].down()) --down_;
    if (role != 0) return;
    report_.status = action.status;
    report_.detail = ending_text(action);
    if (action.status != Status::peer_lost || action.worker < 0) return;
    const Seat& lost = seats_[static_cast<std::size_t>(action.worker) + 1];
    report_.detail = "at " + seconds_text(lost.crash_ns) + " s " + with_host(action.worker + 1) +
                     " crashed, and a barrier does not go on without any of its workers";
}

void Run::act(RoleId, Time, const Keep& action) {
    kept_.keep(action);
}

void Run::act(RoleId, Time, const Forget& action) {
    kept_.forget(action.version);
}

}  // namespace rubato::sim
