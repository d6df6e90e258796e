#include "cli/sweep/aggregate.hpp"

#include "cli/suggest.hpp"
#include "cli/sweep/csv.hpp"
#include "trace/number_text.hpp"
#include "trace/summary_cells.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::cli {
namespace {

constexpr const char* better_when_larger[] = {"throughput.samples_per_s", "throughput.gradients_per_s",
                                              "throughput.updates_per_s", "throughput.steady_samples_per_s",
                                              "compute_utilization",      "communication_hidden_fraction",
                                              "engine.messages_per_s"};

void put_cell(std::string& line, double value) {
    line += ',';
    if (std::isfinite(value)) trace::append_number(line, value);
}

}  // namespace

const std::vector<std::string>& figure_names() {
    static const auto names = [] {
        std::vector<std::string> all;
        for (const auto& column : trace::summary_columns())
            if (column.figure) all.push_back(column.name);
        return all;
    }();
    return names;
}

std::size_t figure_named(const std::string& name, const std::string& option) {
    const auto& names = figure_names();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    const std::string near = nearest(name, names);
    throw InputError(option + " " + name + ": is no figure of results.csv" +
                     (near.empty() ? "; there are " + one_of(names, "and") : "; did you mean " + near + "?"));
}

bool larger_is_better(const std::string& figure) {
    return std::find(std::begin(better_when_larger), std::end(better_when_larger), figure) !=
           std::end(better_when_larger);
}

void ResultTable::take(const Results& results, const ResultRow& row) {
    if (generation_ != results.generation()) {
        generation_ = results.generation();
        status_ = results.column("status");
        places_.clear();
        for (const auto& name : figure_names()) places_.push_back(results.column(name));
    }
    Row taken;
    taken.state = state_named(row.cells[status_]);
    taken.figures.reserve(places_.size());
    for (const std::size_t place : places_) taken.figures.push_back(cell_number(row.cells[place]));
    rows_[row.identity] = std::move(taken);
}

const ResultTable::Row* ResultTable::find(std::uint64_t identity) const {
    const auto found = rows_.find(identity);
    return found == rows_.end() ? nullptr : &found->second;
}

std::vector<SettingSummary> summarize(const Board& board, Resolver& resolver, const ResultTable& table) {
    const auto& names = figure_names();
    const std::size_t target = figure_named("time_to_target_s", "");
    std::vector<SettingSummary> all;
    for (std::size_t i = 0; i < board.plan().settings.size(); ++i) {
        SettingSummary summary;
        summary.setting = i;
        summary.figures.resize(names.size());
        const auto tasks = board.report_tasks(i);
        for (const Task& task : tasks) {
            const auto* row = table.find(task.identity);
            if (!row) {
                ++summary.missing;
            } else if (row->state != PointState::finished) {
                ++(row->state == PointState::diverged ? summary.diverged : summary.failed);
            } else {
                ++summary.n;
                summary.reached += std::isfinite(row->figures[target]);
                for (std::size_t f = 0; f < names.size(); ++f)
                    if (std::isfinite(row->figures[f])) summary.figures[f].push_back(row->figures[f]);
            }
        }
        if (summary.n + summary.diverged + summary.failed == 0) continue;
        const Setting& setting = resolver.at(tasks.front().id);
        summary.label = setting.label;
        const bool chosen = !board.pick(i) || board.pick(i)->choice >= 0;
        summary.cells = chosen ? setting.cells : cells_without_choice(*board.plan().sweep, setting.cells);
        all.push_back(std::move(summary));
    }
    return all;
}

std::string aggregate_text(const SweepFile& sweep, const std::vector<SettingSummary>& settings) {
    std::string text = "label";
    for (const auto& key : sweep.swept) text += "," + csv_cell(key);
    text += ",n,diverged,failed,reached";
    for (const auto& name : figure_names())
        for (const char* what : {"mean", "std", "median", "ci95"}) text += "," + name + "." + what;
    text += "\n";
    for (const SettingSummary& setting : settings) {
        text += csv_cell(setting.label);
        for (const auto& cell : setting.cells) text += "," + cell;
        for (const int count : {setting.n, setting.diverged, setting.failed, setting.reached})
            text += "," + std::to_string(count);
        for (const auto& values : setting.figures) {
            if (values.empty()) {
                text += ",,,,";
                continue;
            }
            const Statistics of = statistics(values);
            for (const double value : {of.mean, of.std, of.median, of.ci95}) put_cell(text, value);
        }
        text += "\n";
    }
    return text;
}

}  // namespace rubato::cli
