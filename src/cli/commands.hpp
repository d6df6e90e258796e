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

struct CompareOptions {
    std::vector<std::string> predicted, measured;  ///< run directories
    std::vector<std::string> limits;               ///< FIGURE=LIMIT
    std::vector<std::string> substitute;           ///< parts of the cluster to take from the measured runs
    std::string output;                            ///< file; empty: stdout
    std::string timeline;                          ///< file for both timelines; empty: none
    bool explain = false;
    bool json = false;
};

/// What to calibrate from: a scenario or a run, tables, or both.
struct CalibrateOptions {
    std::string scenario;  ///< measured here
    std::string run;       ///< run directory
    std::string timings;   ///< device,batch,seconds
    std::string network;   ///< bytes,seconds
    std::string out;       ///< empty: NAME.profile.json
    std::vector<std::string> sets;
    double seconds = 60;  ///< limit of a measurement
    bool force = false;
    bool quiet = false;
};

struct ReplayOptions {
    std::string run;  ///< run directory
    bool weights = false;
    bool evaluate = false;          ///< evaluations, too
    std::vector<std::string> sets;  ///< not empty: the same schedule under another update rule
    std::string directory;          ///< for that; empty: runs/NAME-HASH8
    bool json = false;
    bool quiet = false;
    bool force = false;
};

int run_command(const RunOptions& options);
int calibrate_command(const CalibrateOptions& options);
int sweep_command(const SweepOptions& options);
int check_command(const std::string& scenario, const std::vector<std::string>& sets, const std::string& hostfile = "");
/// `what`: empty for everything.
int list_command(const std::string& what);
/// `protocol`: empty for the default one. `file`: "-" for stdout.
int init_command(const std::string& file, const std::string& protocol, bool force);
/// `topic`: a key, a section or a name; `commands` only for suggestions.
int help_command(const std::string& topic, const std::vector<std::string>& commands);
/// Prints the JSON Schema of scenarios.
int schema_command();
int replay_command(const ReplayOptions& options);
int compare_command(const CompareOptions& options);
/// `arguments`: KIND RUN_OR_SWEEP... and options of the analysis.
int plot_command(const std::vector<std::string>& arguments);
/// `arguments`: SWEEP... and options of the analysis.
int table_command(const std::vector<std::string>& arguments);

/// What `list` knows.
const std::vector<std::string>& list_topics();
/// Figures that the analysis draws.
const std::vector<std::string>& plot_kinds();

}  // namespace rubato::cli
