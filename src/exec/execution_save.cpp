// Checkpoints of drivers in real time: what is saved is put together beside the run, and written on another thread.
#include "exec/execution.hpp"
#include "trace/checkpoint_writer.hpp"

#include <algorithm>

namespace rubato::exec {

/// A Save under way. Its two parts come from different threads; whoever brings the last one gives it to the writer.
struct Execution::Saving {
    trace::CheckpointView view;
    std::vector<float> velocity;
    std::vector<BufferId> held;
    std::atomic<int> missing{2};
};

Time Execution::start_ns() const {
    return input_.resume ? input_.resume->head.roles.server.now_ns : 0;
}

BufferId Execution::first_weights() {
    const BufferId initial = office_.allocate();
    // Other processes than that of the server may not be given any, where their roles wait for newer ones anyway.
    if (input_.resume && !input_.resume->weights.empty())
        std::ranges::copy(input_.resume->weights, office_.data(initial).begin());
    else
        input_.task->initialize(office_.data(initial));
    return initial;
}

BufferId Execution::first_trend() {
    if (input_.resume == nullptr || !input_.resume->head.roles.server.joint.trend) return no_buffer;
    const BufferId trend = office_.allocate();
    std::ranges::copy(input_.resume->trend, office_.data(trend).begin());
    return trend;
}

void Execution::restore_totals() {
    if (input_.resume == nullptr) return;
    const auto& totals = input_.resume->head.totals;
    report_.messages = totals.messages;
    report_.control_messages = totals.control_messages;
    report_.bytes = totals.bytes;
    server_ = totals.server;
    if (!needs_.replicas) optimizer_.restore(input_.resume->velocity);
}

// Those whose figures were not there when the state was saved are under way again.
void Execution::resume_evaluations(Seat& seat) {
    for (const auto& it : input_.resume->head.roles.server.evaluations) {
        const BufferId weights = office_.allocate();
        std::ranges::copy(input_.resume->weights_of(it.row.version), office_.data(weights).begin());
        act(seat, Evaluate{it.id, weights, it.row.version});
        office_.release(weights, seat.now);
    }
}

void Execution::end_evaluation(const Evaluated& event) {
    const auto at =
        std::find_if(evaluations_.begin(), evaluations_.end(), [&](const Evaluate& it) { return it.id == event.id; });
    if (at == evaluations_.end()) return;
    office_.release(at->weights, clock());
    evaluations_.erase(at);
}

void Execution::act(Seat& seat, const Save& action) {
    auto& writer = input_.checkpoints;
    if (writer == nullptr || !time_to_save(*writer)) return mail(seat.id, Saved{action.id});
    ++working_;  // however long it takes, it is no stall
    const auto saving = std::make_shared<Saving>();
    auto& view = saving->view;
    view.head.roles.server = *saved_state(seat.role);
    if (input_.recorder != nullptr) view.head.recorder = input_.recorder->take_mark();
    // The versions that are saved cannot change while they are held.
    const auto hold = [&](BufferId buffer) {
        office_.retain(buffer);
        saving->held.push_back(buffer);
        return std::span<const float>(office_.data(buffer));
    };
    view.weights = hold(action.weights);
    if (action.trend != no_buffer) view.trend = hold(action.trend);
    for (const Evaluate& it : evaluations_)
        if (it.version != action.version) view.evaluated.emplace_back(it.version, hold(it.weights));

    const auto id = action.id;
    const auto brought = [this, saving, id] {
        if (--saving->missing > 0) return;
        input_.checkpoints->submit(std::move(saving->view), [this, saving, id] {
            for (const BufferId buffer : saving->held) office_.release(buffer, clock());
            --working_;
            mail(0, Saved{id});
        });
    };
    gather_books(view.head.roles.server.now_ns, [this, saving, brought](Gathered gathered) {
        auto& head = saving->view.head;
        head.roles.books = std::move(gathered.books);
        {
            std::lock_guard lock(report_mutex_);
            head.totals.messages = report_.messages + gathered.messages;
            head.totals.control_messages = report_.control_messages + gathered.control_messages;
            head.totals.bytes = report_.bytes + gathered.bytes;
            head.totals.server = server_;
            head.totals.server.bytes_in += gathered.bytes_in;
        }
        brought();
    });
    if (needs_.replicas) {
        saving->velocity = take_kept_state(action.version);
        saving->view.velocity = saving->velocity;
        return brought();
    }
    if (optimizer_.state().empty()) return brought();
    // The optimizer's state is that of this very version before the next update on this lane.
    give(*seat.apply_lane, [this, saving, brought] {
        const auto state = optimizer_.state();
        saving->velocity.assign(state.begin(), state.end());
        saving->view.velocity = saving->velocity;
        brought();
    });
}

void Execution::act(Seat& seat, const KeepState& action) {
    learn::Optimizer& optimizer = own_optimizer(seat);
    give(*seat.compute_lane, [this, &optimizer, version = action.version] {
        const auto state = optimizer.state();
        std::lock_guard lock(kept_mutex_);
        kept_states_[version].assign(state.begin(), state.end());
    });
}

std::vector<float> Execution::take_kept_state(Version version) {
    std::lock_guard lock(kept_mutex_);
    std::vector<float> state;
    while (!kept_states_.empty() && kept_states_.begin()->first <= version) {
        if (kept_states_.begin()->first == version) state = std::move(kept_states_.begin()->second);
        kept_states_.erase(kept_states_.begin());
    }
    return state;
}

// After a signal only if what is to be written is small enough for the time that the launcher leaves.
bool Execution::time_to_save(const trace::CheckpointWriter& writer) const {
    if (input_.interrupted == nullptr || !*input_.interrupted || patience_s_ <= 0) return true;
    const std::int64_t trends = saved_state(seats_.front()->role)->joint.trend ? 1 : 0;
    const auto arrays = static_cast<std::int64_t>(1 + evaluations_.size()) + trends;
    const auto states = needs_.replicas ? optimizer_.arrays() * input_.task->parameters()
                                        : static_cast<std::int64_t>(optimizer_.state().size());
    const auto elements = arrays * input_.task->parameters() + states;
    return writer.fits(elements * static_cast<std::int64_t>(sizeof(float)), patience_s_);
}

}  // namespace rubato::exec
