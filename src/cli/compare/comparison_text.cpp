// A comparison as tables for a terminal.
#include "cli/compare/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rubato::cli {
namespace {

/// Lines of the explanation that are shown; JSON has all.
constexpr std::size_t lines_shown = 12;
/// Rows of the histogram; more values of staleness share rows.
constexpr std::size_t histogram_rows = 16;

std::string percent(const std::optional<double>& fraction) {
    return fraction ? fmt::format("{:+.1f} %", 100 * *fraction) : "-";
}

/// Shown with a unit that suits it.
bool is_duration(const FigureKind& kind) {
    return std::string_view(kind.unit) == "s" || std::string_view(kind.unit) == "s/gradient";
}

/// Mean, and the standard deviation where there are several runs.
std::string cell(const FigureKind& kind, const std::optional<Statistics>& value) {
    if (!value) return "-";
    if (is_duration(kind)) {
        const std::string mean = duration_text(value->mean);
        return value->n < 2 ? mean : fmt::format("{} ±{}", mean, duration_text(value->std));
    }
    const std::string mean = fmt::format("{:.4g}", value->mean);
    return value->n < 2 ? mean : fmt::format("{} ±{:.2g}", mean, value->std);
}

/// fmt pads by columns, so that ± counts once.
std::string row(std::string_view name, const std::string& a, const std::string& b, const std::string& c,
                const std::string& d) {
    std::string line = fmt::format("  {:<32} {:>20} {:>20} {:>14}  {}", name, a, b, c, d);
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
}

std::string sides(const Comparison& comparison) {
    const auto side = [](const char* name, const std::vector<std::string>& runs, const std::string& backend) {
        std::string text = fmt::format("{:<10} {}", name, runs.front());
        if (runs.size() > 1) text += fmt::format(" and {} more", runs.size() - 1);
        return text + " (" + backend + ")\n";
    };
    return fmt::format("{:<10} {}\n", "scenario", comparison.scenario) +
           side("predicted", comparison.predicted, comparison.predicted_backend) +
           side("measured", comparison.measured, comparison.measured_backend);
}

std::string figures(const Comparison& comparison) {
    std::string out = "\n" + row("figure", "predicted", "measured", "error", "unit");
    for (const auto& figure : comparison.figures) {
        const auto zero = [](const std::optional<Statistics>& it) { return !it || it->mean == 0; };
        const bool cause = std::string_view(figure.kind->unit) == "s/gradient";
        if (cause && zero(figure.predicted) && zero(figure.measured)) continue;
        out += row(figure.kind->name, cell(*figure.kind, figure.predicted), cell(*figure.kind, figure.measured),
                   percent(figure.error),
                   cause                       ? "a gradient"
                   : is_duration(*figure.kind) ? ""
                                               : figure.kind->unit);
    }
    const std::size_t most = std::max(comparison.predicted.size(), comparison.measured.size());
    out += "  error: (predicted - measured) / measured";
    return out + (most > 1 ? "; mean ± standard deviation over the runs of a side\n" : "\n");
}

std::string histogram(const Comparison& comparison) {
    const auto &a = comparison.predicted_staleness, &b = comparison.measured_staleness;
    const std::size_t values = std::max(a.size(), b.size());
    const std::size_t width = (values + histogram_rows - 1) / histogram_rows;
    std::string out = "\n" + row("staleness of gradients", "predicted", "measured", "", "");
    for (std::size_t first = 0; first < values; first += width) {
        const std::size_t last = std::min(values, first + width) - 1;
        const auto share = [&](const std::vector<double>& side) {
            double sum = 0;
            for (std::size_t k = first; k <= last && k < side.size(); ++k) sum += side[k];
            return fmt::format("{:.2f} %", 100 * sum);
        };
        out += row(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last), share(a), share(b), "",
                   "");
    }
    return out + fmt::format("  ks: {:.4f}, the largest difference of the distribution functions\n", comparison.ks);
}

/// `passed`: whether differences were passed on between causes.
std::string gap_row(const std::string& name, const GapLine& line, bool passed) {
    const double elsewhere = line.total - line.difference();
    const double share = std::fabs(line.share) < 0.0005 ? 0 : 100 * line.share;
    return fmt::format("  {:<38} {:>10} {:>10} {:>11} {:>12} {:>8.1f} %\n", name, duration_text(line.predicted),
                       duration_text(line.measured), duration_text(line.difference(), true),
                       passed ? duration_text(elsewhere, true) : "", share);
}

std::string gap_table(const std::string& title, const std::vector<GapLine>& lines, std::size_t most, bool passed) {
    std::string out = "\n" + title + "\n";
    out += fmt::format("  {:<38} {:>10} {:>10} {:>11} {:>12} {:>10}\n", "cause", "predicted", "measured", "difference",
                       passed ? "passed on" : "", "of the gap");
    for (std::size_t i = 0; i < lines.size() && i < most; ++i) {
        if (lines[i].predicted == 0 && lines[i].measured == 0) continue;
        out += gap_row(line_text(lines[i]), lines[i], passed);
    }
    if (lines.size() > most) out += fmt::format("  {} smaller ones are in --json\n", lines.size() - most);
    return out;
}

std::string explanation_text(const Explanation& it) {
    if (it.lines.empty()) return "\n" + it.reading + "\n";
    std::string out = fmt::format("\nseconds of a worker per gradient: {} predicted, {} measured, gap {} ({:+.1f} %)\n",
                                  duration_text(it.predicted), duration_text(it.measured),
                                  duration_text(it.gap(), true), 100 * it.gap() / it.predicted);
    if (!it.steady) out += "over the whole run: the steady window cannot be told without all rows of gradients.csv\n";
    if (!it.followed) out += "waits are not followed to whom they were for: that takes all rows of gradients.csv\n";
    out += gap_table("causes: each wait with whom it was for, and differences passed on to what they follow from",
                     it.lines, lines_shown, true);
    out += gap_table("as spent, by worker (per gradient of its own)", it.by_worker, lines_shown, false);
    out += gap_table("as spent, over all workers", it.by_cause, causes, false);
    return out + "\n" + it.reading + "\n";
}

std::string substitutions_text(const std::vector<Substitution>& substitutions) {
    std::string out = "\nsimulated again with parts as measured\n";
    out += fmt::format("  {:<20} {:>14} {:>14} {:>12} {:>14}\n", "part", "a gradient", "samples/s", "staleness",
                       "gap closed");
    for (const auto& it : substitutions)
        out += fmt::format("  {:<20} {:>14} {:>14.4g} {:>12.4g} {:>12.1f} %\n", it.part, duration_text(it.seconds),
                           it.samples_per_s, it.staleness, 100 * it.closed);
    return out;
}

std::string verdict(const Comparison& comparison) {
    if (comparison.limits.empty()) return {};
    std::string out = "\n";
    for (const auto& it : comparison.limits)
        out += fmt::format("  {:<20} {:>8.4f}   at most {:<8g} {}\n", it.limit.name, it.found, it.limit.at_most,
                           it.kept ? "kept" : "exceeded");
    return out + (comparison.within_limits() ? "verdict: within the limits\n" : "verdict: beyond the limits\n");
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
    std::string out = sides(comparison) + figures(comparison) + histogram(comparison);
    if (comparison.explanation) out += explanation_text(*comparison.explanation);
    if (!comparison.substitutions.empty()) out += substitutions_text(comparison.substitutions);
    return out + verdict(comparison);
}

}  // namespace rubato::cli
