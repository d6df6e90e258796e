#include "core/collective/collective_monitor.hpp"

#include "core/let_go.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

CollectiveMonitor::CollectiveMonitor(const MonitorConfig& config, const ServerState* state)
    : config_(config), books_(config.run), peers_(static_cast<std::size_t>(config.run.lambda)), last_(config.last) {
    if (state == nullptr) return;
    books_.restore(*state);
    last_id_ = state->last_id;
    weights_version_ = state->version;
    owed_ = state->pause > 0;
    for (std::size_t worker = 0; worker < peers_.size(); ++worker) {
        peers_[worker].told = state->begun[worker];
        peers_[worker].next = state->version;
    }
}

void CollectiveMonitor::step(Time now, const Event& event, Actions& actions) {
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

// Workers begin by themselves, but where they hold for the first evaluation.
void CollectiveMonitor::on(Time now, const Start& event, Actions& actions) {
    weights_ = event.weights;
    books_.start(now);
    if (config_.run.stop_ns) actions.add<SetTimer>(next_id(), *config_.run.stop_ns);
    if (books_.evaluation_due() || std::exchange(owed_, false)) books_.evaluate(now, next_id(), weights_, actions);
    if (const auto end = books_.end())  // where it goes on
        pause(*end, actions);
    else if (last_ >= 0 && books_.version() >= last_)
        pause(Status::finished, actions);
    try_go_onward(actions);
}

void CollectiveMonitor::try_go_onward(Actions& actions) {
    if (config_.run.pause_to_evaluate && !paused_ && !books_.evaluating()) tell_all(Onward{books_.version()}, actions);
}

void CollectiveMonitor::on(Time now, const Delivered& event, Actions& actions) {
    Peer& from = peer(event.from);
    if (const auto* computed = std::get_if<Computed>(&event.message)) {
        ++from.told;
        from.next = computed->iteration + 1;
        const GradientRow row = unapplied_row(event.from - 1, computed->gradient, Outcome::leftover);
        books_.look_at(row);
        rows_[computed->iteration].push_back(row);
        if (books_.end() == Status::diverged) pause(Status::diverged, actions);
    } else if (const auto* made = std::get_if<Made>(&event.message)) {
        made_[made->version] = *made;
    } else if (const auto* iterated = std::get_if<Iterated>(&event.message)) {
        iterations_[iterated->iteration].push_back({event.from - 1, *iterated});
    } else if (const auto* times = std::get_if<BucketTimes>(&event.message)) {
        buckets_[times->iteration].push_back({event.from - 1, *times});
    } else if (const auto* model = std::get_if<Model>(&event.message)) {
        models_[model->version] = event.payload.buffer;
    } else if (const auto* pause = std::get_if<Pause>(&event.message)) {
        from.begun = pause->begun;
        try_stop(actions);
    } else if (const auto* bye = std::get_if<Bye>(&event.message)) {
        from.expected = bye->pushes;
        from.bye = true;
    } else {
        throw std::logic_error("a monitor was sent a message that is not for one");
    }
    go_on(now, actions);
}

bool CollectiveMonitor::whole(std::int64_t iteration) const {
    const auto has = [iteration](const auto& rows, int wanted) {
        const auto found = rows.find(iteration);
        return (found == rows.end() ? 0 : found->second.size()) >= static_cast<std::size_t>(wanted);
    };
    return has(rows_, computing_in(config_.data, iteration)) && has(iterations_, config_.workers) &&
           has(buckets_, config_.workers * config_.buckets);
}

void CollectiveMonitor::state_version(const Made& made, Actions& actions) {
    const auto sorted = [&made](auto& all) {
        auto rows = std::move(all[made.version - 1]);
        all.erase(made.version - 1);
        std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.worker < b.worker; });
        return rows;
    };
    auto gradients = sorted(rows_);
    const auto iterations = sorted(iterations_);
    // Replicas that never meet may be far apart: a version is there when the last one has come as far.
    Time there_ns = made.time_ns;
    for (const IterationRow& row : iterations) there_ns = std::max(there_ns, row.it.end_ns);
    books_.apply(there_ns, gradients, made.learning_rate, actions);
    for (const IterationRow& row : iterations) actions.iterations.push_back(row);
    for (const BucketRow& row : sorted(buckets_)) actions.buckets.push_back(row);
}

// In their order: an evaluation is of the version that the books are at.
void CollectiveMonitor::go_on(Time now, Actions& actions) {
    drop_models(actions);
    while (taking_ == 0 && look_at_version(now, actions)) {
        const auto found = made_.find(books_.version() + 1);
        if (found == made_.end() || !whole(books_.version())) break;
        const Made made = found->second;
        made_.erase(found);
        state_version(made, actions);
        drop_models(actions);
        owed_ = books_.evaluation_due() || owed_;
        evaluates_ = owed_ && (!config_.run.pause_to_evaluate || made.held);
        if (evaluates_) owed_ = false;
        saves_ = made.savable && books_.save_due(now, paused_);
        if (!paused_)
            if (const auto end = books_.end()) pause(*end, actions);
    }
    try_finish(now, actions);
}

bool CollectiveMonitor::look_at_version(Time now, Actions& actions) {
    if (!evaluates_ && !saves_) return true;
    if (weights_version_ != books_.version()) {
        if (models_.count(books_.version()) == 1) take_model(actions);
        return false;
    }
    if (std::exchange(evaluates_, false)) books_.evaluate(now, next_id(), weights_, actions);
    if (!std::exchange(saves_, false)) return true;
    save(now, actions);
    return false;
}

void CollectiveMonitor::save(Time now, Actions& actions) {
    ServerState state = books_.state(now, next_id());
    state.pause = owed_ ? 1 : 0;
    books_.save(std::move(state), weights_, no_buffer, actions);
}

