#include "core/relay.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace rubato {

// Sums hide gradients from a policy until they come: only one that never makes a worker wait for another's can do with
// them, or one that waits for all of a round anyway.
namespace {

/// Every worker goes on when it asks, and every gradient is taken in.
bool has_no_say(const PolicyTraits& traits) {
    return traits.word == Word::inquiry && !traits.rounds && !traits.batch_order && !traits.asks && !traits.drops;
}

}  // namespace

void arrange(RelayConfig& config, const PolicyTraits& traits) {
    config.rounds = traits.rounds && traits.batch_order;
    config.in_order = traits.asks || traits.drops;
    const bool sums = has_no_say(traits) && !traits.alone;
    config.gradients = sums ? gradients_of_relay(traits.gradients, config.lambda, config.place.workers()) : 1;
}

bool leaves_answer(const Scenario& scenario, const PolicyTraits& traits) {
    return scenario.topology == "tree" && scenario.tree.broadcast && has_no_say(traits) &&
           scenario.data.sampling != Sampling::shared_epoch && !scenario.workers.overlaps() &&
           !scenario.workers.communication.any();
}

Relay::Relay(const RelayConfig& config) : config_(config), expected_(config.place.workers()) {
    for (std::size_t i = 0; i < config.place.children.size(); ++i)
        children_.push_back({{config.place.children[i]}, config.place.ends[i], {}});
}

