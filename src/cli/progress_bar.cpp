#include "cli/progress_bar.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace rubato::cli {
namespace {

std::string duration(double seconds) {
    if (!(seconds < 359999)) return "-";
    const auto whole = static_cast<long>(std::ceil(seconds));
    if (whole < 60) return fmt::format("{} s", whole);
    if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
    return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

}  // namespace

std::string progress_line(const trace::Progress& progress, double elapsed_s) {
    constexpr int width = 24;
    const double fraction = std::clamp(progress.fraction, 0.0, 1.0);
    const auto full = static_cast<int>(fraction * width);
    std::string line = "[" + std::string(static_cast<std::size_t>(full), '#') +
                       std::string(static_cast<std::size_t>(width - full), '.') + "]";
    line += fmt::format(" {:3.0f} %", 100 * fraction);
    if (elapsed_s > 0) line += fmt::format("  {:.3g} gradients/s", static_cast<double>(progress.gradients) / elapsed_s);
    // The first per cent says little about the rest.
    if (fraction >= 0.01) line += "  " + duration(elapsed_s * (1 - fraction) / fraction) + " left";
    if (progress.last_valid_error >= 0) line += fmt::format("  valid error {:.2f} %", 100 * progress.last_valid_error);
    return line;
}

ProgressBar::ProgressBar(std::function<trace::Progress()> look, bool quiet)
    : look_(std::move(look)), visible_(!quiet && isatty(STDERR_FILENO) != 0), begin_(Clock::now()), next_(begin_) {}

ProgressBar::ProgressBar(const trace::Recorder& recorder, bool quiet)
    : ProgressBar([&recorder] { return recorder.progress(); }, quiet) {}

ProgressBar::~ProgressBar() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::tick() {
    if (!visible_) return;
    const auto now = Clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    const double elapsed_s = std::chrono::duration<double>(now - begin_).count();
    std::fputs(("\r\x1b[K" + progress_line(look_(), elapsed_s)).c_str(), stderr);
    std::fflush(stderr);
    drawn_ = true;
}

}  // namespace rubato::cli
