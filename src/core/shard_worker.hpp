// The worker role where the server is sharded (core/shards.hpp), blocking pipeline.
//
// Words of all shards -> compute on the batch that shard 0 deals -> push each shard its part -> when all have taken
// theirs, ask each of them for newer weights (or wait for its OK first, or, where servers broadcast, for the weights)
// -> when all have answered, and their parts are in their places, compute, and so on until Stop.
#pragma once

#include "core/assembly.hpp"
#include "core/shards.hpp"
#include "core/worker_books.hpp"

#include <string>

namespace rubato {

struct ShardWorkerConfig {
    WorkerId worker = 0;
    Shards shards;
    Word word = Word::inquiry;  ///< how it hears that it may go on after a push
    bool all_deal = false;      ///< every shard names the batch, and all the same one; otherwise shard 0 alone does
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
    enum class Phase : std::uint8_t { waiting, computing, pushing, finished };

    /// What it knows of a shard that owns something.
    struct Side {
        int shard = 0;
        RoleId role = 0;
        Range range;
        Version version = 0;              ///< of the weights that it holds
        bool ready = false;               ///< has said the word that the next gradient waits for
        bool pushing = false;             ///< has not taken its part of the last gradient
        Time held_ns = 0, queued_ns = 0;  ///< said by it, for this wait
        std::int64_t sends_under_way = 0;
        std::int64_t replies = 0, replies_expected = -1;
        bool bye = false, left = false;  ///< the last word to it is said, and taken
        bool operator==(const Side&) const = default;
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
    /// Begins the next gradient once every shard is ready and nothing is left to be placed.
    void try_begin(Time now, Actions& actions);
    void inquire(Side& side, Actions& actions);
    /// Splits the wait that ends now: what the shard that answered last has said of it counts.
    void book_wait(Time now);
    void push(Time now, BufferId gradient, Actions& actions);
    void end_push(Time now, const Taken& last, Actions& actions);
    void cut_short(Time now, Actions& actions);
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
    Push record_for(const Side& side) const;
    Side& side_of(RoleId role);
    void close_books(Time now);
    Time& open_account(WorkerRow& books) const;
    ActionId next_id() { return ++last_id_; }

    ShardWorkerConfig config_;
    Phase phase_ = Phase::waiting;
    std::vector<Side> sides_;
    std::vector<Sending> sendings_;  ///< under way
    Assembly weights_;
    BufferId gradient_ = no_buffer;  ///< in the push under way
    Push record_;                    ///< of the gradient under way
    Batch batch_;                    ///< of the next one
    bool mixed_ = false;             ///< it is computed on several versions
    std::vector<Version> read_;      ///< which, by side
    ActionId compute_ = 0, last_id_ = 0;
    std::int64_t begun_ = 0, pushes_ = 0;
    bool stopping_ = false;
    bool cancelled_ = false;                      ///< by the end: said in the Byes
    std::size_t last_ = 0;                        ///< the side that answered last,
    Time last_sent_ns_ = 0, last_moving_ns_ = 0;  ///< when it did, and how long that moved
    Time since_ns_ = 0;                           ///< start of the present phase
    WorkerRow books_;
};

}  // namespace rubato