void Relay::step(Time now, const Event& event, Actions& actions) {
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

template <class Other>
void Relay::on(Time, const Other&, Actions&) {
    throw std::logic_error("a relay was told of what is none of its business: " + std::string(Other::kind));
}

void Relay::on(Time, const Start& event, Actions& actions) {
    weights_ = event.weights;
    if (!config_.answers) return;
    for (WorkerId worker = config_.place.first; worker < config_.place.end; ++worker) answer(worker, actions);
}

void Relay::on(Time, const Delivered& event, Actions& actions) {
    if (const auto* push = std::get_if<Push>(&event.message)) {
        take(event, *push, actions);
    } else if (const auto* inquiry = std::get_if<Inquiry>(&event.message)) {
        Inquiry it = *inquiry;
        if (it.worker < 0) it.worker = event.from - 1;
        if (config_.answers)
            answer(it.worker, actions);
        else
            inquire(it.worker, it, actions);
    } else if (const auto* gave_up = std::get_if<GaveUp>(&event.message)) {
        GaveUp it = *gave_up;
        if (it.gradient.worker < 0) it.gradient.worker = event.from - 1;
        inquire(it.gradient.worker, it, actions);
    } else if (const auto* bye = std::get_if<Bye>(&event.message)) {
        Bye it = *bye;
        if (it.gradient.worker < 0) it.gradient.worker = event.from - 1;
        ++byes_;
        records_expected_ += it.pushes;
        pass_up(it, actions);
    } else if (const auto* proceed = std::get_if<Proceed>(&event.message)) {
        on_word(*proceed, actions);
    } else if (const auto* weights = std::get_if<Weights>(&event.message)) {
        on_weights(event, *weights, actions);
    } else if (const auto* ok = std::get_if<Ok>(&event.message)) {
        pass_down(ok->worker, *ok, actions);
    } else if (const auto* halt = std::get_if<Halt>(&event.message)) {
        pass_down(halt->worker, *halt, actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        replies_expected_ = stop->replies;
    } else if (const auto* round = std::get_if<Round>(&event.message)) {
        if (round->relay == config_.place.role)
            expected_ = round->gradients;
        else
            pass_down(round->worker, *round, actions);
        relay(actions);
    } else {
        flushing_ = true;
        for (const Child& child : children_)
            if (!leaf(child)) {
                ++sends_under_way_;
                actions.send<Flush>(next_id(), child.role, Channel::control, {});
            }
        relay(actions);
    }
    try_stop(actions);
    try_leave(actions);
}

// ---- up

void Relay::take(const Delivered& event, const Push& push, Actions& actions) {
    ++records_;
    Push record = push;
    if (record.worker < 0) record.worker = event.from - 1;
    const BufferId buffer = event.payload.buffer;
    if (stopping_) {
        leave_over(record, actions);
        if (buffer != no_buffer) actions.add<Release>(buffer);
        return;
    }
    auto& child = child_of(record.worker);
    child.records.push_back(record);
    if (buffer == no_buffer) return;
    inbox_.push_back({std::exchange(child.records, {}), buffer});
    relay(actions);
}

std::size_t Relay::due() const {
    if (config_.rounds) return static_cast<std::size_t>(expected_);
    return flushing_ ? 1 : static_cast<std::size_t>(config_.gradients);
}

// A sum that is complete waits until the one before it is taken by the parent, and what comes meanwhile waits behind
// it: so sums are as large as they are meant to be, and a relay whose parent is slow holds its workers up.
void Relay::relay(Actions& actions) {
    while (fold_ == 0 && !stopping_) {
        if (sum_.buffer != no_buffer && sum_.records.size() >= due()) {
            if (push_ != 0) return;
            send_up(actions);
            continue;
        }
        if (inbox_head_ == inbox_.size()) return;
        if (config_.rounds && sum_.buffer == no_buffer) {
            std::size_t there = 0;
            for (auto it = inbox_.begin() + static_cast<std::ptrdiff_t>(inbox_head_); it != inbox_.end(); ++it)
                there += it->records.size();
            if (there < due()) return;
            std::sort(inbox_.begin() + static_cast<std::ptrdiff_t>(inbox_head_), inbox_.end(),
                      [](const Gradient& a, const Gradient& b) {
                          return a.records.front().worker < b.records.front().worker;
                      });
        }
        Gradient next = std::move(inbox_[inbox_head_++]);
        if (2 * inbox_head_ >= inbox_.size()) {
            inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(inbox_head_));
            inbox_head_ = 0;
        }
        if (sum_.buffer == no_buffer && next.records.size() >= due())
            sum_ = std::move(next);  // nothing is to be added to it
        else
            fold(std::move(next), actions);
    }
}

// As the server does: each is weighted by its samples relative to the first one's, and its inbox slot is free at once.
void Relay::fold(Gradient gradient, Actions& actions) {
    const auto unit = [&](const Push& record) {
        return static_cast<double>(std::min(record.batch.count, config_.batch_size));
    };
    const BufferId sum = std::exchange(sum_.buffer, no_buffer);
    auto& records = sum_.records;
    const double weight = records.empty() ? 1.0 : unit(gradient.records.front()) / unit(records.front());
    if (records.empty())
        records = std::move(gradient.records);
    else
        records.insert(records.end(), gradient.records.begin(), gradient.records.end());
    folded_ = gradient.buffer;
    fold_ = next_id();
    actions.add<Fold>(fold_, sum, gradient.buffer, weight);
}

void Relay::on(Time, const Folded& event, Actions& actions) {
    if (fold_ == 0 || event.id != fold_) throw std::logic_error("a completion of work that a relay did not ask for");
    fold_ = 0;
    actions.add<Release>(std::exchange(folded_, no_buffer));
    if (stopping_) {  // its records have gone up already
        actions.add<Release>(event.accumulator);
        return try_leave(actions);
    }
    sum_.buffer = event.accumulator;
    relay(actions);
}

void Relay::send_up(Actions& actions) {
    auto& records = sum_.records;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const bool last = i + 1 == records.size();
        const ActionId id = next_id();
        on_way_.push_back({id, records[i], Outcome::leftover});
        ++sends_under_way_;
        Slice payload;
        if (last) payload = {sum_.buffer, 0, config_.parameters};
        actions.add<Send>(id, config_.place.parent, Channel::gradient, records[i], payload);
        if (last) push_ = id;
    }
    pushed_ = std::exchange(sum_.buffer, no_buffer);
    records.clear();
    expected_ = config_.place.workers();
}

