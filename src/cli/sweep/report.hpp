// What a sweep says about itself: counts, progress, the best settings.
#pragma once

#include "cli/sweep/aggregate.hpp"

#include <chrono>
#include <string>

namespace rubato::cli {

/// "finished 12, diverged 1, failed 0, waiting 5, ..." as a table for people.
std::string counts_text(const Board& board, const std::string& directory);
/// The same as one JSON object. `seconds` of this sweep so far.
std::string counts_json(const Board& board, const std::string& directory, double seconds);

/// What tuning chose, a line a setting, at most so many; empty where nothing is tuned.
std::string picks_text(const Board& board, Resolver& resolver, std::size_t lines_max);
/// Warnings about it: best values at the edge of their grid, settings without any.
std::vector<std::string> pick_warnings(const Board& board, Resolver& resolver);

/// The best settings by the mean of a figure over their finished runs. Those with a run that lacks the figure
/// (diverged, failed, target not reached) come behind all others.
std::string best_text(const SweepFile& sweep, std::vector<SettingSummary> settings, const std::string& by, int count);
std::string best_json(const SweepFile& sweep, std::vector<SettingSummary> settings, const std::string& by, int count);

/// One line on a terminal; nothing elsewhere.
class SweepProgress {
public:
    explicit SweepProgress(bool visible);
    ~SweepProgress();
    SweepProgress(const SweepProgress&) = delete;
    SweepProgress& operator=(const SweepProgress&) = delete;
    /// Cheap when it is too early for a new picture.
    void tick(const Board& board, int running);

private:
    using Clock = std::chrono::steady_clock;

    bool visible_;
    bool drawn_ = false;
    Clock::time_point begin_, next_;
    std::size_t done_at_begin_ = 0;
    bool begun_ = false;
};

/// The line without its control characters. rate: points a second of this sweep.
std::string sweep_progress_line(std::size_t done, std::size_t failed, int running, std::size_t total, double rate);

}  // namespace rubato::cli
