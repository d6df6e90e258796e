// What overlapping workers of sharded servers promise, watched from outside.
#pragma once

#include "support/checkers.hpp"

#include "core/shards.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace rubato::test {

/// What a worker may do at once, with whom, and on which parts.
class ShardsPipelineChecker {
public:
    explicit ShardsPipelineChecker(const Scenario& scenario, std::int64_t parameters = 0)
        : lambda_(scenario.lambda()),
          shards_(make_shards(scenario, parameters)),
          prefetch_(scenario.workers.pull == Pull::prefetch),
          tells_buffers_apart_(scenario.model.gradients) {}

    void see(Time now, RoleId role, const Event& event, const Actions& actions) {
        if (std::holds_alternative<Applied>(event)) ++made_[role];
        if (role == 0 || role > lambda_) return;
        Its& it = workers_[role];
        hear(now, it, event);
        for (const auto& action : actions.list) {
            if (const auto* release = std::get_if<Release>(&action)) let_go(it, release->buffer);
            if (const auto* place = std::get_if<Place>(&action))
                demand(!tells_buffers_apart_ || !it.computes || place->whole != it.weights,
                       "weights were written while a gradient was computed on them");
            if (const auto* compute = std::get_if<Compute>(&action)) begin(now, it, *compute);
            if (const auto* send = std::get_if<Send>(&action)) tell(it, *send);
        }
        demand(it.unpushed == 0 || it.unpushed == shards_.used(), "a gradient was pushed to some shards only");
        if (std::exchange(it.unpushed, 0) == 0) return;
        const Version first = it.parts.begin()->second.pushed;
        it.mixed +=
            std::any_of(it.parts.begin(), it.parts.end(), [&](auto& part) { return part.second.pushed != first; });
    }
    void at_end(const Ledger& ledger) const {
        for (const auto& row : ledger.workers) {
            const auto& it = workers_.at(row.worker + 1);
            demand(it.computed - it.pushed <= 1, "more than one gradient waits to be pushed");
            demand(row.mixed >= it.mixed && row.mixed <= it.mixed + it.computed - it.pushed,
                   "another number of gradients was computed on mixed versions");
            if (prefetch_)
                demand(row.inquiries == it.begun * shards_.used(), "not every shard was asked once a gradient");
        }
    }

private:
    struct Part {
        Version version = 0, before = 0;  ///< the newest that came, and that came before this nanosecond
        Time came_ns = -1;
        Version read = 0, pushed = 0;  ///< of the gradient that is computed or waits, and of the last one pushed
        bool asked = true;
        ActionId push = 0;
        int held = 0;  ///< messages of it that the worker holds
    };
    struct Its {
        std::map<RoleId, Part> parts;
        std::map<BufferId, RoleId> messages;  ///< where buffers are told apart
        std::int64_t begun = 0, computed = 0, pushed = 0, mixed = 0;
        int unpushed = 0;  ///< parts that this step has pushed
        bool computes = false, stops = false;
        BufferId weights = no_buffer;
    };

    void hear(Time now, Its& it, const Event& event) {
        if (const auto* taken = std::get_if<Taken>(&event))
            for (auto& [shard, part] : it.parts)
                if (part.push == taken->id) part.push = 0;
        if (std::holds_alternative<GradientReady>(event)) ++it.computed;
        if (std::holds_alternative<GradientReady>(event) || std::holds_alternative<Cancelled>(event))
            it.computes = false;
        const auto* delivered = std::get_if<Delivered>(&event);
        if (delivered == nullptr) return;
        if (std::holds_alternative<Stop>(delivered->message)) it.stops = true;
        Part& part = it.parts[delivered->from];
        if (std::holds_alternative<Weights>(delivered->message) || std::holds_alternative<Proceed>(delivered->message))
            demand(std::exchange(part.asked, false), "a shard answered without being asked");
        const auto* weights = std::get_if<Weights>(&delivered->message);
        if (weights == nullptr) return;
        demand(weights->version <= made_[delivered->from], "weights of a version that was never made");
        demand(weights->version > part.version, "weights that were there already");
        if (part.came_ns < now) part.before = part.version;
        part.version = weights->version;
        part.came_ns = now;
        if (!tells_buffers_apart_) return;
        it.messages[delivered->payload.buffer] = delivered->from;
        demand(++part.held == 1, "more than one message of a shard lies at a worker");
    }
    void let_go(Its& it, BufferId buffer) {
        if (!tells_buffers_apart_) return;
        if (const auto found = it.messages.find(buffer); found != it.messages.end()) {
            --it.parts[found->second].held;
            it.messages.erase(found);
            return;
        }
        demand(!it.computes || buffer != it.weights, "weights were let go while a gradient was computed on them");
    }
    void begin(Time now, Its& it, const Compute& compute) {
        demand(!it.computes, "two gradients were computed at once");
        demand(it.computed == it.pushed, "a gradient was begun before the one before it was handed over");
        demand(!it.stops, "a gradient was begun after the end");
        it.computes = true;
        it.weights = compute.weights;
        for (int shard = 0; shard < shards_.used(); ++shard) {
            Part& part = it.parts[shards_.role(shard)];
            demand(!prefetch_ || !part.asked, "a gradient was begun before all had answered");
            demand(it.begun > 0 || !part.asked, "the first gradient was begun before all had said a word");
            // What came at this very moment may not be in its place yet: the push tells.
            part.read = prefetch_ || part.came_ns < now ? part.version : -1;
        }
        ++it.begun;
    }
    void tell(Its& it, const Send& send) {
        Part& part = it.parts[send.to];
        if (std::holds_alternative<Inquiry>(send.message)) {
            demand(!std::exchange(part.asked, true), "a shard was asked while it owed an answer");
            demand(it.computes, "a shard was asked otherwise than with the begin of a gradient");
        }
        const auto* push = std::get_if<Push>(&send.message);
        if (push == nullptr) return;
        for (const auto& [shard, other] : it.parts)
            demand(other.push == 0 || it.unpushed > 0, "a gradient was pushed while another one was not taken");
        if (it.unpushed++ == 0) ++it.pushed;
        part.push = send.id;
        demand(push->count == 1 && push->worker_seq == it.pushed - 1, "gradients were merged or dropped");
        demand(push->read_version >= part.pushed, "versions ran backwards");
        if (part.read >= 0)
            demand(push->read_version == part.read, "a gradient was pushed as computed on what it was not");
        else
            demand(push->read_version >= part.before, "a part that was there was not swapped in");
        part.pushed = push->read_version;
        const auto& range = shards_.range(shards_.shard_of(send.to));
        demand(send.payload.first == range.first && send.payload.count == range.count,
               "a shard was pushed what is not its part");
    }

    std::map<RoleId, Its> workers_;
    std::map<RoleId, Version> made_;
    int lambda_;
    Shards shards_;
    bool prefetch_, tells_buffers_apart_;
};

}  // namespace rubato::test
