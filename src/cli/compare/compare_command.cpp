// rubato compare: predicted beside measured.
#include "cli/commands.hpp"
#include "cli/compare/comparison.hpp"
#include "cli/error.hpp"
#include "cli/exit_status.hpp"
#include "cli/log.hpp"
#include "trace/chrome_trace.hpp"
#include "trace/line_file.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace rubato::cli {
namespace {

std::vector<RecordedRun> read_side(const std::vector<std::string>& directories, std::vector<std::string>& warnings) {
    std::vector<RecordedRun> runs;
    for (const auto& directory : directories) runs.push_back(read_recorded_run(directory, warnings));
    return runs;
}

std::ifstream open_timeline(const std::string& directory) {
    const std::string path = directory + "/timeline.csv";
    std::ifstream file(path, std::ios::binary);
    if (!file) throw InputError(path + ": cannot be read; a run leaves it with --timeline");
    return file;
}

/// Of the first run of each side.
std::string both_timelines(const CompareOptions& options) {
    std::ifstream predicted = open_timeline(options.predicted.front());
    std::ifstream measured = open_timeline(options.measured.front());
    std::ostringstream out;
    try {
        trace::write_chrome_traces({{"predicted", &predicted}, {"measured", &measured}}, out);
    } catch (const std::invalid_argument& problem) {
        throw InputError(problem.what());
    }
    return out.str();
}

}  // namespace

int compare_command(const CompareOptions& options) {
    if (options.predicted.empty() || options.measured.empty())
        throw InputError("compare: expected SIM... -- REAL..., run directories on both sides of --");
    const auto limits = parse_limits(options.limits);
    const auto parts = parse_parts(options.substitute);
    std::vector<std::string> warnings;
    const auto predicted = read_side(options.predicted, warnings);
    const auto measured = read_side(options.measured, warnings);
    check_same_experiment(predicted, measured, warnings);
    Comparison comparison = compare(predicted, measured, limits, options.explain);
    const std::string timelines = options.timeline.empty() ? "" : both_timelines(options);
    for (const auto& text : warnings) warn(text);
    comparison.substitutions = substitute(predicted, measured, parts);

    const std::string text = options.json ? comparison_json(comparison) : comparison_text(comparison);
    if (!options.timeline.empty()) {
        trace::write_file_by_rename(options.timeline, timelines);
        if (predicted.size() + measured.size() > 2)
            note(options.timeline + " has the timelines of " + options.predicted.front() + " and " +
                 options.measured.front());
    }
    if (options.output.empty())
        std::fputs(text.c_str(), stdout);
    else
        trace::write_file_by_rename(options.output, text);
    return comparison.within_limits() ? exit_finished : exit_negative;
}

}  // namespace rubato::cli
