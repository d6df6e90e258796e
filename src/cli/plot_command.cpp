// rubato plot and rubato table: hand over to the Python analysis.
#include "cli/commands.hpp"
#include "cli/error.hpp"
#include "cli/exit_status.hpp"
#include "cli/suggest.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace rubato::cli {
namespace {

namespace fs = std::filesystem;

/// The folder that holds rubato_analysis: of the source tree, of the installation, or where it was built.
std::string analysis_folder() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    const fs::path above = program.parent_path().parent_path();
    const fs::path places[] = {above / "analysis", above / "share" / "rubato" / "analysis", RUBATO_ANALYSIS_DIR};
    for (const auto& place : places) {
        if (fs::is_regular_file(place / "rubato_analysis" / "__init__.py", error)) return place.string();
    }
    throw InputError("the analysis (Python package rubato_analysis) is not installed; looked in " + places[0].string() +
                     ", " + places[1].string() + " and " + places[2].string());
}

void check_kind(const std::vector<std::string>& arguments) {
    if (arguments.empty()) {
        throw InputError("plot: expected KIND RUN_OR_SWEEP..., with KIND " + one_of(plot_kinds()));
    }
    const std::string& kind = arguments.front();
    if (std::find(plot_kinds().begin(), plot_kinds().end(), kind) != plot_kinds().end()) return;
    const std::string near = nearest(kind, plot_kinds());
    throw InputError("plot " + kind + ": expected " + one_of(plot_kinds()) +
                     (near.empty() ? "" : "; did you mean " + near + "?"));
}

/// Runs the analysis with `command` and its arguments; its exit status.
int hand_over(const std::string& command, const std::vector<std::string>& arguments) {
    const char* before = std::getenv("PYTHONPATH");
    const std::string path = analysis_folder() + (before && *before ? ":" + std::string(before) : "");
    setenv("PYTHONPATH", path.c_str(), 1);
    std::vector<std::string> words{"python3", "-m", "rubato_analysis", command};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    // Debian's interpreter has the packages that the analysis needs; one of a virtual environment may not.
    const char* python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
    pid_t child = 0;
    const int failed = posix_spawnp(&child, python, nullptr, nullptr, argv.data(), environ);
    if (failed != 0) throw InputError(std::string("python3 cannot be started: ") + std::strerror(failed));
    int state = 0;
    while (waitpid(child, &state, 0) < 0) {
        if (errno != EINTR) return exit_internal;
    }
    return WIFEXITED(state) ? WEXITSTATUS(state) : exit_internal;
}

}  // namespace

const std::vector<std::string>& plot_kinds() {
    static const std::vector<std::string> kinds{"staleness",  "curves", "timeline",    "tradeoff",
                                                "speedup",    "target", "sensitivity", "compare",
                                                "controller", "phases", "figure4",     "figure5"};
    return kinds;
}

int plot_command(const std::vector<std::string>& arguments) {
    check_kind(arguments);
    if (arguments.front() != "compare") return hand_over("plot", arguments);
    // Python's parser of options takes a -- for its own.
    std::vector<std::string> words = arguments;
    std::replace(words.begin(), words.end(), std::string("--"), std::string("--measured"));
    // The figure is made of what this program says of the runs.
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (!error) setenv("RUBATO", program.c_str(), 1);
    return hand_over("plot", words);
}

int table_command(const std::vector<std::string>& arguments) {
    if (arguments.empty()) throw InputError("table: expected SWEEP..., directories that `rubato sweep` has left");
    return hand_over("table", arguments);
}

}  // namespace rubato::cli
