// What drivers and workers of protocols that average say to each other; core/message.hpp has them among the others.
#pragma once

#include "core/types.hpp"

#include <string_view>

namespace rubato {

/// Averaging. Driver to workers, which pass it on to each other: the payload is the joint model at `version`; take
/// `steps` steps of your own from it, with `learning_rate`. Without a payload, the first word of the driver itself:
/// from the weights that you hold.
struct Model {
    static constexpr std::string_view kind = "model";
    Version version = 0;
    std::int32_t steps = 0;
    double learning_rate = 0;
    Time ready_ns = 0;  ///< when the last worker had done its part of the round before: until then others were held up
    std::int32_t group = 0;   ///< the workers among whom it is passed on: the number of a Membership
    std::int64_t number = 0;  ///< in phases, of the broadcast, from 1 on; or one of:
    /// All of it, to begin anew from; the same, and the present broadcast of a part of it is not for you.
    static constexpr std::int64_t whole = -1, whole_alone = -2;
    bool operator==(const Model&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("version", self.version);
        field("steps", self.steps);
        field("learning_rate", self.learning_rate);
        field("ready_ns", self.ready_ns);
        field("group", Rare{self.group, 0});
        field("number", Rare{self.number, 0});
    }
};

/// Averaging. Driver to workers: `worker` has crashed, or is there again, which is change `number` of this kind. To one
/// that is back: at once, itself, as absent, with the number of changes so far; when it takes part again, with number
/// -1, each worker that is absent; then itself, as there, with the number of changes so far.
struct Membership {
    static constexpr std::string_view kind = "membership";
    WorkerId worker = 0;
    bool there = false;
    std::int32_t number = 0;  ///< 1, 2, ...
    std::int64_t round = -1;  ///< (exchange) whose reduce begins anew among those who are left; -1: none does
    bool over = false;  ///< the run ends: no reduce or broadcast matters any more, and nothing more is sent to you
    bool operator==(const Membership&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("worker", self.worker);
        field("there", self.there);
        field("number", self.number);
        field("round", Rare{self.round, -1});
        field("over", Rare{self.over, false});
    }
};

/// Averaging. Worker to worker, and the first one to the driver: the payload is the mean of what `workers` workers have
/// made of the joint model at `version`, each counted as often as its weight, which are `weight` in all. Without a
/// payload: one of them was cut short, so there is no mean.
struct Share {
    static constexpr std::string_view kind = "share";
    Version version = 0;
    std::int32_t workers = 0;
    double weight = 0;
    Time ready_ns = 0;       ///< when the last of them was done with its steps
    std::int32_t group = 0;  ///< the workers that it is summed over: the number of a Membership
    std::int64_t round = 0;  ///< in rounds: which; of two rounds from one version the first was given up
    bool operator==(const Share&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("version", self.version);
        field("workers", self.workers);
        field("weight", self.weight);
        field("ready_ns", self.ready_ns);
        field("group", Rare{self.group, 0});
        field("round", Rare{self.round, 0});
    }
};

/// Averaging in phases. Driver to workers: at the end of the step under way hand on your part of shard `shard`, take
/// what you have been sent of the joint model, and go on with steps of `learning_rate`. The first word of all, of
/// shard -1: begin.
struct Exchange {
    static constexpr std::string_view kind = "exchange";
    std::int32_t shard = -1;
    double learning_rate = 0;
    std::int64_t number = 0;  ///< from 1 on
    bool operator==(const Exchange&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("shard", self.shard);
        field("learning_rate", self.learning_rate);
        field("number", Rare{self.number, 0});
    }
};

/// Averaging in phases. Worker to driver: it was asked at asked_ns, and between begin_ns, the end of a step, and end_ns
/// it copied its part of shard `shard`, in which `steps` steps are since it last did, and took what it had been sent.
struct Exchanged {
    static constexpr std::string_view kind = "exchanged";
    std::int32_t shard = 0;
    std::int64_t steps = 0;
    std::int64_t pulls = 0;  ///< steps of these that drew it towards the joint model
    Time asked_ns = 0, begin_ns = 0, end_ns = 0;
    std::int32_t group = 0;  ///< as its Share says
    bool operator==(const Exchanged&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("shard", self.shard);
        field("steps", self.steps);
        field("pulls", self.pulls);
        field("asked_ns", self.asked_ns);
        field("begin_ns", self.begin_ns);
        field("end_ns", self.end_ns);
        field("group", Rare{self.group, 0});
    }
};

/// Averaging in phases. Worker to driver: it has what was broadcast, and whom it passes it on to has it, too.
struct Received {
    static constexpr std::string_view kind = "received";
    Version version = 0;
    bool operator==(const Received&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("version", self.version);
    }
};

/// Averaging by gossip. Worker to worker: the payload is the model that it hands over, and `weight` what it gives with
/// it of the one weight that all have; the `number`-th of its sender, to worker `to`. To the monitor, without a
/// payload: that it has been taken. Monitor to worker, number -1: the last mean, with all the weight, since nobody is
/// left who has any.
struct Gossip {
    static constexpr std::string_view kind = "gossip";
    WorkerId to = 0;
    std::int64_t number = 0;
    double weight = 0;
    std::int32_t group = 0;  ///< who was there, as its sender knew it: the number of a Membership
    bool operator==(const Gossip&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("to", self.to);
        field("number", self.number);
        field("weight", self.weight);
        field("group", Rare{self.group, 0});
    }
};

}  // namespace rubato
