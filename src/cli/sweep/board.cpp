#include "cli/sweep/board.hpp"

#include "cli/sweep/condition.hpp"
#include "cli/sweep/csv.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace rubato::cli {
namespace {

bool ended(PointState state) {
    return state == PointState::finished || state == PointState::diverged || state == PointState::failed;
}

}  // namespace

PointState state_named(const std::string& status) {
    if (status == "finished") return PointState::finished;
    return status == "diverged" ? PointState::diverged : PointState::failed;
}

Board::Board(const Plan& plan, Resolver& resolver, Shard shard)
    : plan_(plan), resolver_(resolver), shard_(shard), picks_(plan.settings.size()), untuned_(plan.settings.size()) {}

Task Board::task_of(std::size_t setting, const PlannedChoice& choice, Phase phase, std::int64_t seed) const {
    const PlannedSetting& planned = plan_.settings[setting];
    Task task;
    task.identity = identity_of(choice.content, plan_.label(planned), phase, seed);
    task.platform = choice.platform;
    task.seed = seed;
    task.id = {planned.setting, choice.choice};
    task.phase = phase;
    task.forks = choice.forks;
    task.apart = choice.apart;
    return task;
}

void Board::take(const Results& results, const ResultRow& row, bool earlier) {
    const auto& tuning = plan_.sweep->tuning;
    if (generation_ != results.generation()) {
        generation_ = results.generation();
        superseded_ = 0;  // another process has rewritten the table, and all of it comes again
        status_ = results.column("status");
        if (tuning) by_ = results.column(tuning->by);
    }
    Seen seen;
    seen.state = state_named(row.cells[status_]);
    seen.earlier = earlier;
    seen.generation = generation_;
    seen.by = tuning ? cell_number(row.cells[by_]) : 0;
    if (const auto before = seen_.find(row.identity); before != seen_.end()) {
        superseded_ += before->second.generation == generation_;
        seen.earlier |= before->second.generation != generation_ && before->second.earlier;
    }
    seen_[row.identity] = seen;
    const auto known = known_.find(row.identity);
    if (known == known_.end() || ended(known->second.state)) return;
    set_state(row.identity, seen.state);
    if (known->second.phase == Phase::tune && --untuned_[known->second.setting] == 0) tuned(known->second.setting);
}

void Board::set_state(std::uint64_t identity, PointState state) {
    Known& known = known_.at(identity);
    --counts_[static_cast<std::size_t>(known.state)];
    ++counts_[static_cast<std::size_t>(state)];
    known.state = state;
}

/// Queues a point, unless a row says that it is done.
void Board::add(const Task& task, std::size_t setting) {
    Known known{PointState::waiting, static_cast<std::uint32_t>(setting), task.phase};
    const auto seen = seen_.find(task.identity);
    if (seen != seen_.end()) {
        const bool again = seen->second.state == PointState::failed && seen->second.earlier;
        if (!again) known.state = seen->second.state;
        retried_ += again;
        skipped_ += !again && seen->second.earlier;
    }
    known_[task.identity] = known;
    ++counts_[static_cast<std::size_t>(known.state)];
    if (!ended(known.state)) queue_.push_back(task);
}

void Board::begin() {
    const SweepFile& sweep = *plan_.sweep;
    std::size_t point = 0;
    for (std::size_t i = 0; i < plan_.settings.size(); ++i) {
        const PlannedSetting& planned = plan_.settings[i];
        if (!sweep.tuning) {
            for (const std::int64_t seed : sweep.seeds) {
                if (!mine(point++)) continue;
                ++total_;
                add(task_of(i, plan_.choices[planned.first], Phase::report, seed), i);
            }
            continue;
        }
        if (!mine(i)) continue;
        total_ += planned.count * sweep.tuning->seeds.size() + sweep.seeds.size();
        for (std::uint32_t choice = 0; choice < planned.count; ++choice) {
            for (const std::int64_t seed : sweep.tuning->seeds) {
                const Task task = task_of(i, plan_.choices[planned.first + choice], Phase::tune, seed);
                add(task, i);
                untuned_[i] += !ended(known_.at(task.identity).state);
            }
        }
    }
    for (std::size_t i = 0; sweep.tuning && i < plan_.settings.size(); ++i)
        if (mine(i) && untuned_[i] == 0) tuned(i);
    // A platform is built once for all points on it that follow each other.
    std::unordered_map<std::uint64_t, std::size_t> order;
    for (const Task& task : queue_) order.try_emplace(task.platform, order.size());
    std::stable_sort(queue_.begin(), queue_.end(),
                     [&](const Task& a, const Task& b) { return order.at(a.platform) < order.at(b.platform); });
}

std::vector<std::uint64_t> Board::identities() const {
    std::vector<std::uint64_t> all = possible();
    std::erase_if(all, [this](std::uint64_t identity) { return !known_.contains(identity); });
    return all;
}

void Board::tuned(std::size_t setting) {
    picks_[setting] = best_of(setting);
    for (const Task& task : report_tasks(setting)) {
        const bool fresh = !known_.contains(task.identity);
        if (fresh) add(task, setting);
        if (fresh && picks_[setting]->choice < 0 && !queue_.empty() && queue_.back().identity == task.identity) {
            hopeless_.push_back(task);
            queue_.pop_back();
        }
    }
}

