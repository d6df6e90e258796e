// The command line of a comparison: SIM... -- REAL....
#pragma once

#include "cli/commands.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// The command line with the first `--` of a comparison replaced by a word that no argument can be: CLI11 takes every
/// word behind a `--` for a name, options too.
std::vector<const char*> mark_sides(int argc, const char* const* argv);

/// The options with the words of the command line on their sides of that mark.
CompareOptions with_sides(CompareOptions options, const std::vector<std::string>& words);

/// Figures that --max may name, and examples: the end of the help.
std::string compare_footer();

}  // namespace rubato::cli
