// What a relay passes on from the root to the workers, and how it leaves.
#include "core/relay.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

Relay::Child& Relay::child_of(WorkerId worker) {
    if (leaf(children_.front())) return children_.at(static_cast<std::size_t>(worker - config_.place.first));
    const auto found = std::upper_bound(children_.begin(), children_.end(), worker,
                                        [](WorkerId value, const Child& child) { return value < child.end; });
    if (found == children_.end() || worker < config_.place.first)
        throw std::logic_error("a relay was sent a message for a worker that is not below it");
    return *found;
}

void Relay::on_weights(const Delivered& event, const Weights& weights, Actions& actions) {
    if (weights_ != no_buffer) actions.add<Release>(weights_);
    weights_ = event.payload.buffer;
    version_ = weights.version;
    ++replies_;
    if (config_.broadcast) feed_below(actions);
    if (weights.worker >= 0)
        give({weights.version, weights.batch, weights.held_ns, weights.queued_ns, weights.learning_rate, false,
              weights.worker},
             actions);
    // Those that came before their version, on another channel.
    std::vector<Proceed> later;
    for (const Proceed& word : std::exchange(words_, {}))
        if (word.version <= version_)
            give(word, actions);
        else
            later.push_back(word);
    words_ = std::move(later);
}

void Relay::on_word(const Proceed& word, Actions& actions) {
    ++replies_;
    if (word.onward || word.version <= version_)
        give(word, actions);
    else
        words_.push_back(word);
}

// With the newest weights that are here, which may be newer than those that the word names, and only where they were
// not sent there before.
void Relay::give(const Proceed& word, Actions& actions) {
    auto& child = child_of(word.worker);
    const WorkerId worker = leaf(child) ? -1 : word.worker;
    ++child.sent;
    ++sends_under_way_;
    if (!word.onward && child.version < version_) {
        child.version = version_;
        actions.send<Weights>(next_id(), child.role, Channel::weights, {weights_, 0, config_.parameters}, version_,
                              word.batch, word.held_ns, word.queued_ns, word.learning_rate, worker);
    } else {
        const Version version = word.onward && !leaf(child) ? word.version : child.version;
        actions.send<Proceed>(next_id(), child.role, Channel::control, {}, version, word.batch, word.held_ns,
                              word.queued_ns, word.learning_rate, word.onward, worker);
    }
}

// One without a part of the data hears no word but the last.
void Relay::answer(WorkerId worker, Actions& actions) {
    if (stopping_) return;
    Proceed word;
    word.version = version_;
    word.batch = own_batch(config_.data, worker, child_of(worker).dealt++);
    word.worker = worker;
    if (word.batch.count > 0) give(word, actions);
}

void Relay::feed_below(Actions& actions) {
    if (stopping_ || leaf(children_.front())) return;
    sends_under_way_ += feed(
        children_, version_, {weights_, 0, config_.parameters}, [this] { return next_id(); }, actions);
}

template <class M>
void Relay::pass_down(WorkerId worker, M message, Actions& actions) {
    const auto& child = child_of(worker);
    if (leaf(child)) message.worker = -1;  // it knows who it is
    ++sends_under_way_;
    actions.add<Send>(next_id(), child.role, Channel::control, message, Slice{});
}
template void Relay::pass_down(WorkerId, Ok, Actions&);
template void Relay::pass_down(WorkerId, Halt, Actions&);
template void Relay::pass_down(WorkerId, Round, Actions&);

// Stop may overtake weights, and words that wait for them. Once all have been passed on, what is here is left over.
void Relay::try_stop(Actions& actions) {
    if (stopping_ || replies_expected_ < 0 || replies_ < replies_expected_ || !words_.empty()) return;
    stopping_ = true;
    for (const Child& child : children_) {
        ++sends_under_way_;
        actions.send<Stop>(next_id(), child.role, Channel::control, {}, child.sent);
    }
    for (auto& child : children_) {
        for (const Push& record : child.records) leave_over(record, actions);
        child.records.clear();
    }
    for (const Push& record : sum_.records) leave_over(record, actions);
    if (sum_.buffer != no_buffer) actions.add<Release>(sum_.buffer);
    sum_ = {};
    for (std::size_t i = inbox_head_; i < inbox_.size(); ++i) {
        for (const Push& record : inbox_[i].records) leave_over(record, actions);
        actions.add<Release>(inbox_[i].buffer);
    }
    inbox_.clear();
    inbox_head_ = 0;
    for (const Message& message : std::exchange(inquiries_, {})) pass_up(message, actions);
}

void Relay::try_leave(Actions& actions) {
    if (!stopping_ || finished_ || byes_ < config_.place.workers() || records_ < records_expected_) return;
    if (sends_under_way_ > 0 || fold_ != 0) return;  // nothing is kept for later then
    finished_ = true;
    actions.add<Release>(std::exchange(weights_, no_buffer));
    actions.add<Finish>();
}

void Relay::on(Time, const Abandoned& event, Actions& actions) {
    const auto state = [&](const Push& record, Outcome outcome) {
        auto& row = actions.gradients.emplace_back(unapplied_row(record.worker, record, outcome));
        if (outcome == Outcome::cancelled) row.end_ns = row.push_ns = -1;
    };
    for (std::size_t i = on_way_head_; i < on_way_.size(); ++i) state(on_way_[i].record, on_way_[i].outcome);
    for (const auto* records : {&sum_.records, &later_})
        for (const Push& record : *records) state(record, Outcome::leftover);
    for (std::size_t i = inbox_head_; i < inbox_.size(); ++i)
        for (const Push& record : inbox_[i].records) state(record, Outcome::leftover);
    for (const Child& child : children_)
        for (const Push& record : child.records) state(record, Outcome::leftover);
    for (const Message& message : inquiries_)
        if (const auto* gave_up = std::get_if<GaveUp>(&message)) state(gave_up->gradient, Outcome::cancelled);
    finished_ = true;
    actions.add<Finish>(event.status);
}

std::string Relay::waiting() const {
    if (finished_) return "";
    if (fold_ != 0) return "adds gradients up";
    if (push_ != 0) return "waits until its parent takes a gradient";
    if (!words_.empty()) return "waits for version " + std::to_string(words_.front().version) + " of the weights";
    if (stopping_) {
        if (byes_ < config_.place.workers())
            return "waits for the last word of " + std::to_string(config_.place.workers() - byes_) + " of its workers";
        return records_ < records_expected_ ? "waits for gradients of its workers"
                                            : "waits for its own messages to be taken";
    }
    if (replies_expected_ >= 0) return "waits for words of its parent that the end has overtaken";
    return "waits for messages, with " + std::to_string(buffered()) + " gradients of the " + std::to_string(due()) +
           " that it passes on together";
}

std::string Relay::describe() const {
    return "relay of workers " + std::to_string(config_.place.first) + " to " + std::to_string(config_.place.end - 1) +
           " at version " + std::to_string(version_) + ": " + std::to_string(records_) + " gradients came, " +
           std::to_string(buffered()) + " are here; " + (finished_ ? "finished" : waiting());
}

}  // namespace rubato
