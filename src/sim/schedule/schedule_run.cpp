#include "sim/schedule/schedule_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace rubato::sim {

ScheduleRun::ScheduleRun(const trace::RunInput& input, const DelayTrace& trace, See see)
    : input_(input),
      scenario_(*input.scenario),
      trace_(trace),
      see_(std::move(see)),
      server_(make_roles(scenario_, input.samples, input.parameters).front()),
      barrier_(traits(scenario_.protocol, scenario_.lambda()).rounds),
      readers_(trace, scenario_.lambda(), scenario_.data.sampling == Sampling::shared_epoch),
      workers_(static_cast<std::size_t>(scenario_.lambda())),
      buffers_(input.task ? input.task->parameters() : 0) {
    for (WorkerId worker = 0; worker < scenario_.lambda(); ++worker)
        workers_[static_cast<std::size_t>(worker)].next = readers_.first(worker);
    if (scenario_.stop.epochs) limit_ = std::llround(*scenario_.stop.epochs * static_cast<double>(input.samples));
    report_.backend = "sim";
    report_.virtual_clock = true;
    if (!input.task) return;
    optimizer_ = std::make_unique<learn::Optimizer>(scenario_.optimizer, input.task->parameters(), scenario_.lambda());
    pool_ = std::make_unique<learn::Pool>(*input.task, scenario_.pool_threads, [this](learn::GradientJob& job) {
        job.weights = buffers_.data(job.weights_buffer);
        job.gradient = buffers_.data(job.gradient_buffer);
    });
}

trace::DriverReport ScheduleRun::go() {
    const auto begin = std::chrono::steady_clock::now();
    weights_ = buffers_.allocate();
    if (input_.task) input_.task->initialize(buffers_.data(weights_));
    hand(Start{weights_});
    settle();
    on_version();
    while (!stopping_ && next_ < readers_.accepted()) {
        push_next();
        if (input_.tick && (next_ & 0x3f) == 0) input_.tick();
        if (input_.interrupted != nullptr && *input_.interrupted && !stopping_) {
            hand(Interrupted{});
            settle();
        }
    }
    stopped_by_itself_ = stopping_;
    if (stopping_) leave();
    if (finished_ && report_.status == Status::finished && buffers_.outstanding() != 0)
        throw std::logic_error(std::to_string(buffers_.outstanding()) + " buffers were never released");
    report_.end_ns = now_;
    report_.servers = {books_};
    report_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return report_;
}

void ScheduleRun::push_next() {
    const Row row = next_;
    const Delay& delay = readers_[row];
    const auto fail = [&](const std::string& what) { throw ScheduleError(trace_.file, delay.line, what); };
    const std::string which = "gradient " + std::to_string(row);
    const bool late = delay.read_version > version_;
    if (late && skipped_) return skip(row);
    if (late)
        fail("read_version: " + which + " cannot have read version " + std::to_string(delay.read_version) +
             ", which lies in its future: " + scenario_.protocol.name + " has made " + std::to_string(version_) +
             " updates by then");
    if (barrier_ && delay.read_version < version_)
        fail("read_version: " + which + " has staleness " + std::to_string(version_ - delay.read_version) + ", under " +
             scenario_.protocol.name + " every gradient is computed on the version that its update replaces (" +
             std::to_string(version_) + ")");
    if (!barrier_ && pending_[row].batch.count == 0) ask(row);
    auto it = pending_.find(row);
    if (it == pending_.end() || it->second.batch.count == 0) {
        if (dealt_samples_ == limit_) return skip(row);
        fail("worker: " + scenario_.protocol.name + " has no batch for worker " + std::to_string(delay.worker) +
             " at version " + std::to_string(version_));
    }
    Worker& worker = worker_of(row);
    Push push = record_of(row, it->second.batch, worker.pushes++);
    push.end_ns = push.push_ns = now_;
    BufferId gradient = it->second.gradient;
    if (it->second.job) {
        pool_->wait(*it->second.job);
        push.loss = it->second.job->loss;
        buffers_.release(it->second.weights);
    } else {
        gradient = buffers_.allocate();
    }
    pending_.erase(it);
    has_read(row);
    ++next_;
    ++taken_in_;
    worker.next = readers_.after(row);
    ++report_.messages;
    report_.bytes += scenario_.cost.push_bytes;
    books_.bytes_in += scenario_.cost.push_bytes;
    hand(Delivered{delay.worker + 1, Channel::gradient, push, {gradient, 0, input_.parameters}, now_, now_});
    settle();
    if (worker.next != Readers::none && readers_[worker.next].read_version <= version_) {
        const auto next = pending_.find(worker.next);
        if (next == pending_.end() || next->second.batch.count == 0)
            ask_for_readers(readers_[worker.next].read_version);
    }
}

// The epochs that the scenario asks for are dealt out: whoever has no batch any more computes nothing.
void ScheduleRun::skip(Row row) {
    skipped_ = true;
    if (const auto it = pending_.find(row); it != pending_.end()) {
        if (it->second.weights != no_buffer) buffers_.release(it->second.weights);
        pending_.erase(it);
    }
    has_read(row);
    ++next_;
    worker_of(row).next = readers_.after(row);
}

Push ScheduleRun::record_of(Row row, const Batch& batch, std::int64_t worker_seq) const {
    Push push;
    push.read_version = readers_[row].read_version;
    push.worker_seq = worker_seq;
    push.batch = batch;
    push.pull_ns = push.begin_ns = push.read_version * schedule_tick_ns;
    return push;
}

