// The server as the root of a tree: it knows the workers one by one, and talks with the relays above them.
#include "core/server.hpp"

#include <algorithm>
#include <utility>

namespace rubato {

Server::Branch& Server::branch_of(RoleId worker) {
    return *std::upper_bound(branches_.begin(), branches_.end() - 1, worker - 1,
                             [](WorkerId value, const Branch& branch) { return value < branch.end; });
}

// Once to each relay: it gives the version to all workers below it that are let go on with it.
void Server::reply_below(RoleId to, const Peer& worker, const Batch& batch, bool pulls, Time held_ns, Time queued_ns,
                         Actions& actions) {
    auto& branch = branch_of(to);
    ++branch.sent;
    ++sends_under_way_;
    if (pulls && branch.version != version_) {
        branch.version = version_;
        actions.send<Weights>(next_id(), branch.role, Channel::weights, {weights_, 0, config_.parameters}, version_,
                              batch, held_ns, queued_ns, local_rate(), to - 1);
    } else {
        actions.send<Proceed>(next_id(), branch.role, Channel::control, {}, worker.version, batch, held_ns, queued_ns,
                              local_rate(), !pulls, to - 1);
    }
}

void Server::gather(Time now, RoleId from, const Push& push, BufferId gradient, Actions& actions) {
    auto& records = branch_of(from).records;
    if (records.empty() && gradient != no_buffer) return accept(now, from, push, gradient, actions);
    records.push_back(push);
    if (gradient != no_buffer) accept_sum(now, std::exchange(records, {}), gradient, actions);
}

void Server::flush(Actions& actions) {
    if (branches_.empty() || std::exchange(flushed_, true)) return;
    for (const auto& branch : branches_) {
        ++sends_under_way_;
        actions.send<Flush>(next_id(), branch.role, Channel::control, {});
    }
}

void Server::tell_round(const std::vector<WorkerId>& idle, Actions& actions) {
    if (!traits_.batch_order) return;  // relays make no sums then
    for (const auto& relay : config_.tree.relays()) {
        const auto among = std::lower_bound(idle.begin(), idle.end(), relay.end) -
                           std::lower_bound(idle.begin(), idle.end(), relay.first);
        const int gradients = relay.workers() - static_cast<int>(among);
        if (among == 0 || gradients == 0) continue;
        ++sends_under_way_;
        actions.send<Round>(next_id(), way_to(relay.first + 1), Channel::control, {}, relay.role, gradients,
                            relay.first);
    }
}

void Server::stop_below(Actions& actions) {
    for (auto& branch : branches_) {
        for (const Push& record : branch.records)
            leave_over(unapplied_row(record.worker, record, Outcome::leftover), actions);
        branch.records.clear();
        ++sends_under_way_;
        actions.send<Stop>(next_id(), branch.role, Channel::control, {}, branch.sent);
    }
    for (const Receiver& worker : fed_) {
        ++sends_under_way_;
        actions.send<Stop>(next_id(), worker.role, Channel::control, {}, worker.sent);
    }
}

void Server::feed_below(Actions& actions) {
    if (stopping_ || weights_ == no_buffer) return;
    const Slice payload{weights_, 0, config_.parameters};
    const auto id = [this] { return next_id(); };
    sends_under_way_ += feed(fed_, version_, payload, id, actions);
    if (config_.broadcast) sends_under_way_ += feed(branches_, version_, payload, id, actions);
}

}  // namespace rubato
