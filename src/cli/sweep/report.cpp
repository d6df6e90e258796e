#include "cli/sweep/report.hpp"

#include "cli/estimate.hpp"
#include "cli/sweep/condition.hpp"
#include "cli/sweep/csv.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace rubato::cli {
namespace {

std::string number(double value) {
    return fmt::format("{:.6g}", value);
}

/// A setting in the order of a figure.
struct Ranked {
    const SettingSummary* setting = nullptr;
    Statistics of;
    int without = 0;
    double key = 0;  ///< smaller is better
};

std::vector<Ranked> ranked(const std::vector<SettingSummary>& settings, const std::string& by, int count) {
    const std::size_t figure = figure_named(by, "--by");
    std::vector<Ranked> all;
    for (const SettingSummary& setting : settings) {
        const auto& values = setting.figures[figure];
        if (values.empty()) continue;
        Ranked entry{&setting, statistics(values), 0, 0};
        entry.without = setting.n + setting.diverged + setting.failed - entry.of.n;
        entry.key = larger_is_better(by) ? -entry.of.mean : entry.of.mean;
        all.push_back(entry);
    }
    std::stable_sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) {
        if ((a.without > 0) != (b.without > 0)) return b.without > 0;
        return a.key < b.key;
    });
    all.resize(std::min(all.size(), static_cast<std::size_t>(count)));
    return all;
}

/// Variant and axes of a setting whose tuning is done, as far as they go with it.
std::string name_of(const Board& board, Resolver& resolver, std::size_t setting) {
    const PlannedSetting& planned = board.plan().settings[setting];
    const std::int32_t picked = board.pick(setting)->choice;
    const std::int32_t choice = picked >= 0 ? picked : board.plan().choices[planned.first].choice;
    const Node& resolved = resolver.at({planned.setting, choice}).loaded.tree;
    return resolver.describe({planned.setting, -1}, &resolved);
}

/// "optimizer.learning_rate = 0.1": the picked value of each tuned key that the setting has.
std::string chosen_text(const Board& board, Resolver& resolver, std::size_t setting) {
    const std::int32_t choice = board.pick(setting)->choice;
    const Node& resolved = resolver.at({board.plan().settings[setting].setting, choice}).loaded.tree;
    const auto indices = resolver.tuned_values(choice);
    const auto& axes = board.plan().sweep->tuning->axes;
    std::string text;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        if (!value_at(resolved, axes[i].key)) continue;
        text += (text.empty() ? "" : ", ") + axes[i].key + " = " + cell_text(&axes[i].values[indices[i]]);
    }
    return text.empty() ? "no tuned key goes with it" : text;
}

Node counts_node(const Board& board) {
    Node node = Node::object();
    const auto set = [&](const char* key, std::size_t count) {
        node.set(key, Node::of(static_cast<std::int64_t>(count)), {});
    };
    set("points", board.total());
    set("finished", board.count(PointState::finished));
    set("diverged", board.count(PointState::diverged));
    set("failed", board.count(PointState::failed));
    set("missing", board.total() - board.done());
    set("skipped", board.skipped());
    set("retried", board.retried());
    set("superseded", board.superseded());
    set("of_other_points", board.of_others());
    return node;
}

}  // namespace

std::string counts_text(const Board& board, const std::string& directory) {
    const auto text = [](std::size_t count) { return count_text(static_cast<double>(count)); };
    std::string line = fmt::format("{}: {} points: {} finished, {} diverged, {} failed", directory, text(board.total()),
                                   text(board.count(PointState::finished)), text(board.count(PointState::diverged)),
                                   text(board.count(PointState::failed)));
    if (const auto missing = board.total() - board.done()) line += ", " + text(missing) + " missing";
    if (const auto others = board.of_others())
        line += fmt::format("; {} {} of other points", text(others), others == 1 ? "row is" : "rows are");
    return line + "\n";
}

std::string counts_json(const Board& board, const std::string& directory, double seconds) {
    Node node = counts_node(board);
    node.set("directory", Node::of(directory), {});
    node.set("wall_s", Node::of(seconds), {});
    return to_json(node);
}

std::string picks_text(const Board& board, Resolver& resolver, std::size_t lines_max) {
    const Plan& plan = board.plan();
    if (!plan.sweep->tuning) return {};
    const Tuning& tuning = *plan.sweep->tuning;
    std::string text;
    std::size_t lines = 0, more = 0;
    for (std::size_t i = 0; i < plan.settings.size(); ++i) {
        const auto& pick = board.pick(i);
        if (!pick) continue;
        if (++lines > lines_max) {
            ++more;
            continue;
        }
        const std::string who = name_of(board, resolver, i);
        if (pick->choice < 0) {
            text += fmt::format("tuned {}: none is best, every tuning run diverged or failed\n", who);
            continue;
        }
        text += fmt::format("tuned {}: {} (mean {} {}{})\n", who, chosen_text(board, resolver, i), tuning.by,
                            number(pick->mean),
                            pick->without > 0 ? fmt::format(", {} runs without it", pick->without) : "");
    }
    if (more > 0) text += fmt::format("tuned: {} more settings, see results.csv\n", more);
    return text;
}

