// The command line.
#pragma once

namespace rubato::cli {

/// Parses, runs the command, maps errors to exit statuses (exit_status.hpp).
int run_program(int argc, const char* const* argv);

}  // namespace rubato::cli
