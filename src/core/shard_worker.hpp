// The worker role where the server is sharded (core/shards.hpp).
//
// Blocking: words of all shards -> compute on the batch that shard 0 deals -> push each shard its part -> when all have
// taken theirs, ask each of them for newer weights (or wait for its OK first, or, where servers broadcast, for the
// weights) -> when all have answered, and their parts are in their places, compute, and so on until Stop.
//
// Overlapping: a push and a pull of depth one beside the computation, as with one server (core/overlap_worker.hpp). A
// gradient is pushed as a unit: the next one is handed over when all shards have taken their parts of the one before.
// Parts that come go into a copy of the model that is computed on, and between two gradients the copy takes its place.
//   prefetch: when it begins a gradient it asks every shard, and all answers are in their places before the next one.
//   latest:   between two gradients it takes the parts that are in their places, waits for none, and asks those shards
//             again whose answers it has had. It draws its own batches.
#pragma once

#include "core/assembly.hpp"
#include "core/dealer.hpp"
#include "core/let_go.hpp"
#include "core/shards.hpp"
#include "core/worker_books.hpp"

#include <string>

namespace rubato {

struct ShardWorkerConfig {
    WorkerId worker = 0;
    Shards shards;
    Word word = Word::inquiry;  ///< how it hears that it may go on after a push
    bool all_deal = false;      ///< every shard names the batch, and all the same one; otherwise shard 0 alone does
    bool overlaps = false;
    bool draws = false;  ///< overlapping, latest: its batches are its own, with this
    DealerConfig data;
    bool operator==(const ShardWorkerConfig&) const = default;
};

class ShardWorker {
public:
    explicit ShardWorker(const ShardWorkerConfig& config);

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return phase_ == Phase::finished; }
    /// Gradients that it has begun so far.
    std::int64_t begun() const { return begun_; }
    /// Where the time up to `now` went, what is under way included.
    WorkerRow books(Time now) const;
    bool operator==(const ShardWorker&) const = default;

private:
    enum class Phase : std::uint8_t { waiting, computing, ready, pushing, finished };

    /// What it knows of a shard that owns something.
    struct Side {
        int shard = 0;
        RoleId role = 0;
        Range range;
        Version version = 0;              ///< of the newest weights of it that have come,
        Version placed = 0;               ///< and of those that are in their place
        bool asked = true;                ///< owes an answer; the first word of all comes unasked
        Time asked_ns = 0;                ///< overlap: since when
        Time pull_ns = 0;                 ///< when what is in its place was asked for
        bool ready = false;               ///< has said the word that the next gradient waits for
        bool pushing = false;             ///< has not taken its part of the last gradient
        Time held_ns = 0, queued_ns = 0;  ///< said by it, for this wait
        std::int64_t sends_under_way = 0;
        std::int64_t replies = 0, replies_expected = -1;
        bool bye = false, left = false;  ///< the last word to it is said, and taken
        bool operator==(const Side&) const = default;
    };
    /// What a gradient is computed on, of one shard.
    struct Read {
        Version version = 0;
        Time pull_ns = 0;
        bool operator==(const Read&) const = default;
    };
    struct Gradient {
        Push record;             ///< but for what each shard is told of its own weights
        std::vector<Read> read;  ///< by side
        bool operator==(const Gradient&) const = default;
    };
    struct Sending {
        ActionId id = 0;
        std::size_t side = 0;
        enum class What : std::uint8_t { push, inquiry, bye } what = What::push;
        bool operator==(const Sending&) const = default;
    };

    void on(Time now, const Start& event, Actions& actions);
    void on(Time now, const Delivered& event, Actions& actions);
    void on(Time now, const Taken& event, Actions& actions);
    void on(Time now, const GradientReady& event, Actions& actions);
    void on(Time now, const Cancelled& event, Actions& actions);
    void on(Time now, const Placed& event, Actions& actions);
    void on(Time now, const Abandoned& event, Actions& actions);
    /// Events that it is not told of.
    template <class Other>
    void on(Time now, const Other& event, Actions& actions);

    /// Weights or Proceed.
    template <class Reply>
    void on_reply(Time now, Side& side, const Delivered& event, const Reply& reply, Actions& actions);
    void on_stop(Time now, Side& side, const Stop& stop, Actions& actions);
    /// Whether all is there that the next gradient waits for.
    bool may_begin() const;
    /// Begins the next gradient if there is one to begin.
    void try_begin(Time now, Actions& actions);
    /// The parts that are in their places are what the next gradient is computed on.
    void take_parts(Actions& actions);
    void inquire(Time now, Side& side, Actions& actions);
    /// Splits the wait that ends now: what the shard that answered last has said of it counts.
    void end_wait(Time now);
    void push(Time now, Actions& actions);
    void end_push(Time now, const Taken& last, Actions& actions);
    /// The gradient that is computed or ready comes to nothing, at the end of the run.
    void cut_short(Actions& actions);
    /// Says Bye to whom it can, and finishes when all have taken it.
    void try_leave(Actions& actions);
    void place(Actions& actions);
    template <class M, class... Fields>
    void send(Side& side, Sending::What what, Channel channel, const Slice& payload, Actions& actions,
              Fields&&... fields) {
        const ActionId id = next_id();
        sendings_.push_back({id, static_cast<std::size_t>(&side - sides_.data()), what});
        ++side.sends_under_way;
        actions.send<M>(id, side.role, channel, payload, std::forward<Fields>(fields)...);
    }
    Push record_for(const Side& side, const Gradient& gradient) const;
    void state_lost(const Side& side, const Gradient& gradient, Outcome outcome, Actions& actions) const;
    Side& side_of(RoleId role);
    void close_books(Time now);
    Time& open_account(WorkerRow& books) const;
    ActionId next_id() { return ++last_id_; }

    ShardWorkerConfig config_;
    Phase phase_ = Phase::waiting;
    std::vector<Side> sides_;
    std::vector<Sending> sendings_;  ///< under way
    Assembly weights_;
    Gradient gradient_;             ///< that is computed or ready
    BufferId ready_ = no_buffer;    ///< that gradient, once it is ready
    Gradient pushed_;               ///< of the push under way
    BufferId pushing_ = no_buffer;  ///< and its buffer
    std::size_t untaken_ = 0;       ///< sides that have not taken their part of it
    std::size_t unanswered_ = 0;    ///< sides that owe an answer
    Batch batch_;                   ///< of the next gradient
    bool mixed_ = false;            ///< it is computed on several versions
    ActionId compute_ = 0, last_id_ = 0;
    std::int64_t begun_ = 0, pushes_ = 0;
    bool stopping_ = false;
    bool cancelled_ = false;  ///< by the end: said in the Byes
    Answer answer_;           ///< the last one that has come
    Time since_ns_ = 0;       ///< start of the present phase
    Time seen_ns_ = 0;        ///< overlap: last event
    WorkerRow books_;
};

}  // namespace rubato
