// What a role asks of its driver. The order of the list is the order of obligation.
#pragma once

#include "core/in_place.hpp"
#include "core/mix.hpp"
#include "core/rows.hpp"
#include "core/sum_all.hpp"

#include <utility>
#include <vector>

namespace rubato {

/// Sends `message` and its payload on the channel (self, to, channel); ends in Taken. Holds the payload until then.
struct Send {
    static constexpr std::string_view kind = "send";
    ActionId id = 0;
    RoleId to = 0;
    Channel channel = Channel::control;
    Message message;
    Slice payload;
    Send() {}  // not the compiler's, which would fill all of it with zeros first
    Send(ActionId the_id, RoleId the_to, Channel the_channel, const Message& the_message, const Slice& the_payload)
        : id(the_id), to(the_to), channel(the_channel), message(the_message), payload(the_payload) {}
    bool operator==(const Send&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("to", self.to);
        field("channel", self.channel);
        field("message", self.message);
        field("payload", self.payload);
    }
};

/// Computes the gradient (mean over `batch`) at `weights` on the compute lane; ends in GradientReady or Cancelled.
/// by_layers: there is a LayerReady before, for each bucket of layers (core/collective/plan.hpp) but perhaps the last.
struct Compute {
    static constexpr std::string_view kind = "compute";
    ActionId id = 0;
    BufferId weights = no_buffer;
    Batch batch;
    std::int64_t worker_seq = 0;
    bool by_layers = false;
    bool operator==(const Compute&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("weights", self.weights);
        field("batch", self.batch);
        field("worker_seq", self.worker_seq);
        field("by_layers", Rare{self.by_layers, false});
    }
};

/// Asks for an early end of the Compute `target`, which still ends in exactly one event of its own.
struct Cancel {
    static constexpr std::string_view kind = "cancel";
    ActionId target = 0;
    bool operator==(const Cancel&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("target", self.target);
    }
};

/// What a worker does by itself between exchanges, on its compute lane; ends in Stepped. sum += weight * gradient,
/// unless sum is no_buffer; then a step of plain SGD, local -= learning_rate * gradient (local no_buffer: a new one,
/// from `weights`), unless both are no_buffer. Takes over the role's references to `sum` and `local`, which nobody else
/// has, and holds `weights` and `gradient`.
struct LocalStep {
    static constexpr std::string_view kind = "local-step";
    ActionId id = 0;
    BufferId weights = no_buffer;
    BufferId local = no_buffer;
    double learning_rate = 0;
    BufferId gradient = no_buffer;
    BufferId sum = no_buffer;
    double weight = 1;
    bool steps() const { return weights != no_buffer || local != no_buffer; }
    bool operator==(const LocalStep&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("weights", self.weights);
        field("local", self.local);
        field("learning_rate", self.learning_rate);
        field("gradient", self.gradient);
        field("sum", self.sum);
        field("weight", self.weight);
    }
};

/// accumulator += factor * gradient on the apply lane (accumulator no_buffer: a new one = factor * gradient); ends in
/// Folded. Takes over the role's reference to `accumulator` and holds `gradient`. Where the staleness rule looks at
/// weights: the present ones, `version`, which the role keeps until the completion, and the kept read_version.
struct Fold {
    static constexpr std::string_view kind = "fold";
    ActionId id = 0;
    BufferId accumulator = no_buffer;
    BufferId gradient = no_buffer;
    double factor = 1;
    BufferId weights = no_buffer;  ///< no_buffer: the rule looks at none
    Version version = 0;
    Version read_version = 0;
    WorkerId worker = -1;
    std::int64_t first = 0, count = 0;  ///< elements that it is about; count 0: all
    bool operator==(const Fold&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("accumulator", self.accumulator);
        field("gradient", self.gradient);
        field("factor", self.factor);
        field("weights", self.weights);
        field("version", self.version);
        field("read_version", self.read_version);
        field("worker", self.worker);
        field("first", Rare{self.first, 0});
        field("count", Rare{self.count, 0});
    }
};

/// The contents of `weights` are kept as those of `version`, unchanged, until Forget or the end of the run: a staleness
/// rule will look at them by their version. It is no reference of the role's.
struct Keep {
    static constexpr std::string_view kind = "keep";
    Version version = 0;
    BufferId weights = no_buffer;
    bool operator==(const Keep&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("version", self.version);
        field("weights", self.weights);
    }
};

/// Nobody looks at what was kept of `version` any more.
struct Forget {
    static constexpr std::string_view kind = "forget";
    Version version = 0;
    bool operator==(const Forget&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("version", self.version);
    }
};

/// One summand of a step: factor * gradient, computed on `read_version`.
struct Part {
    BufferId gradient = no_buffer;
    double factor = 1;
    Version read_version = 0;
    std::int32_t pushes = 1;  ///< pushes that arrive with it: 0 where a Fold has taken them already
    WorkerId worker = -1;     ///< whose gradient it is; -1: a sum
    bool operator==(const Part&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("gradient", self.gradient);
        field("factor", self.factor);
        field("read_version", self.read_version);
        field("pushes", self.pushes);
        field("worker", self.worker);
    }
};

/// One step of the optimizer: direction = sum of the parts [first_part, first_part + part_count) of Actions::parts, in
/// that order, each as the staleness rule has it; then the optimizer's rule with `learning_rate`. Makes one version.
struct Step {
    std::int32_t first_part = 0;
    std::int32_t part_count = 0;
    double learning_rate = 0;
    double momentum = -1;  ///< of this step; -1: as configured
    bool operator==(const Step&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("first_part", self.first_part);
        field("part_count", self.part_count);
        field("learning_rate", self.learning_rate);
        field("momentum", self.momentum);
    }
};

/// Takes the steps [first_step, first_step + step_count) of Actions::steps on the apply lane; ends in Applied. Takes
/// over the role's reference to `weights` (so the driver may work in place when nobody else holds it) and holds the
/// parts. A version that somebody else holds is never changed.
struct Update {
    static constexpr std::string_view kind = "update";
    ActionId id = 0;
    BufferId weights = no_buffer;
    Version from = 0;
    std::int32_t first_step = 0;
    std::int32_t step_count = 1;
    std::int64_t first = 0, count = 0;  ///< elements that it is about; count 0: all. Others of the result are anything
    bool operator==(const Update&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("weights", self.weights);
        field("from", self.from);
        field("first_step", self.first_step);
        field("step_count", self.step_count);
        field("first", Rare{self.first, 0});
        field("count", Rare{self.count, 0});
    }
};

/// Copies `part` into the same place of `whole` (no_buffer: a new one, with the contents of `weights`), in the apply
/// lane of a server or of a worker that overlaps, and the compute lane of any other worker; ends in Placed. A part
/// without a buffer: nothing is copied. Takes over the role's reference to `whole`, which nobody else has, and holds
/// `weights` and the part.
struct Place {
    static constexpr std::string_view kind = "place";
    ActionId id = 0;
    BufferId weights = no_buffer;
    BufferId whole = no_buffer;
    Slice part;
    bool operator==(const Place&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("weights", self.weights);
        field("whole", self.whole);
        field("part", self.part);
    }
};

/// Figures of `weights` at `version`; ends in Evaluated. Holds the weights.
struct Evaluate {
    static constexpr std::string_view kind = "evaluate";
    ActionId id = 0;
    BufferId weights = no_buffer;
    Version version = 0;
    bool operator==(const Evaluate&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("weights", self.weights);
        field("version", self.version);
    }
};

/// Saves the state of the run at `version`, the present one, which the server tells by saved() until it ends in Saved.
/// Holds the weights, and a trend that belongs to them. `rows`: gradient rows of this step that belong to what is
/// saved; the others are of the time after.
struct Save {
    static constexpr std::string_view kind = "save";
    ActionId id = 0;
    BufferId weights = no_buffer;
    Version version = 0;
    std::int64_t rows = 0;
    BufferId trend = no_buffer;  ///< what the weights have moved by lately, where the owner keeps it; [parameters]
    bool operator==(const Save&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("weights", self.weights);
        field("version", self.version);
        field("rows", self.rows);
        field("trend", Rare{self.trend, no_buffer});
    }
};

/// The state of the role's own optimizer, as it is once what was asked for before is done, belongs to `version`, which
/// may be saved.
struct KeepState {
    static constexpr std::string_view kind = "keep-state";
    Version version = 0;
    bool operator==(const KeepState&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("version", self.version);
    }
};

/// Ends one reference of the role to `buffer`.
struct Release {
    static constexpr std::string_view kind = "release";
    BufferId buffer = no_buffer;
    bool operator==(const Release&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("buffer", self.buffer);
    }
};

/// Ends in TimerFired at time `at_ns`, unless the role finishes first.
struct SetTimer {
    static constexpr std::string_view kind = "set-timer";
    ActionId id = 0;
    Time at_ns = 0;
    bool operator==(const SetTimer&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("at_ns", self.at_ns);
    }
};

/// The role's last action: it expects no further event and owns no buffer. Where the run diverged: the first gradient
/// whose loss was not finite (worker -1: it was an evaluation that found it).
struct Finish {
    static constexpr std::string_view kind = "finish";
    Status status = Status::finished;
    WorkerId worker = -1;
    std::int64_t worker_seq = -1;
    Version version = -1;
    bool operator==(const Finish&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("status", self.status);
        field("worker", self.worker);
        field("worker_seq", self.worker_seq);
        field("version", self.version);
    }
};

using Action = std::variant<Send, Compute, Cancel, Fold, Update, Evaluate, Save, Release, SetTimer, Finish, Keep,
                            Forget, LocalStep, Place, Mix, SumAll, KeepState>;

/// The output of one step. Drivers keep one and clear it, so that a step allocates nothing in the steady state.
struct Actions {
    std::vector<Action> list;
    std::vector<Step> steps;
    std::vector<Part> parts;
    std::vector<GradientRow> gradients;
    std::vector<UpdateRow> updates;
    std::vector<EvalRow> evals;
    std::vector<WorkerRow> workers;
    std::vector<ControllerRow> controller;
    std::vector<ShardRow> shards;
    std::vector<RoundRow> rounds;
    std::vector<ExchangeRow> exchanges;
    std::vector<IterationRow> iterations;
    std::vector<BucketRow> buckets;