void Relay::leave_over(const Push& record, Actions& actions) {
    if (push_ != 0) return later_.push_back(record);
    const ActionId id = next_id();
    on_way_.push_back({id, record, Outcome::leftover});
    ++sends_under_way_;
    actions.add<Send>(id, config_.place.parent, Channel::gradient, record, Slice{});
}

bool Relay::has_gradient_of(WorkerId worker) const {
    const auto its = [=](const Push& record) { return record.worker == worker; };
    for (std::size_t i = on_way_head_; i < on_way_.size(); ++i)
        if (on_way_[i].outcome == Outcome::leftover && its(on_way_[i].record)) return true;
    for (std::size_t i = inbox_head_; i < inbox_.size(); ++i)
        if (std::any_of(inbox_[i].records.begin(), inbox_[i].records.end(), its)) return true;
    return std::any_of(sum_.records.begin(), sum_.records.end(), its);
}

void Relay::inquire(WorkerId worker, const Message& message, Actions& actions) {
    if (config_.in_order && !stopping_ && has_gradient_of(worker))
        inquiries_.push_back(message);
    else
        pass_up(message, actions);
}

void Relay::pass_up(const Message& message, Actions& actions) {
    const ActionId id = next_id();
    if (const auto* gave_up = std::get_if<GaveUp>(&message))
        on_way_.push_back({id, gave_up->gradient, Outcome::cancelled});
    if (const auto* bye = std::get_if<Bye>(&message); bye != nullptr && bye->cancelled)
        on_way_.push_back({id, bye->gradient, Outcome::cancelled});
    ++sends_under_way_;
    actions.add<Send>(id, config_.place.parent, Channel::control, message, Slice{});
}

// Channels are first in, first out, so it is the first one as a rule, if it is one at all.
void Relay::forget_on_way(ActionId id) {
    const auto first = on_way_.begin() + static_cast<std::ptrdiff_t>(on_way_head_);
    const auto its =
        std::lower_bound(first, on_way_.end(), id, [](const OnWay& it, ActionId value) { return it.id < value; });
    if (its == on_way_.end() || its->id != id) return;
    if (its != first) {
        on_way_.erase(its);
    } else if (2 * ++on_way_head_ >= on_way_.size()) {
        on_way_.erase(on_way_.begin(), on_way_.begin() + static_cast<std::ptrdiff_t>(on_way_head_));
        on_way_head_ = 0;
    }
}

void Relay::on(Time, const Taken& event, Actions& actions) {
    --sends_under_way_;
    forget_on_way(event.id);
    if (config_.broadcast && !leaf(children_.front()) && was_fed(children_, event.id)) feed_below(actions);
    if (event.id == push_) {
        push_ = 0;
        actions.add<Release>(std::exchange(pushed_, no_buffer));
        for (const Push& record : std::exchange(later_, {})) leave_over(record, actions);
        std::vector<Message> waiting;
        waiting.swap(inquiries_);
        for (const Message& message : waiting) {
            const auto* inquiry = std::get_if<Inquiry>(&message);
            inquire(inquiry ? inquiry->worker : std::get<GaveUp>(message).gradient.worker, message, actions);
        }
        relay(actions);
    }
    try_leave(actions);
}

std::int64_t Relay::buffered() const {
    auto count = static_cast<std::int64_t>(sum_.records.size() + later_.size());
    for (std::size_t i = inbox_head_; i < inbox_.size(); ++i)
        count += static_cast<std::int64_t>(inbox_[i].records.size());
    for (std::size_t i = on_way_head_; i < on_way_.size(); ++i) count += on_way_[i].outcome == Outcome::leftover;
    for (const Child& child : children_) count += static_cast<std::int64_t>(child.records.size());
    return count;
}

}  // namespace rubato
