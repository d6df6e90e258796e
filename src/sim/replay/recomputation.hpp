// The driver of a replay that also computes: its clock is a log, and the actions of the replayed roles are carried out
// on real buffers.
#pragma once

#include "core/needs.hpp"
#include "core/role.hpp"
#include "learn/apply.hpp"
#include "learn/pool.hpp"
#include "trace/checkpoint.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace rubato::sim {

/// The log contradicts itself, such as a message that nobody sent; what() is one line.
struct InconsistentLog : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Two messages say the same; losses that are no numbers are equal.
bool same_message(const Message& a, const Message& b);

/// Sees what is computed, and says what is done. The members are called in causal order: each role's steps in their
/// order, and a delivery after its sending.
class RecomputationListener {
public:
    virtual ~RecomputationListener() = default;
    /// A gradient is computed; `recorded` is its completion in the log.
    virtual void on_gradient(RoleId role, const Compute& compute, const GradientReady& recorded, double loss) = 0;
    /// An evaluation is computed; only with RecomputationOptions::evaluate.
    virtual void on_evaluated(RoleId role, const Evaluate& evaluate, const Evaluated& recorded,
                              const Metrics& metrics) = 0;
    /// A step, after those of the two above that belong to its event. Returns what is to be carried out, which must
    /// stay valid until the next call; null where nothing more is.
    virtual const Actions* on_step(Time now, RoleId role, const Event& event, const Actions& recorded) = 0;
};

struct RecomputationOptions {
    int threads = 0;        ///< for gradients; 0: the machine's cores. The result does not depend on it
    bool evaluate = false;  ///< evaluations are computed, too
    /// Where the log begins with a checkpoint, this one; must outlive the recomputation.
    const trace::Checkpoint* resumed = nullptr;
    bool keeps_state = true;  ///< the optimizer's state there is of use; false: under another rule it begins anew
};

/// Carries out Compute, Fold, Update (and Evaluate) of a recorded run.
///
/// Ids of buffers in a log belong to a role: (role, id) leads to the contents. A delivered payload has the contents of
/// the matching Send: channels are first in, first out, so the k-th Delivered of (from, to, channel) is the k-th Send.
/// Logs of several hosts are merged by clocks that agree only nearly, so a Delivered may stand before its Send: a
/// role's steps wait until what they need is there.
///
/// The log of a role whose rank was lost breaks off, and what it sent last is only known from its receiver. At the end
/// of the log such a gradient is computed from what the receiver was told of it.
class Recomputation {
public:
    /// All must outlive the recomputation.
    Recomputation(const Scenario& scenario, const learn::Task& task, const RecomputationOptions& options,
                  RecomputationListener& listener);

    /// The next step of the log. Carries out this one and whatever waited for it; nothing once the listener has asked
    /// for an end. Throws InconsistentLog.
    void take(Time now, RoleId role, const Event& event, const Actions& actions);
    /// The log has ended. Carries out what waits for roles whose log broke off, as far as their receipts tell it.
    /// Throws InconsistentLog where steps wait for a message that never was sent.
    void end();
    /// Why steps of the log could not be carried out: what a lost role sent; empty where all were.
    const std::string& cut() const { return cut_; }
    /// The listener has asked for an end.
    bool stopped() const { return stopped_; }

    struct Evaluating {
        Evaluate action;
        Metrics metrics;
    };
    /// The evaluations of a role that are computed, and whose completion has not come.
    const std::map<ActionId, Evaluating>& evaluating(RoleId role) const { return seat(role).evaluating; }
    /// The sends of a role that lie at their receivers and of which the role does not know it yet.
    const std::vector<ActionId>& untaken(RoleId role) const { return seat(role).untaken; }
    /// Of the version owner's weights as it finished, or as they are now where it has not; empty where its run ended
    /// in disorder or an update is under way.
    std::optional<std::uint64_t> weights_hash();
    std::int64_t gradients() const { return gradients_; }      ///< computed
    std::int64_t evaluations() const { return evaluations_; }  ///< computed
    /// References to buffers that no role has ended; 0 when all have finished.
    std::int64_t outstanding() const { return buffers_.outstanding(); }

private:
    struct Step {
        Time now = 0;
        Event event;
        Actions actions;
    };
    /// A buffer that a role holds, `count` times.
    struct Held {
        BufferId handle = no_buffer;
        int count = 0;
        Version version = -1;  ///< of a model; -1: none
    };
    struct Computing {
        Compute action;
        BufferId weights = no_buffer, gradient = no_buffer;  ///< handles
        std::unique_ptr<learn::GradientJob> job;
        bool given = false;  ///< a part of the gradient is done, and the role may use it
    };
    struct Seat {
        std::deque<Step> waiting;
        std::map<BufferId, Held> buffers;                         ///< by the id in the log
        std::map<ActionId, Computing> computing;                  ///< under way
        std::map<ActionId, BufferId> results;                     ///< of folds, updates and placings under way: handles
        std::map<ActionId, std::pair<BufferId, BufferId>> steps;  ///< of own steps: weights and sum; no_buffer: none
        std::map<ActionId, Evaluating> evaluating;
        std::vector<ActionId> untaken;
        BufferId weights = no_buffer;  ///< id of those that Start or Applied gave last, or a Mix that makes a version
        ActionId making = 0;           ///< that one, under way
        std::unique_ptr<learn::Optimizer> optimizer;  ///< of a worker that takes steps with one
        bool abandoned = false;                       ///< what it still asks for is not carried out
        bool finished = false;
        bool down = false;
    };
    struct Sent {
        ActionId id = 0;
        Message message;
        BufferId handle = no_buffer;  ///< no_buffer: no payload
    };
    using ChannelKey = std::tuple<RoleId, RoleId, Channel>;  ///< from, to