    /// Appends an action made from its fields, in place: processors stall where a copy follows the fields at once.
    template <class A, class... Fields>
    A& add(Fields&&... fields) {
        if constexpr (std::is_constructible_v<A, Fields...>)
            return std::get<A>(list.emplace_back(std::in_place_type<A>, std::forward<Fields>(fields)...));
        else  // see emplace_in
            return std::get<A>(list.emplace_back(A{std::forward<Fields>(fields)...}));
    }
    /// Appends the Send of an M made from its fields.
    template <class M, class... Fields>
    void send(ActionId id, RoleId to, Channel channel, const Slice& payload, Fields&&... fields) {
        Send& it = add<Send>();
        it.id = id;
        it.to = to;
        it.channel = channel;
        emplace_in<M>(it.message, std::forward<Fields>(fields)...);
        it.payload = payload;
    }
    /// Whether there are rows. Those of a controller come with an update only.
    bool stated() const {
        return !gradients.empty() || !updates.empty() || !evals.empty() || !workers.empty() || !shards.empty() ||
               !rounds.empty() || !exchanges.empty() || !iterations.empty() || !buckets.empty();
    }
    /// Empties all but the rows.
    void clear_orders() {
        list.clear();
        if (steps.empty()) return;
        steps.clear();
        parts.clear();
    }
    void clear() {
        clear_orders();
        gradients.clear();
        updates.clear();
        evals.clear();
        workers.clear();
        controller.clear();
        shards.clear();
        rounds.clear();
        exchanges.clear();
        iterations.clear();
        buckets.clear();
    }
    bool operator==(const Actions&) const = default;
};

}  // namespace rubato
