// The state of a run between two updates: what a checkpoint holds of the roles, and what roles are made of again.
//
// It is a cut at an update boundary. Gradients that the owner of the version has not applied are not in it: their
// batches are in `again`, to be dealt once more to the same workers with the same numbers, so nothing counts twice.
#pragma once

#include "core/policy.hpp"
#include "core/rows.hpp"

#include <vector>

namespace rubato {

/// Where the dealer is in the data.
struct DealerState {
    struct Cursor {
        std::int32_t epoch = 0;
        std::int64_t first = 0;
        bool operator==(const Cursor&) const = default;
        template <class Self, class F>
        static void each(Self& self, F&& field) {
            field("epoch", self.epoch);
            field("first", self.first);
        }
    };
    std::int64_t dealt = 0;  ///< samples handed out
    std::int32_t round_epoch = 0;
    std::int64_t dealt_in_epoch = 0;  ///< rounds only
    Cursor shared;
    std::vector<Cursor> own;      ///< by worker
    std::vector<Batch> returned;  ///< given back, in that order
    bool operator==(const DealerState&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("dealt", self.dealt);
        field("round_epoch", self.round_epoch);
        field("dealt_in_epoch", self.dealt_in_epoch);
        field("shared", self.shared);
        field("own", self.own);
        field("returned", self.returned);
    }
};

/// An evaluation that was asked for and whose figures are not there; its weights are those of row.version.
struct PendingEvaluation {
    ActionId id = 0;
    EvalRow row;
    bool operator==(const PendingEvaluation&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("row", self.row);
    }
};

/// A batch that was dealt and whose gradient is in no update.
struct DealtBatch {
    WorkerId worker = 0;
    Batch batch;
    bool operator==(const DealtBatch&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("worker", self.worker);
        field("batch", self.batch);
    }
};

/// What a driver of averaging adds.
struct JointState {
    std::int64_t rounds = 0;          ///< that have made a version; cycles that have begun; exchanges
    std::vector<std::int64_t> means;  ///< by shard: that its state is made of
    std::vector<RoundRow> untold;     ///< of versions that are made, whose rounds were not over
    bool trend = false;               ///< of the joint model: saved with the weights
    bool operator==(const JointState&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("rounds", self.rounds);
        field("means", self.means);
        field("untold", self.untold);
        field("trend", self.trend);
    }
};

struct ServerState {
    Time now_ns = 0;
    Version version = 0;
    ActionId last_id = 0;
    std::int64_t accepted = 0, samples = 0;  ///< gradients and samples, all of them applied
    double mean_staleness = 0;               ///< of the last update
    double staleness_trend = 0;              ///< a running mean
    double loss_sum = 0;                     ///< since the last evaluation
    std::int64_t loss_count = 0;
    double next_evaluation = 0;  ///< in epochs
    Version evaluated = -1;      ///< the last version that an evaluation was asked for
    std::vector<PendingEvaluation> evaluations;
    std::int32_t pause = 0;  ///< for an evaluation: 0 none, 1 it waits for gradients in flight, 2 it is under way
    bool diverged = false;
    Version diverged_version = -1;  ///< where that was seen first: see Finish
    WorkerId diverged_worker = -1;
    std::int64_t diverged_seq = -1;
    Policy policy;
    DealerState dealer;
    std::vector<std::int64_t> begun;  ///< by worker: gradients that were applied, dropped or will never be heard of
    std::vector<DealtBatch> again;    ///< of one worker in the order in which they were dealt
    JointState joint;
    bool operator==(const ServerState&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("now_ns", self.now_ns);
        field("version", self.version);
        field("last_id", self.last_id);
        field("accepted", self.accepted);
        field("samples", self.samples);
        field("mean_staleness", self.mean_staleness);
        field("staleness_trend", self.staleness_trend);
        field("loss_sum", self.loss_sum);
        field("loss_count", self.loss_count);
        field("next_evaluation", self.next_evaluation);
        field("evaluated", self.evaluated);
        field("evaluations", self.evaluations);
        field("pause", self.pause);
        field("diverged", self.diverged);
        field("diverged_version", self.diverged_version);
        field("diverged_worker", self.diverged_worker);
        field("diverged_seq", self.diverged_seq);
        field("policy", self.policy);
        field("dealer", self.dealer);
        field("begun", self.begun);
        field("again", self.again);
        field("joint", Rare{self.joint, JointState{}});
    }
};

/// What a worker that takes steps of its own is made of again.
struct WorkerState {
    std::int64_t begun = 0;  ///< the number of its next gradient
    Version version = 0;     ///< of the joint model that it starts from
    WorkerRow books;
};

/// All roles of a run. Workers are made anew: of each there are only the number of its next gradient and its books.
struct RunState {
    ServerState server;
    std::vector<WorkerRow> books;  ///< by worker, up to server.now_ns
    bool operator==(const RunState&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("server", self.server);
        field("books", self.books);
    }
};

}  // namespace rubato