    std::string name_of(RoleId role) const { return role_name(role, lambda_, sharded_); }
    Seat& seat(RoleId role) { return seats_.at(static_cast<std::size_t>(role)); }
    const Seat& seat(RoleId role) const { return seats_.at(static_cast<std::size_t>(role)); }
    bool ready(RoleId role, const Event& event) const;
    void carry_out(Time now, RoleId role, const Event& event, const Actions& actions);
    void run_waiting();
    /// Has what a waiting step of the role is delivered, if its sender's log broke off; whether it could.
    bool send_for_lost(RoleId role);
    /// The gradient of a push that its worker's log does not have: a handle.
    BufferId gradient_of_lost(RoleId worker, const Push& push);
    void submit(RoleId worker, Computing& computing);
    /// A reference to the model that the worker must have computed on; no_buffer where nobody has it.
    BufferId model_of_lost(RoleId worker, Version version);

    void give(RoleId role, BufferId id, BufferId handle, Version version = -1);
    BufferId handle(RoleId role, BufferId id) const;
    /// Takes one reference over from the role; the handle goes with it.
    BufferId take_over(RoleId role, BufferId id);

    // Events
    void on(RoleId role, const Start& event);
    void on(RoleId role, const Delivered& event);
    void on(RoleId role, const Taken& event);
    void on(RoleId role, const LayerReady& event);
    void on(RoleId role, const GradientReady& event);
    void on(RoleId role, const Cancelled& event);
    void on(RoleId role, const Folded& event);
    void on(RoleId role, const Applied& event);
    void on(RoleId role, const Evaluated& event);
    void on(RoleId role, const Abandoned& event);
    void on(RoleId role, const Stepped& event);
    void on(RoleId role, const Crashed& event);
    void on(RoleId role, const Restarted& event);
    void on(RoleId role, const Placed& event);
    void on(RoleId role, const Mixed& event);
    /// Events that move no buffer.
    template <class Other>
    void on(RoleId, const Other&) {}

    // Actions
    void act(RoleId role, const Send& action, const Actions&);
    void act(RoleId role, const Compute& action, const Actions&);
    void act(RoleId role, const Fold& action, const Actions&);
    void act(RoleId role, const Update& action, const Actions& all);
    void act(RoleId role, const Evaluate& action, const Actions&);
    void act(RoleId role, const Release& action, const Actions&);
    void act(RoleId role, const LocalStep& action, const Actions&);
    void act(RoleId role, const Place& action, const Actions&);
    void act(RoleId role, const Mix& action, const Actions&);
    learn::Optimizer& optimizer_of(RoleId role);
    void evaluate(const Evaluate& action, RoleId role, std::span<const float> weights);
    void act(RoleId role, const Keep& action, const Actions&) {
        kept_.keep(action.version, handle(role, action.weights));
    }
    void act(RoleId, const Forget& action, const Actions&) { kept_.forget(action.version); }
    /// Actions that move no buffer.
    template <class Other>
    void act(RoleId, const Other&, const Actions&) {}

    const learn::Task& task_;
    OptimizerSpec own_optimizer_;
    RecomputationOptions options_;
    RecomputationListener& listener_;
    int lambda_;
    bool sharded_;
    Needs needs_;
    std::vector<Seat> seats_;
    std::map<ChannelKey, std::deque<Sent>> channels_;
    std::vector<RoleId> awoken_;  ///< roles whose next step may be ready by now
    learn::BufferPool buffers_;
    learn::Kept kept_{buffers_};
    learn::Optimizer optimizer_;
    std::unique_ptr<learn::Pool> pool_;  ///< after what its threads work on
    BufferId initial_ = no_buffer;
    std::size_t starts_ = 0;
    std::int64_t gradients_ = 0, evaluations_ = 0;
    std::optional<std::uint64_t> hash_;
    bool finished_ = false, stopped_ = false;
    std::string cut_;
};

}  // namespace rubato::sim
