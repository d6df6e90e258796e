// One line on a terminal that says how far a run is.
#pragma once

#include "trace/recorder.hpp"

#include <chrono>
#include <functional>
#include <string>

namespace rubato::cli {

/// The line, without its control characters: bar, fraction, gradients a second, time left, last validation error.
std::string progress_line(const trace::Progress& progress, double elapsed_s);

/// Draws on stderr, a few times a second; nothing where stderr is no terminal or the run is to be quiet.
class ProgressBar {
public:
    /// `look` is asked before each picture.
    ProgressBar(std::function<trace::Progress()> look, bool quiet);
    ProgressBar(const trace::Recorder& recorder, bool quiet);
    ~ProgressBar();
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;
    /// Cheap when it is too early for a new picture.
    void tick();

private:
    using Clock = std::chrono::steady_clock;

    std::function<trace::Progress()> look_;
    bool visible_;
    bool drawn_ = false;
    Clock::time_point begin_;
    Clock::time_point next_;
};

}  // namespace rubato::cli
