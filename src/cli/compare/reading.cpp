#include "cli/compare/reading.hpp"

#include "cli/suggest.hpp"

#include <fmt/format.h>

#include <cmath>

namespace rubato::cli {
namespace {

/// Differences below this fraction of the seconds per gradient are told as agreement.
constexpr double agreement = 0.01;

std::string ranges(const std::vector<WorkerId>& workers) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < workers.size();) {
        std::size_t end = i;
        while (end + 1 < workers.size() && workers[end + 1] == workers[end] + 1) ++end;
        words.push_back(end - i < 2 ? std::to_string(workers[i]) : fmt::format("{}-{}", workers[i], workers[end]));
        i = end - i < 2 ? i + 1 : end + 1;
    }
    if (words.size() > 6) return fmt::format("{} and {} more", words.front(), workers.size() - 1);
    return one_of(words, "and");
}

/// What the cause is in the run, as a clause about `who`; "longer" is put in for the direction.
std::string clause(Cause cause, const std::string& who, const std::string& longer) {
    switch (cause) {
        case Cause::compute: return fmt::format("computing a gradient takes {} {}", who, longer);
        case Cause::push_queued: return fmt::format("pushes of {} wait {} before they move", who, longer);
        case Cause::push_moving: return fmt::format("pushes of {} are {} on the network", who, longer);
        case Cause::pull_request: return fmt::format("replies to {} take {} until they begin to move", who, longer);
        case Cause::pull_moving: return fmt::format("weights for {} are {} on the network", who, longer);
        case Cause::policy_wait: return fmt::format("the policy holds {} back {}", who, longer);
        case Cause::apply_wait:
            return fmt::format("requests of {} wait {} behind other work of the server", who, longer);
        case Cause::idle: return fmt::format("time without work of {} is {}", who, longer);
    }
    return {};
}

/// Mean over the workers of a line, per gradient of their own, as spent.
double spent(const GapLine& line, const Side& side) {
    double sum = 0, count = 0;
    for (const WorkerId w : line.workers) {
        const WorkerPhases& worker = side.workers[static_cast<std::size_t>(w)];
        if (!worker.any) continue;
        sum += worker.spent[line.cause];
        ++count;
    }
    return count > 0 ? sum / count : 0;
}

/// Which of the server's operations differ, for waits behind them.
std::string server_costs(const Side& predicted, const Side& measured) {
    const struct {
        const char* what;
        ServerCost Side::*cost;
    } costs[] = {{"an update", &Side::update}, {"taking in a push", &Side::push}, {"sending weights", &Side::pull}};
    std::vector<std::string> words;
    for (const auto& cost : costs) {
        const double a = (predicted.*cost.cost).seconds, b = (measured.*cost.cost).seconds;
        if (std::fabs(a - b) > 0.05 * std::max(a, b))
            words.push_back(fmt::format("{} takes it {} instead of {}", cost.what, duration_text(b), duration_text(a)));
    }
    return words.empty() ? "" : ": " + one_of(words, "and");
}

std::string percent(double fraction) {
    return fmt::format("{:+.3g} %", 100 * fraction);
}

}  // namespace

std::string duration_text(double seconds, bool sign) {
    // Times are whole nanoseconds: what is far below is left of a difference of sums.
    const double size = std::fabs(seconds) < 1e-12 ? 0 : std::fabs(seconds);
    if (size == 0) return "0 s";
    const auto [factor, unit] = size >= 1      ? std::pair(1.0, "s")
                                : size >= 1e-3 ? std::pair(1e3, "ms")
                                : size >= 1e-6 ? std::pair(1e6, "us")
                                               : std::pair(1e9, "ns");
    return sign ? fmt::format("{:+.3g} {}", seconds * factor, unit) : fmt::format("{:.3g} {}", seconds * factor, unit);
}

std::string who_text(const GapLine& line) {
    if (line.who == GapLine::Who::all) return "all workers";
    if (line.who == GapLine::Who::others) return "the other workers";
    return (line.workers.size() == 1 ? "worker " : "workers ") + ranges(line.workers);
}

std::string line_text(const GapLine& line) {
    return std::string(cause_names[static_cast<std::size_t>(line.cause)]) + " of " + who_text(line);
}

std::string reading_of(const Explanation& explanation, const Side& predicted, const Side& measured) {
    if (explanation.lines.empty()) return "There is nothing to explain: a side has no gradient in its window.";
    const double gap = explanation.gap() / explanation.predicted;
    const GapLine& top = explanation.lines.front();
    const double before = spent(top, predicted), after = spent(top, measured);
    std::string what = clause(top.cause, who_text(top), top.difference() > 0 ? "longer" : "less time");
    what += fmt::format(" ({} measured, {} predicted a gradient", duration_text(after), duration_text(before));
    if (before > 0) what += ", " + percent(after / before - 1);
    what += ")";
    if (top.cause == Cause::apply_wait) what += server_costs(predicted, measured);
    const double size = std::max(std::fabs(top.total), std::fabs(top.own)) / explanation.predicted;
    if (std::fabs(gap) < agreement && size < agreement)
        return fmt::format("Both sides agree: the gap is {} of a gradient's seconds, and no cause makes more.",
                           percent(gap));
    if (std::fabs(gap) < agreement)
        return fmt::format("Both sides agree within {}, but causes cancel; the largest: {}.", percent(gap), what);
    std::string text = fmt::format("A gradient takes {} {} than predicted, and {:.0f} % of that is due to {}: {}",
                                   duration_text(std::fabs(explanation.gap())), gap > 0 ? "more" : "less",
                                   100 * top.share, line_text(top), what);
    const double follows = top.total - top.difference();
    if (std::fabs(follows) > agreement * explanation.predicted)
        text += fmt::format("; at other places {} follow from it", duration_text(follows, true));
    return text + ".";
}

}  // namespace rubato::cli
