// Clocks of ranks are set by that of rank 0: the offset is taken from the quickest of many exchanges, as in Cristian's
// algorithm (F. Cristian, Probabilistic clock synchronization, 1989), at the start and once more at the end.
#include "exec/mpi/rank_run.hpp"

namespace rubato::exec {

/// The machine's own, from no particular time on.
Time RankRun::raw_clock() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void RankRun::align_clock(bool at_start) {
    constexpr int exchanges = 40;
    if (rank_ != 0) {
        asked_.clear();
        for (std::size_t i = 0; i < exchanges; ++i) {
            Note ask;
            ask.kind = Note::Kind::clock_ask;
            ask.sent_ns = raw_clock();
            mail_.note(0, ask);
            // Where rank 0 is done for, nobody answers.
            pump_until([&] { return asked_.size() > 2 * i || abort_ || abandoned_; });
        }
        Time best = INT64_MAX, offset = offset_ns_;
        for (std::size_t i = 0; i + 1 < asked_.size(); i += 2)
            if (asked_[i] < best) {
                best = asked_[i];
                offset = asked_[i + 1];
            }
        if (!at_start) {
            residual_ns_ = std::abs(offset - offset_ns_);
            return;
        }
        offset_ns_ = offset;
        Note ready;
        ready.kind = Note::Kind::ready;
        mail_.note(0, ready);
        pump_until([this] { return first_begin_ns_ || abort_; });
    } else if (at_start) {
        pump_until([this] {
            for (std::size_t i = 1; i < others_.size(); ++i)
                if (!others_[i].ready) return false;
            return true;
        });
        Note begin;
        begin.kind = Note::Kind::begin;
        first_begin_ns_ = raw_clock() - start_ns();
        begin.number = *first_begin_ns_;
        to_all(begin);
    }
    if (!at_start) return;
    begin_ = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(first_begin_ns_.value_or(0) - offset_ns_));
    // All times so far were by another beginning.
    worked_ns_ = looked_ns_ = moved_ns_ = pinged_ns_ = heard_first_ns_ = clock();
    for (auto& other : others_) other.heard_ns = clock();
}

}  // namespace rubato::exec