std::vector<std::string> pick_warnings(const Board& board, Resolver& resolver) {
    const Plan& plan = board.plan();
    std::vector<std::string> edges, none;
    for (std::size_t i = 0; plan.sweep->tuning && i < plan.settings.size(); ++i) {
        const auto& pick = board.pick(i);
        if (!pick) continue;
        const std::string who = name_of(board, resolver, i);
        if (pick->choice < 0) none.push_back(who);
        for (const auto& key : pick->at_edge) edges.push_back(key + " for " + who);
    }
    std::vector<std::string> warnings;
    const auto told = [](const std::vector<std::string>& all) {
        std::string text = all.front();
        return all.size() == 1 ? text : fmt::format("{} and {} more", text, all.size() - 1);
    };
    if (!edges.empty())
        warnings.push_back("tune: the best value lies at the edge of its grid: " + told(edges) +
                           "; a better one may lie beyond");
    if (!none.empty())
        warnings.push_back("tune: no value is best, since every tuning run diverged or failed: " + told(none) +
                           "; its points are failed");
    return warnings;
}

std::string best_text(const SweepFile& sweep, std::vector<SettingSummary> settings, const std::string& by, int count) {
    std::vector<std::vector<std::string>> table{
        {"#", by + (larger_is_better(by) ? " (larger is better)" : ""), "ci95", "n", "without", "label"}};
    for (const auto& key : sweep.swept) table.front().push_back(key);
    for (const Ranked& entry : ranked(settings, by, count)) {
        table.push_back({std::to_string(table.size()), number(entry.of.mean),
                         std::isnan(entry.of.ci95) ? "-" : number(entry.of.ci95), std::to_string(entry.of.n),
                         std::to_string(entry.without), entry.setting->label});
        std::vector<std::string> cell;
        for (const auto& text : entry.setting->cells) {
            split_csv(text, cell);
            table.back().push_back(cell.front());
        }
    }
    if (table.size() == 1) return "none of the finished runs has the figure " + by + "\n";
    std::string text;
    for (const auto& row : table) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            std::size_t width = 0;
            for (const auto& other : table) width = std::max(width, other[i].size());
            line += row[i] + std::string(i + 1 < row.size() ? width + 2 - row[i].size() : 0, ' ');
        }
        text += line + "\n";
    }
    return text;
}

std::string best_json(const SweepFile& sweep, std::vector<SettingSummary> settings, const std::string& by, int count) {
    Node list;
    list.kind = Node::Kind::array;
    for (const Ranked& entry : ranked(settings, by, count)) {
        Node node = Node::object();
        node.set("label", Node::of(entry.setting->label), {});
        std::vector<std::string> cell;
        for (std::size_t i = 0; i < sweep.swept.size(); ++i) {
            split_csv(entry.setting->cells[i], cell);
            node.set(sweep.swept[i], Node::of(cell.front()), {});
        }
        node.set("by", Node::of(by), {});
        node.set("mean", Node::of(entry.of.mean), {});
        if (!std::isnan(entry.of.ci95)) node.set("ci95", Node::of(entry.of.ci95), {});
        node.set("n", Node::of(std::int64_t{entry.of.n}), {});
        node.set("without", Node::of(std::int64_t{entry.without}), {});
        list.items.push_back(std::move(node));
    }
    return to_json(list);
}

std::string sweep_progress_line(std::size_t done, std::size_t failed, int running, std::size_t total, double rate) {
    constexpr int width = 24;
    const double fraction = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1;
    const auto full = static_cast<int>(fraction * width);
    std::string line = "[" + std::string(static_cast<std::size_t>(full), '#') +
                       std::string(static_cast<std::size_t>(width - full), '.') + "]";
    const auto text = [](std::size_t count) { return count_text(static_cast<double>(count)); };
    line += fmt::format(" {} of {} done  {} failed  {} running", text(done), text(total), text(failed), running);
    if (!(rate > 0)) return line;
    return line + fmt::format("  {:.3g} points/s  {} left", rate,
                              seconds_text(std::ceil(static_cast<double>(total - done) / rate)));
}

SweepProgress::SweepProgress(bool visible)
    : visible_(visible && isatty(STDERR_FILENO) != 0), begin_(Clock::now()), next_(begin_) {}

SweepProgress::~SweepProgress() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void SweepProgress::tick(const Board& board, int running) {
    if (!visible_) return;
    const auto now = Clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    if (!std::exchange(begun_, true)) done_at_begin_ = board.done();
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const double rate = seconds > 0 ? static_cast<double>(board.done() - done_at_begin_) / seconds : 0;
    const std::string line =
        sweep_progress_line(board.done(), board.count(PointState::failed), running, board.total(), rate);
    std::fputs(("\r\x1b[K" + line).c_str(), stderr);
    std::fflush(stderr);
    drawn_ = true;
}

}  // namespace rubato::cli