void CollectiveMonitor::on(Time now, const Saved& event, Actions& actions) {
    books_.on(event);
    go_on(now, actions);
}

// Which were to be saved while the one before was still being written.
void CollectiveMonitor::drop_models(Actions& actions) {
    while (taking_ == 0 && !models_.empty() && models_.begin()->first < books_.version()) {
        let_go(models_.begin()->second, actions);
        models_.erase(models_.begin());
    }
}

// What the monitor has is replaced, so that an inbox slot is free again.
void CollectiveMonitor::take_model(Actions& actions) {
    const auto model = models_.find(books_.version());
    taken_version_ = model->first;
    Mix& mix = actions.add<Mix>();
    mix.id = taking_ = next_id();
    mix.work = Mix::Work::adopt;
    mix.add(model->second, 1);
    mix.out = std::exchange(weights_, no_buffer);
}

void CollectiveMonitor::on(Time now, const Mixed& event, Actions& actions) {
    if (taking_ == 0 || event.id != taking_) throw std::logic_error("a copy that the monitor did not ask for");
    taking_ = 0;
    weights_ = event.out;
    weights_version_ = taken_version_;
    const auto model = models_.find(taken_version_);
    let_go(model->second, actions);
    models_.erase(model);
    go_on(now, actions);
}

void CollectiveMonitor::on(Time now, const Taken&, Actions& actions) {
    --sends_under_way_;
    try_finish(now, actions);
}

void CollectiveMonitor::on(Time now, const Evaluated& event, Actions& actions) {
    const auto end = books_.on(event, actions);
    if (end) pause(*end, actions);
    try_go_onward(actions);
    try_finish(now, actions);
}

void CollectiveMonitor::on(Time now, const TimerFired&, Actions& actions) {
    pause(Status::finished, actions);
    try_finish(now, actions);
}

void CollectiveMonitor::on(Time now, const Interrupted&, Actions& actions) {
    books_.interrupt();
    pause(Status::interrupted, actions);
    try_finish(now, actions);
}

void CollectiveMonitor::pause(Status status, Actions& actions) {
    if (paused_) return;
    paused_ = true;
    status_ = status;
    tell_all(Pause{}, actions);
}

void CollectiveMonitor::try_stop(Actions& actions) {
    if (stopping_ || !paused_) return;
    std::int64_t last = 0;
    for (const Peer& it : peers_) {
        if (it.begun < 0) return;
        last = std::max(last, it.begun);
    }
    stopping_ = true;
    last_ = last;
    tell_all(Stop{0, last}, actions);
}

void CollectiveMonitor::try_finish(Time now, Actions& actions) {
    if (finished_ || !stopping_ || taking_ != 0 || evaluates_ || saves_ || sends_under_way_ > 0) return;
    for (const Peer& it : peers_)
        if (!it.bye || it.told < it.expected) return;
    if (books_.version() < last_) return;
    if (models_.count(books_.version()) == 1) return take_model(actions);  // which may be the last weights
    // Before the evaluation of the end, which the run that goes on has none of.
    if (books_.interrupted() && weights_version_ == books_.version() && books_.save_due(now, false)) save(now, actions);
    if (books_.final_evaluation_due()) books_.evaluate(now, next_id(), weights_, actions);
    if (books_.evaluating() || books_.saving()) return;
    finished_ = true;
    let_go(weights_, actions);
    actions.list.emplace_back(books_.finish(status_));
}

// What it has told of is in the rows; it may have begun one more.
void CollectiveMonitor::on(Time, const PeerLost& event, Actions& actions) {
    const Peer& lost = peer(event.peer);
    if (lost.bye) return;
    Push begun;
    begun.worker_seq = lost.told;
    // Of an epoch the last iterations may have nothing for it, and none where it has no part of the data.
    for (std::int64_t i = 0; i <= config_.data.samples && begun.batch.count == 0; ++i)
        begun.batch = batch_of(config_.data, event.peer - 1, lost.next + i);
    if (begun.batch.count == 0) return;
    GradientRow row = unapplied_row(event.peer - 1, begun, Outcome::cancelled);
    row.pull_ns = row.begin_ns = row.end_ns = row.push_ns = -1;
    actions.gradients.push_back(row);
}

void CollectiveMonitor::on(Time, const Abandoned& event, Actions& actions) {
    for (const auto& [iteration, rows] : rows_) JointBooks::leave_over(rows, actions);
    rows_.clear();
    for (const auto& [iteration, rows] : std::exchange(iterations_, {}))
        actions.iterations.insert(actions.iterations.end(), rows.begin(), rows.end());
    for (const auto& [iteration, rows] : std::exchange(buckets_, {}))
        actions.buckets.insert(actions.buckets.end(), rows.begin(), rows.end());
    finished_ = true;
    actions.list.emplace_back(Finish{event.status});
}

template <class Other>
void CollectiveMonitor::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that a monitor is not told of");
}

std::string CollectiveMonitor::waiting() const {
    if (finished_) return "";
    if (evaluates_ || saves_) return "waits for the weights of version " + std::to_string(books_.version());
    if (stopping_ && books_.saving()) return "waits for its checkpoint to be written";
    if (stopping_) return "waits for the last words of the workers";
    if (paused_) return "waits until all workers have said what they have begun";
    return "waits for what workers tell of their steps";
}

std::string CollectiveMonitor::describe() const {
    return "monitor at version " + std::to_string(books_.version()) + ": " + std::to_string(books_.accepted()) +
           " gradients applied; " + (finished_ ? "finished" : waiting());
}

}  // namespace rubato
