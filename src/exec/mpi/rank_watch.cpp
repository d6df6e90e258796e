// Who is alive, and who waits for whom.
#include "core/policy.hpp"
#include "exec/mpi/rank_run.hpp"
#include "exec/mpi/rank_silence.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rubato::exec {
namespace {

Time ns_of(double seconds) {
    return static_cast<Time>(std::min(seconds, 1e9) * 1e9);
}

}  // namespace

void RankRun::look_around() {
    const Time now = clock();
    // This rank stood still itself, so it knows nothing of the others' silence.
    if (const Time gap = now - std::exchange(looked_ns_, now); gap > 500'000'000) {
        heard_first_ns_ += gap;
        for (auto& other : others_) other.heard_ns += gap;
    }
    const bool signalled = told_to_end_ || (input_.interrupted != nullptr && *input_.interrupted);
    // Time is short after a signal, and what is written is not lost.
    if (signalled && !interrupting_ && input_.recorder != nullptr) input_.recorder->flush();
    if (signalled) interrupt();
    if (rank_ == 0) {
        if (input_.tick) input_.tick();
        watch_gathering(now);
        if (running_) watch_others(now);
        if (collecting_) comfort(now);
        if (collecting_ && !abandoned_) watch_records(now);
    } else if (running_ || ended_) {
        watch_first(now);
    }
}

// Whichever rank is told to end the run, rank 0 ends it for all.
void RankRun::interrupt() {
    if (interrupting_ || !running_) return;  // a signal before the run counts when it begins
    interrupting_ = true;
    if (rank_ != 0) {
        Note note;
        note.kind = Note::Kind::interrupted;
        mail_.note(0, note);
    } else if (!seats_.empty() && !seats_.front()->finished) {
        mail(0, Interrupted{});
    }
}

std::string rank_text(const RankMap& map, const std::vector<std::string>& hosts, int rank) {
    std::string roles;
    int count = 0;
    for (RoleId role = 0; role < map.roles(); ++role)
        if (map.rank_of(role) == rank && ++count <= 3)
            roles += (roles.empty() ? "" : ", ") + role_name(role, map.lambda, map.sharded);
    if (count > 3) roles += ", ...";
    const auto at = static_cast<std::size_t>(rank);
    return "rank " + std::to_string(rank) + " (" + roles + (at < hosts.size() ? " on " + hosts[at] : "") + ")";
}

std::string RankRun::who(int rank) const {
    return rank_text(map_, input_.hosts, rank);
}

std::string RankRun::stall_text(Time now) const {
    std::string text;
    const auto add = [&text](const std::string& clause) { text += (text.empty() ? "" : "; ") + clause; };
    for (int rank = 1; rank < map_.ranks(); ++rank) {
        const auto& it = others_[static_cast<std::size_t>(rank)];
        if (it.silent) add(silence_text(rank, now - it.heard_ns));
    }
    for (const auto& seat : seats_)
        if (const auto what = waiting(seat->role); !what.empty()) add(role_name(seat->id, scenario_) + " " + what);
    return text;
}

std::string RankRun::silence_text(int rank, Time silence) const {
    return who(rank) + " has not answered for " + std::to_string(silence / 1'000'000'000) + " s";
}

// A run stands still when no role of any rank takes a step and no lane computes, for so long as the scenario allows. A
// rank that is silent alone ends nothing: the others may well go on without it. But what they compute must come to
// something, which it never does where the policy withholds every update for the silent one.
void RankRun::watch_others(Time now) {
    const Time limit = ns_of(scenario_.stall_timeout_s);
    const Time interval = word_interval(limit).count();
    auto steps = static_cast<std::int64_t>(steps_.load());
    bool computes = working_ > 0, any_silent = false;
    for (std::size_t i = 1; i < others_.size(); ++i) {
        auto& it = others_[i];
        const bool quiet = now - it.heard_ns > std::max(limit, 2 * interval);
        // A launcher that ends the run ends its ranks one by one.
        if (quiet && !it.silent && !interrupting_ && input_.remark)
            input_.remark(silence_text(static_cast<int>(i), now - it.heard_ns) +
                          "; the run goes on as long as others make progress");
        it.silent = quiet;
        any_silent = any_silent || (quiet && !it.finished);
        steps += it.steps;
        // What a rank said long ago counts no more.
        if (it.computes && now - it.heard_ns < 4 * interval) computes = true;
    }
    if (steps != moved_ || computes) {
        moved_ = steps;
        moved_ns_ = now;
    }
    if (now - pinged_ns_ >= interval) {
        pinged_ns_ = now;
        Note ping;
        ping.kind = Note::Kind::ping;
        // No heap of pings for a rank that does not take them.
        for (int rank = 1; rank < map_.ranks(); ++rank)
            if (!others_[static_cast<std::size_t>(rank)].silent || now - moved_ns_ < interval) mail_.note(rank, ping);
    }
    if (now - moved_ns_ > limit || (any_silent && in_vain(now, limit))) abandon_run(Status::stalled, stall_text(now));
}

// Twice as many gradients as can be under way and wait, and for so long no update of them.
bool RankRun::in_vain(Time now, Time limit) {
    const auto come = std::accumulate(received_.begin(), received_.end(), std::int64_t{0});
    if (const auto made = updates_made(); made != updated_) {
        updated_ = made;
        updated_ns_ = now;
        come_then_ = come;
    }
    const int gradients = traits(scenario_.protocol, scenario_.lambda()).gradients;
    const std::int64_t many = std::int64_t{2} * scenario_.workers.communication.push_every;
    return now - updated_ns_ > limit && come - come_then_ > many * (scenario_.lambda() + gradients);
}

// Those whose record has come wait until they may leave, however long it takes to find out about the others.
void RankRun::comfort(Time now) {
    if (now - pinged_ns_ < word_interval(ns_of(scenario_.stall_timeout_s)).count()) return;
    pinged_ns_ = now;
    for (int rank = 1; rank < map_.ranks(); ++rank)
        if (others_[static_cast<std::size_t>(rank)].recorded) mail_.word(rank, leave_tag, alive_word);
}

// When the roles are done, a rank has something to say until all of its record has come.
void RankRun::watch_records(Time now) {
    const Time limit = ns_of(scenario_.stall_timeout_s);
    bool any = false;
    for (auto& it : others_) {
        it.silent = &it != &others_.front() && !it.recorded && now - std::max(it.heard_ns, collecting_ns_) > limit;
        any = any || it.silent;
    }
    if (any) abandon_run(Status::stalled, stall_text(now) + "; what it has in its books is lost");
}

// Without rank 0 there is neither a version nor a summary. At the end it says nothing, but takes what it is sent.
void RankRun::watch_first(Time now) {
    if (const auto left = mail_.sending(); std::exchange(sending_, left) != left && ended_) heard_first_ns_ = now;
    const Time silence = now - heard_first_ns_;
    const Time limit = ns_of(scenario_.stall_timeout_s) + 2'000'000'000;
    if (silence < limit) return;
    if (rank_ == 1 || silence > limit + 2'000'000'000) {
        const std::string own = stall_text(now);
        if (input_.remark)
            input_.remark(silence_text(0, silence) + "; " + (own.empty() ? "" : "this rank's " + own + "; ") +
                          "the run ends without a summary");
        fabric_.abort(3);
    }
}

}  // namespace rubato::exec
