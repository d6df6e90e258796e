#include "exec/execution.hpp"

#include "trace/checkpoint_writer.hpp"

#include <algorithm>

namespace rubato::exec {

Execution::Execution(const RunInput& input, std::string backend)
    : input_(input),
      scenario_(*input.scenario),
      needs_(needs_of(scenario_)),
      begin_(std::chrono::steady_clock::now()),
      office_(
          input.task->parameters(), [this](RoleId role, const Event& event) { mail(role, event); },
          needs_.gradient_slots),
      optimizer_(input.scenario->optimizer, input.task->parameters(), input.scenario->lambda()),
      timeline_(input.recorder != nullptr && input.recorder->wants_timeline()) {
    const Tree tree = make_tree(scenario_);
    for (const auto& relay : tree.relays()) relays_.emplace_back().role = relay.role;
    if (scenario_.topology == "sharded") {
        for (int shard = 1; shard < scenario_.shards.count; ++shard)
            relays_.emplace_back().role = scenario_.lambda() + shard;
        optimizer_.prepare();  // before lanes of several shards use it
    }
    if (needs_.layers) buckets_ = make_buckets(scenario_, input.parameters);
    report_.backend = std::move(backend);
    report_.virtual_clock = false;
    begin_ -= std::chrono::nanoseconds(start_ns());
    restore_totals();
    // Beside workers that compute, an evaluation keeps to one core.
    const bool beside = scenario_.evaluate.mode == EvaluateSpec::Mode::rank;
    evaluators_ = std::make_unique<learn::Pool>(*input.task, beside ? 1 : 0);
    evaluate_lane_ = std::make_unique<Lane>();
    if (input.emulated != nullptr && !input.emulated->to_server.empty())
        links_ = std::make_unique<EmulatedLinks>(*input.emulated);
}

Seat& Execution::seat_role(Role role, RoleId id, BufferId weights) {
    auto& seat = *seats_.emplace_back(std::make_unique<Seat>(std::move(role)));
    seat.id = id;
    if (id == 0 || id > scenario_.lambda()) {
        seat.apply_lane = std::make_unique<Lane>();
    } else {
        seat.compute_lane = std::make_unique<Lane>();
        seat.workspace = input_.task->workspace();
        // Parts are put into their places, and shares are added up, beside the computation.
        if ((scenario_.topology == "sharded" && scenario_.workers.overlaps()) || scenario_.protocol.sums_beside())
            seat.apply_lane = std::make_unique<Lane>();
    }
    mail(id, Start{office_.share(weights), id == 0 ? first_trend() : no_buffer});
    return seat;
}

void Execution::close_lanes() {
    if (input_.checkpoints != nullptr) input_.checkpoints->drain();
    evaluate_lane_.reset();
    for (auto& seat : seats_) {
        seat->compute_lane.reset();
        seat->apply_lane.reset();
    }
    links_.reset();
}

Time Execution::clock() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_).count();
}

std::optional<Event> Execution::due_timer(Seat& seat) const {
    const auto due = std::min_element(seat.timers.begin(), seat.timers.end());
    if (due == seat.timers.end() || due->first > clock()) return std::nullopt;
    const TimerFired fired{due->second};
    seat.timers.erase(due);
    return fired;
}

Time Execution::next_timer(const Seat& seat, Time none) {
    for (const auto& timer : seat.timers) none = std::min(none, timer.first);
    return none;
}

void Execution::give(Lane& lane, std::function<void()> job) {
    ++working_;
    lane.push([this, job = std::move(job)] {
        try {
            job();
        } catch (...) {
            fail(std::current_exception());
        }
        --working_;
    });
}

void Execution::fail(std::exception_ptr error) {
    {
        std::lock_guard lock(report_mutex_);
        if (!error_) error_ = error;
        abort_ = true;
    }
    wake_all();
}

void Execution::step_role(Seat& seat, const Event& event) {
    seat.now = std::max(seat.now, clock());
    seat.actions.clear();
    {
        std::lock_guard lock(seat.role_mutex);
        step(seat.role, seat.now, event, seat.actions);
    }
    if (input_.recorder != nullptr) input_.recorder->step(seat.now, seat.id, event, seat.actions);
    if (keeps_rows_ && seat.actions.stated()) {
        const auto& said = seat.actions;
        stated_.gradients.insert(stated_.gradients.end(), said.gradients.begin(), said.gradients.end());
        stated_.workers.insert(stated_.workers.end(), said.workers.begin(), said.workers.end());
        stated_.updates.insert(stated_.updates.end(), said.updates.begin(), said.updates.end());
        stated_.shards.insert(stated_.shards.end(), said.shards.begin(), said.shards.end());
    }
    if (input_.observer) input_.observer(seat.now, seat.id, event, seat.actions);
    ++steps_;
}

void Execution::deal_with(Seat& seat, const Event& event) {
    if (const auto* start = std::get_if<Start>(&event)) seat.weights = start->weights;
    if (const auto* applied = std::get_if<Applied>(&event)) seat.weights = applied->weights;
    if (const auto* placed = std::get_if<Placed>(&event)) seat.weights = placed->weights;
    if (const auto* evaluated = std::get_if<Evaluated>(&event)) end_evaluation(*evaluated);
    step_role(seat, event);
    const auto& list = seat.actions.list;
    if (seat.id == 0 && !list.empty() && std::holds_alternative<Finish>(list.back()))
        report_.weights_hash = learn::weights_hash(office_.data(seat.weights));
    for (const auto& action : list) std::visit([&](const auto& alternative) { act(seat, alternative); }, action);
    if (seat.id == 0 && input_.resume && std::holds_alternative<Start>(event)) resume_evaluations(seat);
}

void Execution::abandon(Seat& seat, const std::deque<Event>& pending, Status status) {
    const auto over = [&](const Event& event) {
        step_role(seat, event);
        const auto& list = seat.actions.list;
        seat.finished = !list.empty() && std::holds_alternative<Finish>(list.back());
        return seat.finished;
    };
    for (const Event& event : pending)
        if (over(event)) return;
    over(Abandoned{status});
}

std::int64_t Execution::payload_bytes(Channel channel, const Slice& payload) const {
    const auto bytes = payload.count * static_cast<std::int64_t>(sizeof(float));
    if (input_.emulated == nullptr) return bytes;
    return std::max(bytes, input_.emulated->bytes(channel == Channel::weights, {payload.first, payload.count}));
}

void Execution::span(RoleId role, const char* kind, Time begin, Time end, RoleId peer, std::int64_t bytes) {
    if (timeline_) input_.recorder->span({role, kind, begin, end, peer, bytes});
}

}  // namespace rubato::exec
