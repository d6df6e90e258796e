// The commands of rubato. Each returns the exit status and throws what exit_status.hpp maps.
#pragma once

#include <string>
#include <vector>

namespace rubato::cli {

struct RunOptions {
    std::string scenario;
    std::string backend = "sim";
    std::string directory;  ///< empty: runs/NAME-HASH8
    std::vector<std::string> sets;
    bool timeline = false;
    bool events = false;
    bool json = false;   ///< the summary's text instead of a table
    bool quiet = false;  ///< errors only
    bool force = false;
    bool resume = false;
};

struct SweepOptions {
    std::string sweep;
    std::string directory;  ///< empty: runs/NAME-HASH8
    std::vector<std::string> sets;
    std::string shard;  ///< "I/N"; empty: all
    std::string by;     ///< figure of `best`
    int best = 0;       ///< settings to print; 0: none
    int jobs = 0;       ///< worker processes; 0: the cores
    bool dry_run = false;
    bool status = false;
    bool keep = false;  ///< a run directory for each point
    bool json = false;
    bool quiet = false;
};

int run_command(const RunOptions& options);
int sweep_command(const SweepOptions& options);
int check_command(const std::string& scenario, const std::vector<std::string>& sets);
/// `what`: empty for everything.
int list_command(const std::string& what);
/// `protocol`: empty for the default one. `file`: "-" for stdout.
int init_command(const std::string& file, const std::string& protocol, bool force);
/// `topic`: a key, a section or a name; `commands` only for suggestions.
int help_command(const std::string& topic, const std::vector<std::string>& commands);
/// Prints the JSON Schema of scenarios.
int schema_command();
int replay_command(const std::string& run_directory);
/// `arguments`: KIND RUN_OR_SWEEP... and options of the analysis.
int plot_command(const std::vector<std::string>& arguments);
/// `arguments`: SWEEP... and options of the analysis.
int table_command(const std::vector<std::string>& arguments);

/// What `list` knows.
const std::vector<std::string>& list_topics();
/// Figures that the analysis draws.
const std::vector<std::string>& plot_kinds();

}  // namespace rubato::cli
