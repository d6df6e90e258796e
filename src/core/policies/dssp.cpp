#include "core/policies/dssp.hpp"

#include <algorithm>

namespace rubato {

Dssp::Dssp(int lambda, const DsspSpec& spec)
    : spec_(spec),
      counts_(lambda),
      table_(lambda),
      grants_(static_cast<std::size_t>(lambda), 0),
      held_ns_(static_cast<std::size_t>(lambda), 0),
      by_count_(lambda),
      by_worker_(lambda),
      sorter_(lambda) {
    rank_all();
}

// Algorithm 1, with the count of the push first and the waiting at the end.
void Dssp::on_applied(Time now, Orders& orders) {
    const WorkerId worker = pushed_;
    unrank(worker);
    const bool rose = counts_.push(worker);
    if (spec_.table_on_every_push) note_push(worker, pushed_ns_);
    rank(worker);
    if (may_go_on(worker, orders))
        orders.release.push_back(worker);
    else
        hold(worker, now);
    let_go(worker, rose, now, orders);
}

void Dssp::on_resume() {
    const Counts before = counts_;
    counts_.revive();
    rank_all();
    for (WorkerId worker = 0; worker < counts_.size(); ++worker)
        if (before.retired(worker) && gap(worker) > spec_.lower_bound) hold(worker, pushed_ns_);
}

void Dssp::note_push(WorkerId worker, Time now) {
    Time& waited = held_ns_[at(worker)];
    table_.push(worker, now, spec_.intervals_with_waits ? 0 : -waited, spec_.intervals_from_start);
    waited = 0;
}

bool Dssp::may_go_on(WorkerId worker, Orders& orders) {
    auto& left = grants_[at(worker)];
    if (left > 0 && !spec_.keep_grants && !fastest(worker)) left = 0;
    if (left > 0) {
        --left;
        return true;
    }
    if (gap(worker) <= spec_.lower_bound) return true;
    if (!fastest(worker)) return false;
    const std::int64_t granted = consult(worker, orders);
    if (granted == 0) return false;
    left = granted - (spec_.exact_grants ? 1 : 0);  // D5: the OK that follows is the first of them, or is not
    return true;
}

std::int64_t Dssp::consult(WorkerId worker, Orders& orders) {
    if (!spec_.table_on_every_push) {
        unrank(worker);
        note_push(worker, pushed_ns_);
        rank(worker);
    }
    const WorkerId slowest = slowest_by_rank();
    ControllerRow& row = orders.controller.emplace_back();
    row.time_ns = pushed_ns_;
    row.worker = worker;
    row.pushes = counts_.of(worker);
    row.gap = gap(worker);
    const PushTimes& fast = table_.of(worker);
    row.last_push_ns = fast.last_ns;
    row.interval_ns = fast.interval_ns;
    row.slowest = slowest;
    if (slowest < 0) return 0;
    row.slowest_pushes = counts_.of(slowest);
    const PushTimes& slow = table_.of(slowest);
    row.slowest_last_push_ns = slow.last_ns;
    row.slowest_interval_ns = slow.interval_ns;
    row.r_limit = spec_.r_max;
    // Strict: the iteration that the last granted one ends in must not be further ahead than the upper bound.
    if (spec_.mode == DsspSpec::Mode::strict)
        row.r_limit = std::max<std::int64_t>(-1, spec_.lower_bound + spec_.r_max - gap(worker));
    const Prediction found = synchronize(fast, slow, row.r_limit, spec_.r_max, spec_.smallest_of_ties);
    row.granted = found.r;
    row.predicted_ns = found.fast_ns;
    row.slowest_predicted_ns = found.slow_ns;
    return found.r;
}

void Dssp::hold(WorkerId worker, Time now) {
    held_ns_[at(worker)] = now;
    // D7: until the next push of the slowest, or until the lead is within the lower bound. D9: by name, or by count.
    if (spec_.mode == DsspSpec::Mode::literal_next || !spec_.look_at_every_push)
        by_worker_.add(slowest_by_count(), worker);
    else
        by_count_.add(counts_.of(worker) - spec_.lower_bound, worker);
}

void Dssp::let_go(WorkerId moved, bool rose, Time now, Orders& orders) {
    const auto first = static_cast<std::ptrdiff_t>(orders.release.size());
    by_worker_.take(moved, orders.release);
    if (spec_.mode != DsspSpec::Mode::literal_next) {
        const auto near = [&](WorkerId it) {
            return counts_.retired(moved) || counts_.of(it) - counts_.of(moved) <= spec_.lower_bound;
        };
        const auto still = std::partition(orders.release.begin() + first, orders.release.end(), near);
        for (auto it = still; it != orders.release.end(); ++it) by_worker_.add(moved, *it);
        orders.release.erase(still, orders.release.end());
    }
    if (rose) by_count_.take_until(counts_.lowest(), orders.release);
    for (auto it = orders.release.begin() + first; it != orders.release.end(); ++it)
        held_ns_[at(*it)] -= now;  // minus how long it waited
    sorter_.sort(orders.release);
    if (barrier() && !orders.release.empty()) {
        orders.release.clear();
        orders.round = true;
    }
}

// A worker without a batch is waited for no longer; in a round it has done its part.
void Dssp::on_idle(WorkerId worker, Orders& orders) {
    unrank(worker);
    if (barrier()) {
        counts_.push(worker);
        return rank(worker);
    }
    const bool rose = counts_.retire(worker);
    let_go(worker, rose, pushed_ns_, orders);
}

void Dssp::on_lost(WorkerId worker, Orders& orders) {
    by_count_.remove(worker);
    by_worker_.remove(worker);
    grants_[at(worker)] = 0;
    on_idle(worker, orders);
}

// Its intervals begin anew: the time that it was away is none.
void Dssp::on_back(WorkerId worker) {
    counts_.revive(worker);
    table_.forget(worker);
    held_ns_[at(worker)] = 0;
    rank(worker);
    if (gap(worker) > spec_.lower_bound) hold(worker, pushed_ns_);
}

WorkerId Dssp::slowest_by_count() {
    if (spec_.slowest != DsspSpec::Slowest::oldest) return counts_.slowest();
    return ranked_.empty() ? -1 : ranked_.begin()->second;
}

WorkerId Dssp::slowest_by_rank() {
    if (spec_.slowest == DsspSpec::Slowest::count) return counts_.slowest();
    return ranked_.empty() ? -1 : ranked_.begin()->second;
}

void Dssp::rank(WorkerId worker) {
    if (spec_.slowest == DsspSpec::Slowest::count) return;
    const PushTimes& times = table_.of(worker);
    if (spec_.slowest == DsspSpec::Slowest::oldest)
        ranked_.insert({{counts_.of(worker), times.last_ns}, worker});
    else if (times.known())
        ranked_.insert({{-times.interval_ns, 0}, worker});
}

void Dssp::unrank(WorkerId worker) {
    if (spec_.slowest == DsspSpec::Slowest::count) return;
    const PushTimes& times = table_.of(worker);
    ranked_.erase(spec_.slowest == DsspSpec::Slowest::oldest
                      ? std::pair{std::pair{counts_.of(worker), times.last_ns}, worker}
                      : std::pair{std::pair{-times.interval_ns, Time{0}}, worker});
}

void Dssp::rank_all() {
    ranked_.clear();
    for (std::size_t i = 0; i < grants_.size(); ++i)
        if (!counts_.retired(static_cast<WorkerId>(i))) rank(static_cast<WorkerId>(i));
}

std::vector<Wait> Dssp::waiting() const {
    std::vector<Wait> out;
    const WorkerId slowest = counts_.slowest();
    for (std::size_t i = 0; i < grants_.size(); ++i) {
        const auto worker = static_cast<WorkerId>(i);
        if (by_count_.key(worker) != WaitLists::nowhere) out.push_back({worker, slowest});
        if (by_worker_.key(worker) != WaitLists::nowhere)
            out.push_back({worker, static_cast<WorkerId>(by_worker_.key(worker))});
    }
    return out;
}

}  // namespace rubato