void ScheduleRun::ask(Row row) {
    Worker& worker = worker_of(row);
    worker.next = row;
    ++report_.control_messages;
    hand(Delivered{readers_[row].worker + 1, Channel::control, Inquiry{worker.have}, {}, now_, now_});
    settle();
}

void ScheduleRun::ask_for_readers(Version version) {
    if (barrier_) return;
    const auto rows = readers_.of(version);
    for (std::size_t& asked = asked_[version]; asked < rows.size() && !stopping_; ++asked) {
        const Row row = rows[asked], before = readers_.before(row);
        // The first batch of a worker is dealt at the start; one that was needed out of its turn is there already.
        if (before == Readers::none || row < next_) continue;
        if (const auto it = pending_.find(row); it != pending_.end() && it->second.batch.count > 0) continue;
        if (before >= next_) return;
        ask(row);
    }
    asked_.erase(version);
}

void ScheduleRun::keep_versions() {
    if (!optimizer_ || !optimizer_->looks_at_weights()) return;
    std::erase_if(readers_left_, [this](const auto& version) {
        if (version.second > 0) return false;
        kept_.forget(version.first);
        return true;
    });
    const auto rows = readers_.of(version_);
    const auto count =
        std::count_if(rows.begin(), rows.end(), [this](Row row) { return row >= next_ && row < readers_.accepted(); });
    if (count == 0) return;
    kept_.keep(version_, weights_);
    readers_left_[version_] = count;
}

void ScheduleRun::has_read(Row row) {
    if (const auto it = readers_left_.find(readers_[row].read_version); it != readers_left_.end()) --it->second;
}

void ScheduleRun::on_version() {
    keep_versions();
    for (const Row row : readers_.of(version_)) {
        if (!input_.task || row >= readers_.accepted()) continue;
        Pending& pending = pending_[row];
        pending.weights = buffers_.share(weights_, -1);
        submit(row, pending);
    }
    ask_for_readers(version_);
}

void ScheduleRun::submit(Row row, Pending& pending) {
    if (pending.batch.count == 0 || pending.weights == no_buffer || pending.job) return;
    pending.gradient = buffers_.allocate();
    pending.job = std::make_unique<learn::GradientJob>();
    pending.job->weights_buffer = pending.weights;
    pending.job->gradient_buffer = pending.gradient;
    pending.job->worker = readers_[row].worker;
    // Of its worker's gradients those that are not in yet come first.
    std::int64_t seq = worker_of(row).pushes;
    for (Row before = readers_.before(row); before != Readers::none && before >= next_;
         before = readers_.before(before))
        ++seq;
    pending.job->worker_seq = seq;
    pending.job->batch = pending.batch;
    pending.job->due = row;
    pool_->submit(*pending.job);
}

void ScheduleRun::dealt(RoleId to, Version version, const Batch& batch) {
    Worker& worker = workers_[static_cast<std::size_t>(to - 1)];
    worker.have = version;
    dealt_samples_ += batch.count;
    if (batch.count == 0 || worker.next == Readers::none) return;
    Pending& pending = pending_[worker.next];
    pending.batch = batch;
    submit(worker.next, pending);
}

void ScheduleRun::leave() {
    std::vector<Row> begun(workers_.size(), Readers::none);
    for (auto& [row, pending] : pending_) {
        Row& its = begun[static_cast<std::size_t>(readers_[row].worker)];
        if (pending.batch.count > 0 && readers_[row].read_version <= version_ && its == Readers::none) its = row;
        if (pending.job) pool_->cancel(*pending.job);
        for (const BufferId buffer : {pending.weights, pending.gradient})
            if (buffer != no_buffer) buffers_.release(buffer);
    }
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
        Bye bye{workers_[worker].pushes, begun[worker] != Readers::none, {}};
        if (bye.cancelled)
            bye.gradient = record_of(begun[worker], pending_.at(begun[worker]).batch, workers_[worker].pushes);
        ++report_.control_messages;
        hand(Delivered{static_cast<RoleId>(worker) + 1, Channel::control, bye, {}, now_, now_});
        settle();
    }
    pending_.clear();
}

void ScheduleRun::advance(Time to) {
    if (timer_ && timer_->at_ns <= to && !stopping_) {
        now_ = std::max(now_, timer_->at_ns);
        const TimerFired fired{std::exchange(timer_, std::nullopt)->id};
        hand(fired);
    }
    now_ = std::max(now_, to);
}

// Completions of what the server asks for, until it asks for nothing more.
void ScheduleRun::settle() {
    while (!due_.empty()) {
        const Event event = due_.front();
        due_.pop_front();
        const auto* applied = std::get_if<Applied>(&event);
        if (applied == nullptr) {
            hand(event);
            continue;
        }
        advance((version_ + steps_) * schedule_tick_ns);
        weights_ = applied->weights;
        version_ += std::exchange(steps_, 0);
        hand(event);
        on_version();
    }
}

void ScheduleRun::hand(const Event& event) {
    actions_.clear();
    step(server_, now_, event, actions_);
    if (see_) see_(now_, 0, event, actions_);
    if (!actions_.list.empty() && std::holds_alternative<Finish>(actions_.list.back()) && input_.task)
        report_.weights_hash = learn::weights_hash(buffers_.data(weights_));
    for (const auto& action : actions_.list) std::visit([this](const auto& alternative) { act(alternative); }, action);
}

}  // namespace rubato::sim
