// A worker of streaming DiLoCo (Douillard et al. 2025): takes steps all the time, hands on one fragment of its model
// after the other, tau / P steps apart, and merges what the driver makes of it `overlap` steps later, for which it
// waits where that has not come by then. Sums and messages go on beside its steps. average_driver.hpp has the driver.
#pragma once

#include "core/averaging/among.hpp"
#include "core/averaging/local_worker.hpp"
#include "core/averaging/tree_reduce.hpp"
#include "core/shards.hpp"

#include <deque>
#include <string>
#include <vector>

namespace rubato {

struct StreamWorkerConfig {
    WorkerId worker = 0;
    std::int64_t parameters = 0;
    DealerConfig data;
    int every = 1;             ///< steps between two exchanges, of which each is of the next fragment
    int overlap = 0;           ///< steps after which it needs what came of one; below `every`
    double keep = 0;           ///< what its own fragment counts beside the joint one
    std::vector<Range> parts;  ///< the fragments
    bool operator==(const StreamWorkerConfig&) const = default;
};

class StreamWorker : public LocalWorker {
public:
    /// state: what it goes on from.
    explicit StreamWorker(const StreamWorkerConfig& config, const WorkerState& state = {});

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return phase_ == Phase::finished; }
    WorkerRow books(Time now) const;
    bool operator==(const StreamWorker&) const = default;

private:
    /// For the first word, or a fragment that it needs; until its last fragment is taken; copying one; merging one; a
    /// step; no more steps.
    enum class Phase : std::uint8_t {
        waiting,
        held_up,
        copying,
        merging,
        computing,
        stepping,
        resting,
        down,
        finished
    };
    /// A joint fragment, until it is merged and passed on.
    struct Sent {
        Model model;
        Slice payload;
        RoleId from = 0;
        bool merged = false;
        bool operator==(const Sent&) const = default;
    };

    void on(Time now, const Start& event, Actions& actions);
    void on(Time now, const Delivered& event, Actions& actions);
    void on(Time now, const Taken& event, Actions& actions);
    void on(Time now, const GradientReady& event, Actions& actions);
    void on(Time now, const Cancelled& event, Actions& actions);
    void on(Time now, const Applied& event, Actions& actions);
    void on(Time now, const Mixed& event, Actions& actions);
    void on(Time now, const Abandoned& event, Actions& actions);
    void on(Time now, const Crashed& event, Actions& actions);
    void on(Time now, const Restarted& event, Actions& actions);
    /// Events that it is not told of.
    template <class Other>
    void on(Time now, const Other& event, Actions& actions);

    void on_model(Time now, const Delivered& event, const Model& model, Actions& actions);
    void on_share(Time now, const Delivered& event, const Share& share, Actions& actions);
    /// A wait for a model may be over.
    void go_on_with(Time now, const Delivered& event, const Model& model, Actions& actions);
    /// Between two steps.
    void at_boundary(Time now, Actions& actions);
    bool hands_on() const;
    bool needs() const;
    void merge(Time now, Actions& actions);
    /// Goes on from the joint model at that version, as far as its next fragment is concerned.
    void goes_on_from(const Model& model, Time asked_ns);
    /// Of the next fragment; without a copy the run ends before it has one.
    void contribute(Time now, BufferId copy, Actions& actions);
    void go_on_passing(Actions& actions);
    void drop(Actions& actions);
    std::deque<Sent>::iterator next_to_merge();
    void go_on_reducing(Time now, Actions& actions);
    void rest(Time now, Actions& actions);
    void try_leave(Actions& actions);
    void book(Time now) { LocalWorker::book(now, account(books_)); }
    Time& account(WorkerRow& books) const;
    Mix& mix(Phase phase, const Range& part, Time now, Actions& actions);
    const Range& part(std::int64_t exchange) const {
        return config_.parts[static_cast<std::size_t>(exchange) % config_.parts.size()];
    }
    // stream_worker_faults.cpp
    void on_membership(Time now, const Membership& change, Actions& actions);
    /// The joint model from which it begins anew.
    void on_whole(Time now, const Delivered& event, const Model& model, Actions& actions);
    /// The reduce begins anew, as soon as nothing of the old one is under way.
    void try_renew(Time now, Actions& actions);
    void reset_reduce(Actions& actions);
    void take_held(Time now, Actions& actions);
    void give_up(Actions& actions);

    StreamWorkerConfig config_;
    Phase phase_ = Phase::waiting;
    std::int64_t taken_ = 0;      ///< steps of the run; where it began anew, as if it had been there from the beginning
    std::int64_t handed_on_ = 0;  ///< fragments, one exchange each
    std::int64_t merged_ = -1;    ///< exchanges; that is the version that it goes on from. -1: no word yet
    Version version_ = -1;        ///< of the last fragment that has come
    std::deque<Sent> sent_;       ///< not merged, or not passed on
    std::size_t passed_ = 0;      ///< of those
    Time asked_ns_ = 0;
    Among among_;
    Broadcast broadcast_;
    TreeReduce reduce_;
    Slice kept_;         ///< its contribution to the last exchange, until that has made a version
    Share contributed_;  ///< what it said of that
    bool renews_ = false, given_up_ = false;
    BufferId sharing_ = no_buffer;
    ActionId share_ = 0, mixing_ = 0;
    Version stop_version_ = -1;  ///< of the last fragment that there will be
};

}  // namespace rubato
