// What is to be done, what is done, and what came of it.
#pragma once

#include "cli/sweep/plan.hpp"
#include "cli/sweep/results.hpp"

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rubato::cli {

enum class PointState : std::uint8_t { waiting, running, elsewhere, finished, diverged, failed };

/// Of a row that says `status`.
PointState state_named(const std::string& status);

/// One point; plain bytes, so that it travels to a worker as it is.
struct Task {
    std::uint64_t identity = 0;
    std::uint64_t platform = 0;  ///< see Setting
    std::int64_t seed = 0;
    SettingId id;
    Phase phase = Phase::report;
    bool forks = false;  ///< see Setting
    bool apart = false;  ///< see Setting
};

/// What tuning chose for a setting.
struct Pick {
    std::int32_t choice = -1;          ///< -1: none of its runs came to a figure
    double mean = 0;                   ///< of the figure, over the tuning seeds
    int without = 0;                   ///< tuning runs of this choice without figure: diverged or failed
    std::vector<std::string> at_edge;  ///< tuned keys whose best value is the smallest or largest of those tried
};

/// The shard that this process works on: point i belongs to shard i % count + 1, a tuned setting as a whole.
struct Shard {
    int number = 1, count = 1;
};

/// Queues the points of a plan as they become known (those of a tuned setting once it is tuned) and keeps their states.
/// Results come as rows, whoever wrote them.
class Board {
public:
    /// The plan and the resolver must outlive it.
    Board(const Plan& plan, Resolver& resolver, Shard shard);

    /// Rows that were there before this sweep began; then begin(). Failed points among them are tried again.
    void take_earlier(const Results& results, const ResultRow& row) { take(results, row, true); }
    void begin();
    /// A row that appeared since, of this process or another.
    void take_later(const Results& results, const ResultRow& row) { take(results, row, false); }

    /// The next point to run; nothing where none is waiting.
    std::optional<Task> next();
    /// Takes a point back, to be the next one.
    void put_back(const Task& task);
    /// Another process has it.
    void leave(const Task& task);
    /// Points that other processes have, for another look at each.
    std::deque<Task> take_left();
    bool is_done(const Task& task) const;

    /// Counts of points that are known, by state.
    std::size_t count(PointState state) const { return counts_[static_cast<std::size_t>(state)]; }
    std::size_t done() const;
    /// All points of this process's shard, those included that wait for their tuning.
    std::size_t total() const { return total_; }
    std::size_t retried() const { return retried_; }        ///< failed earlier, tried again
    std::size_t skipped() const { return skipped_; }        ///< were done before
    std::size_t of_others() const;                          ///< rows of points that are not of this sweep
    std::size_t superseded() const { return superseded_; }  ///< rows that a later one of the same point replaces

    const Plan& plan() const { return plan_; }
    /// By index of the plan's settings; nothing while it is not known.
    const std::optional<Pick>& pick(std::size_t setting) const { return picks_[setting]; }
    /// Points of a setting that are reported, one a seed; empty while its tuning is not known.
    std::vector<Task> report_tasks(std::size_t setting) const;
    /// Report points that cannot run because nothing was picked, for the rows that say so. Once.
    std::deque<Task> take_hopeless() { return std::exchange(hopeless_, {}); }
    /// Another process has it: one more look later.
    void leave_hopeless(const Task& task) { hopeless_.push_back(task); }
    bool has_hopeless() const { return !hopeless_.empty(); }
    PointState state(const Task& task) const;
    /// Points that belong to the sweep as far as is known: without those to be reported while their tuning is not done.
    /// In the order of the sweep, as of its settings in aggregate.csv.
    std::vector<std::uint64_t> identities() const;
    /// Points that may belong to the sweep, all shards and whatever tuning picks.
    std::vector<std::uint64_t> possible() const;

private:
    struct Seen {
        PointState state = PointState::waiting;
        bool earlier = false;
        int generation = 0;  ///< of the table that it was read from
        double by = 0;       ///< figure to tune by; NaN: none
    };

    void take(const Results& results, const ResultRow& row, bool earlier);
    void add(const Task& task, std::size_t setting);
    void set_state(std::uint64_t identity, PointState state);
    Task task_of(std::size_t setting, const PlannedChoice& choice, Phase phase, std::int64_t seed) const;
    void add_reports(std::size_t setting);
    void tuned(std::size_t setting);
    Pick best_of(std::size_t setting) const;
    std::vector<std::string> at_edge(const PlannedSetting& planned, std::int32_t best) const;
    bool mine(std::size_t point) const {
        return static_cast<int>(point % std::size_t(shard_.count)) == shard_.number - 1;
    }

    const Plan& plan_;
    Resolver& resolver_;
    Shard shard_;
    int generation_ = -1;                           ///< of the header that the places are of
    std::size_t status_ = 0, by_ = 0;               ///< places in the file
    std::unordered_map<std::uint64_t, Seen> seen_;  ///< all rows
    struct Known {
        PointState state = PointState::waiting;
        std::uint32_t setting = 0;
        Phase phase = Phase::report;
    };
    std::unordered_map<std::uint64_t, Known> known_;  ///< points of this sweep (and shard)
    std::deque<Task> queue_, left_, hopeless_;
    std::vector<std::optional<Pick>> picks_;
    std::vector<std::size_t> untuned_;  ///< tuning runs of a setting that are still to come
    std::array<std::size_t, 6> counts_{};
    std::size_t total_ = 0, retried_ = 0, skipped_ = 0, superseded_ = 0;
};

}  // namespace rubato::cli
