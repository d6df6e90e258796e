// The worker role with an overlapping pipeline: a push and a pull, each of depth one, go on beside the computation.
//
// Push (Gupta et al. 2015, section 3.3, Rudra-adv*): a gradient that is ready waits until the one before it has been
// taken; then it is handed over, and the next one is begun at once. Gradients are never merged and never dropped.
//
// Pull: weights arrive in a second buffer and are swapped in between two gradients.
//   prefetch (Zhang et al. 2016, GaDei): a worker asks for the weights and the batch of its next gradient when it
//   begins
//            one, and waits for the answer before it begins that next one: one pull a gradient. So it computes on what
//            was current when it began the gradient before: one worker alone has staleness 2.
//   latest   (Rudra-adv*): it takes the newest weights that have come, never waits, and asks again between gradients
//            whenever it has had its answer. Nobody deals it batches: its k-th is a function of k (core/dealer.hpp).
//            With topology "tree-downcast" it does not even ask: weights come from the root or from another worker,
//            and it passes them on.
#pragma once

#include "core/dealer.hpp"
#include "core/feed.hpp"
#include "core/let_go.hpp"
#include "core/worker_books.hpp"

#include <string>

namespace rubato {

struct OverlapConfig {
    WorkerId worker = 0;
    RoleId server = 0;
    std::int64_t parameters = 0;  ///< elements of a gradient
    Pull pull = Pull::prefetch;
    DealerConfig data;       ///< latest: of its own batches
    std::int64_t begun = 0;  ///< gradients of an earlier part of the run: the next one has this number
    /// Who passes it the weights unasked: the root or a worker; -1: it asks the server for them.
    RoleId feeder = -1;
    std::vector<RoleId> feeds;  ///< workers to which it passes them on
    bool operator==(const OverlapConfig&) const = default;
};

class OverlapWorker {
public:
    OverlapWorker() = default;
    /// books: of an earlier part of the run.
    explicit OverlapWorker(const OverlapConfig& config, const WorkerRow& books = {})
        : config_(config), asked_(config.feeder < 0), begun_(config.begun), books_(books) {
        books_.worker = config.worker;
        books_.gradients = config.begun;  // without those that are computed again
        for (const RoleId role : config.feeds) receivers_.push_back({role});
    }

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return phase_ == Phase::finished; }
    /// Gradients that it has begun so far.
    std::int64_t begun() const { return begun_; }
    /// Where the time up to `now` went, what is under way included.
    WorkerRow books(Time now) const;
    bool operator==(const OverlapWorker&) const = default;

private:
    /// Of the computation; pushes and pulls go on beside it. ready: a gradient waits for the push before it.
    enum class Phase : std::uint8_t { waiting, computing, ready, down, finished };

    void on(Time now, const Start& event, Actions& actions);
    void on(Time now, const Delivered& event, Actions& actions);
    void on(Time now, const Taken& event, Actions& actions);
    void on(Time now, const GradientReady& event, Actions& actions);
    void on(Time now, const Cancelled& event, Actions& actions);
    void on(Time now, const Abandoned& event, Actions& actions);
    void on(Time now, const Crashed& event, Actions& actions);
    void on(Time now, const Restarted& event, Actions& actions);
    /// Events that no worker is told of.
    template <class Other>
    void on(Time now, const Other& event, Actions& actions);

    /// Weights or Proceed.
    template <class Reply>
    void on_reply(Time now, const Delivered& event, const Reply& reply, Actions& actions);
    /// Weights that come unasked.
    void on_fed(Time now, const Delivered& event, Actions& actions);
    void pass_on(Actions& actions);
    void on_stop(Time now, RoleId from, const Stop& stop, Actions& actions);
    /// Begins the next gradient if there is one to begin.
    void try_begin(Time now, Actions& actions);
    void inquire(Time now, Actions& actions);
    void push(Time now, Actions& actions);
    /// The gradient that is computed or ready comes to nothing, at the end of the run.
    void cut_short(Time now, Actions& actions);
    void try_leave(Time now, Actions& actions);
    void state_lost(Outcome of_push, Actions& actions) const;
    void close_books(Time now);
    Time& open_account(WorkerRow& books) const;
    ActionId next_id() { return ++last_id_; }
    bool is_fed() const { return config_.feeder >= 0; }

    /// The answer to the last inquiry, for the next gradient.
    struct Next : Answer {
        bool there = false;
        Batch batch;  ///< prefetch
        bool operator==(const Next&) const = default;
    };

    OverlapConfig config_;
    Phase phase_ = Phase::waiting;
    BufferId weights_ = no_buffer;  ///< that it computes on
    Version version_ = 0;
    BufferId next_weights_ = no_buffer;  ///< that have come since; no_buffer: none
    Version next_version_ = 0;           ///< the newest that it holds
    Time weights_asked_ns_ = 0;          ///< when it asked for weights_
    Next answer_;
    bool asked_ = true;  ///< the first word of all comes unasked
    Time asked_ns_ = 0;

    Push record_;                 ///< of the gradient that is computed or ready
    BufferId ready_ = no_buffer;  ///< that gradient, once it is ready
    Push pushed_;                 ///< of the push under way
    BufferId pushing_ = no_buffer;
    ActionId compute_ = 0, push_ = 0, bye_ = 0;
    ActionId last_id_ = 0;
    std::int64_t sends_under_way_ = 0;
    std::int64_t begun_ = 0;
    std::int64_t pushes_ = 0, replies_ = 0;
    std::int64_t replies_expected_ = -1;  ///< said by Stop; of one that is fed, by its feeder
    std::vector<Receiver> receivers_;     ///< of weights that it passes on
    int stops_ = 0;                       ///< words that the run is over: its server's, and its feeder's if it has one
    bool stopping_ = false;
    bool cancelled_ = false;  ///< by the end: said in the Bye
    Time since_ns_ = 0;       ///< start of the present phase
    Time seen_ns_ = 0;        ///< last event
    WorkerRow books_;
};

}  // namespace rubato
