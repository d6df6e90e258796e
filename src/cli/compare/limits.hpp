// What a comparison may be off by, as the command line says.
#pragma once

#include "cli/compare/figures.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// Of --max NAME=LIMIT. Of figures the limit holds for the size of the relative error, of `ks` for the distance.
struct Limit {
    std::string name;
    double at_most = 0;
};

/// Throws InputError where a word is not NAME=LIMIT with the name of a figure and a number of at least 0.
std::vector<Limit> parse_limits(const std::vector<std::string>& words);

/// A limit with what was found.
struct Judged {
    Limit limit;
    double found = 0;  ///< size of the relative error, or the distance; infinite where only the measured figure is 0
    bool kept = false;
};

/// Throws InputError where a side has no such figure.
std::vector<Judged> judge(const std::vector<Limit>& limits, const std::vector<ComparedFigure>& figures, double ks);

}  // namespace rubato::cli
