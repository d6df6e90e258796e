// What a policy is asked and what it answers.
#pragma once

#include "core/rows.hpp"

#include <vector>

namespace rubato {

/// What the server has to arrange for a policy.
struct PolicyTraits {
    Word word = Word::inquiry;
    /// Batches are dealt to all workers at once, in worker order, and such a round never spans two epochs; otherwise
    /// each worker gets one when it asks.
    bool rounds = false;
    /// Gradients are held back and summed in the order of their workers; otherwise they are folded as they arrive.
    bool batch_order = false;
    /// Where workers inquire: on_ready is asked each time; otherwise they always go on.
    bool asks = false;
    /// Every gradient that is taken in is an update of its own.
    bool alone = false;
    /// It discards gradients, or has them given up.
    bool drops = false;
    /// It looks at how old the weights are that a gradient was computed on, and so asks of workers that they pull each
    /// time. One that drops is taken to do so.
    bool minds_staleness = false;
    /// It predicts, and states ControllerRows.
    bool controller = false;
    /// Of one update, where that is fixed: what rules see as lambda / n.
    int gradients = 1;
    bool operator==(const PolicyTraits&) const = default;
};

/// A gradient that has arrived and whose turn it is.
struct Arrival {
    WorkerId worker = 0;
    Version read_version = 0;  ///< that it was computed on
    Version version = 0;       ///< the present one, which an update with it would replace
    std::int32_t samples = 0;
    Time now_ns = 0;
};

enum class Ready : std::uint8_t { start, hold };

/// fire: the gradients taken in so far, this one included, make an update now. discard: this one is not taken in; it
/// is counted as dropped, and its batch is dealt again. Not both.
struct Decision {
    bool fire = false;
    bool discard = false;
};

/// What else is to be done, in this order; a policy adds to it. A server keeps one, so that nothing is allocated in
/// the steady state.
struct Orders {
    std::vector<WorkerId> cancel;           ///< what they compute on is no longer wanted
    bool fire = false;                      ///< after a loss: what was taken in so far makes an update now
    bool round = false;                     ///< policies with rounds: the present one is over, deal the next
    std::vector<WorkerId> release;          ///< may go on, in this order
    std::vector<ControllerRow> controller;  ///< what was predicted and granted
    bool any() const { return fire || round || !release.empty() || !cancel.empty() || !controller.empty(); }
    void clear() {
        cancel.clear();
        fire = round = false;
        release.clear();
        controller.clear();
    }
    bool operator==(const Orders&) const = default;
};

/// Who is held back, and by whom.
struct Wait {
    WorkerId worker = 0, whom = 0;
    bool operator==(const Wait&) const = default;
};

/// What a policy does that has nothing to say to a question; it hides what it answers by itself.
struct PolicyDefaults {
    void on_resume() {}
    void on_round(int) {}
    Ready on_ready(WorkerId) { return Ready::start; }
    void on_idle(WorkerId, Orders&) {}
    void on_lost(WorkerId, Orders&) {}
    void on_back(WorkerId) {}
    void on_applied(Time, Orders&) {}
    std::vector<Wait> waiting() const { return {}; }
    template <class Self, class F>
    static void each(Self&, F&&) {}
    bool operator==(const PolicyDefaults&) const = default;
};

}  // namespace rubato