std::vector<Task> Board::report_tasks(std::size_t setting) const {
    std::vector<Task> tasks;
    const SweepFile& sweep = *plan_.sweep;
    const PlannedSetting& planned = plan_.settings[setting];
    const PlannedChoice* choice = &plan_.choices[planned.first];
    if (sweep.tuning) {
        if (!picks_[setting]) return {};
        for (std::uint32_t i = 0; i < planned.count; ++i)
            if (plan_.choices[planned.first + i].choice == picks_[setting]->choice)
                choice = &plan_.choices[planned.first + i];
    }
    for (const std::int64_t seed : sweep.seeds) tasks.push_back(task_of(setting, *choice, Phase::report, seed));
    return tasks;
}

/// Fewest runs without a figure first, since a value that sometimes diverges is no good one; then the smallest mean;
/// then the order of the file.
Pick Board::best_of(std::size_t setting) const {
    const PlannedSetting& planned = plan_.settings[setting];
    const auto& seeds = plan_.sweep->tuning->seeds;
    Pick best;
    for (std::uint32_t i = 0; i < planned.count; ++i) {
        const PlannedChoice& choice = plan_.choices[planned.first + i];
        Pick pick{choice.choice, 0, 0, {}};
        for (const std::int64_t seed : seeds) {
            const auto seen = seen_.find(task_of(setting, choice, Phase::tune, seed).identity);
            const bool usable =
                seen != seen_.end() && seen->second.state == PointState::finished && std::isfinite(seen->second.by);
            if (usable)
                pick.mean += seen->second.by;
            else
                ++pick.without;
        }
        const int usable = static_cast<int>(seeds.size()) - pick.without;
        if (usable == 0) continue;
        pick.mean /= usable;
        if (best.choice < 0 || std::tie(pick.without, pick.mean) < std::tie(best.without, best.mean)) best = pick;
    }
    if (best.choice >= 0) best.at_edge = at_edge(planned, best.choice);
    return best;
}

/// A key that the setting does not have has no edge: its values made no difference there.
std::vector<std::string> Board::at_edge(const PlannedSetting& planned, std::int32_t best) const {
    std::vector<std::string> keys;
    const auto& axes = plan_.sweep->tuning->axes;
    const auto number = [&](std::int32_t choice, std::size_t axis) {
        const Node& value = axes[axis].values[resolver_.tuned_values(choice)[axis]];
        return value.is_number() ? value.number : std::numeric_limits<double>::quiet_NaN();
    };
    const Node& resolved = resolver_.at({planned.setting, best}).loaded.tree;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        if (!value_at(resolved, axes[axis].key)) continue;
        const double value = number(best, axis);
        // Of what was tried here: a condition may have left some values of the axis out.
        bool smaller = false, larger = false;
        for (std::uint32_t i = planned.first; i < planned.first + planned.count; ++i) {
            const double other = number(plan_.choices[i].choice, axis);
            smaller |= other < value;
            larger |= other > value;
        }
        if (smaller != larger) keys.push_back(axes[axis].key);
    }
    return keys;
}

std::optional<Task> Board::next() {
    while (!queue_.empty()) {
        const Task task = queue_.front();
        queue_.pop_front();
        if (is_done(task)) continue;  // by another process meanwhile
        set_state(task.identity, PointState::running);
        return task;
    }
    return std::nullopt;
}

void Board::put_back(const Task& task) {
    set_state(task.identity, PointState::waiting);
    queue_.push_front(task);
}

void Board::leave(const Task& task) {
    set_state(task.identity, PointState::elsewhere);
    left_.push_back(task);
}

std::deque<Task> Board::take_left() {
    return std::exchange(left_, {});
}

bool Board::is_done(const Task& task) const {
    return ended(state(task));
}

PointState Board::state(const Task& task) const {
    const auto known = known_.find(task.identity);
    return known == known_.end() ? PointState::waiting : known->second.state;
}

std::size_t Board::done() const {
    return count(PointState::finished) + count(PointState::diverged) + count(PointState::failed);
}

std::vector<std::uint64_t> Board::possible() const {
    const auto& sweep = *plan_.sweep;
    std::vector<std::uint64_t> all;
    for (std::size_t i = 0; i < plan_.settings.size(); ++i) {
        const PlannedSetting& planned = plan_.settings[i];
        for (std::uint32_t c = 0; c < planned.count; ++c) {
            const PlannedChoice& choice = plan_.choices[planned.first + c];
            for (const std::int64_t seed : sweep.seeds) all.push_back(task_of(i, choice, Phase::report, seed).identity);
            if (!sweep.tuning) continue;
            for (const std::int64_t seed : sweep.tuning->seeds)
                all.push_back(task_of(i, choice, Phase::tune, seed).identity);
        }
    }
    return all;
}

std::size_t Board::of_others() const {
    std::size_t own = 0;
    if (shard_.count == 1) {
        for (const auto& [identity, seen] : seen_) own += known_.contains(identity);
    } else {  // the points of the other shards are this sweep's as well
        for (const std::uint64_t identity : possible()) own += seen_.contains(identity);
    }
    return seen_.size() - own;
}

}  // namespace rubato::cli
