// The worker role (Gupta et al. 2015, section 3.2, learner of Rudra-base), blocking pipeline.
//
// Word from the server -> compute on the dealt batch -> push, blocking -> ask for newer weights (or wait for the
// server's OK first, or, where the server broadcasts, for the weights) -> and so on until Stop.
//
// A batch of more than batch_size samples is cut into several gradients (communication interval): each is added to a
// sum, and the next one is computed at the weights to which a step of SGD of the worker's own leads; then the sum is
// pushed. Where not every exchange brings weights, the own ones are kept over a push, too.
#pragma once

#include "core/let_go.hpp"

#include <string>

namespace rubato {

struct WorkerConfig {
    WorkerId worker = 0;
    RoleId server = 0;
    std::int64_t parameters = 0;  ///< elements of a gradient
    std::int64_t begun = 0;       ///< gradients of an earlier part of the run: the next one has this number
    int batch_size = 0;           ///< samples of one gradient at most; 0: whatever is dealt
    Word word = Word::inquiry;    ///< how it hears that it may go on after a push
    bool keeps_local = false;     ///< there are exchanges that bring no weights
    bool operator==(const WorkerConfig&) const = default;
};

class Worker {
public:
    Worker() = default;
    /// books: of an earlier part of the run.
    explicit Worker(const WorkerConfig& config, const WorkerRow& books = {})
        : config_(config), begun_(config.begun), books_(books) {
        books_.worker = config.worker;
        books_.gradients = config.begun;  // without those that are computed again
    }

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return phase_ == Phase::finished; }
    /// Gradients that it has begun so far.
    std::int64_t begun() const { return begun_; }
    /// Where the time up to `now` went, what is under way included.
    WorkerRow books(Time now) const;
    bool operator==(const Worker&) const = default;

private:
    enum class Phase : std::uint8_t { waiting, computing, stepping, pushing, down, finished };

    void on(Time now, const Start& event, Actions& actions);
    void on(Time now, const Delivered& event, Actions& actions);
    void on(Time now, const Taken& event, Actions& actions);
    void on(Time now, const GradientReady& event, Actions& actions);
    void on(Time now, const Cancelled& event, Actions& actions);
    void on(Time now, const Folded& event, Actions& actions);
    void on(Time now, const Applied& event, Actions& actions);
    void on(Time now, const Evaluated& event, Actions& actions);
    void on(Time now, const Saved& event, Actions& actions);
    void on(Time now, const TimerFired& event, Actions& actions);
    void on(Time now, const Interrupted& event, Actions& actions);
    void on(Time now, const PeerLost& event, Actions& actions);
    void on(Time now, const Abandoned& event, Actions& actions);
    void on(Time now, const Stepped& event, Actions& actions);
    void on(Time now, const Crashed& event, Actions& actions);
    void on(Time now, const Restarted& event, Actions& actions);
    void on(Time now, const PeerDown& event, Actions& actions);
    void on(Time now, const PeerBack& event, Actions& actions);
    void on(Time now, const Placed& event, Actions& actions);
    void on(Time now, const Mixed& event, Actions& actions);
    void on(Time now, const LayerReady& event, Actions& actions);
    void on(Time now, const Summed& event, Actions& actions);

    /// Weights or Proceed.
    template <class Reply>
    void on_reply(Time now, const Delivered& event, const Reply& reply, Actions& actions);
    /// Begins the next gradient of the batch at hand.
    void compute_next(Actions& actions);
    /// Takes a gradient that others of the same push came before or will follow, or whose step is to be kept.
    void take_local_step(BufferId gradient, std::int32_t samples, bool last, Actions& actions);
    void push(Time now, BufferId gradient, Actions& actions);
    void on_ok(Time now, const Delivered& event, const Ok& ok, Actions& actions);
    void on_halt(const Halt& halt, Actions& actions);
    /// The gradient under way comes to nothing, and the worker asks for the next batch.
    void give_up(Time now, Actions& actions);
    /// The same at the end of the run.
    void cut_short(Time now, Actions& actions);
    void on_stop(Time now, const Stop& stop, Actions& actions);
    void close_books(Time now);
    Time& open_account(WorkerRow& books) const;
    /// States what is under way, and will never come to its end.
    void state_lost(Outcome of_push, Actions& actions) const;
    void inquire(Actions& actions);
    /// Says Bye once nothing of its own is under way any more, then finishes when the Bye is taken.
    void try_leave(Time now, Actions& actions);
    ActionId next_id() { return ++last_id_; }

    WorkerConfig config_;
    Phase phase_ = Phase::waiting;
    BufferId weights_ = no_buffer;
    Version version_ = 0;
    BufferId gradient_ = no_buffer;  ///< in the push or the step under way
    BufferId local_ = no_buffer;     ///< weights that own steps have led to; no_buffer: none were taken from weights_
    BufferId sum_ = no_buffer;       ///< of the gradients of the next push so far
    double rate_ = 0;                ///< of own steps
    Push record_;                    ///< of the gradient under way, or of the sum that it will be in
    std::int32_t done_ = 0;          ///< samples of its batch that are in computed gradients
    ActionId compute_ = 0, bye_ = 0;
    ActionId push_ = 0;  ///< or the word that a gradient was given up
    ActionId last_id_ = 0;
    std::int64_t sends_under_way_ = 0;
    std::int64_t begun_ = 0;  ///< number of the next gradient that is not dealt
    std::int64_t pushes_ = 0, replies_ = 0;
    std::int64_t replies_expected_ = -1;  ///< said by Stop
    bool stopping_ = false;
    bool cancelled_ = false;  ///< by the end: said in the Bye
    bool halted_ = false;     ///< the gradient under way, or the next one, is no longer wanted
    Time since_ns_ = 0;       ///< start of the present phase
    WorkerRow books_;
};

}  // namespace rubato
