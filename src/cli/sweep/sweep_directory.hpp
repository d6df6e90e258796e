// The folder that a sweep leaves its files in.
#pragma once

#include "cli/sweep/plan.hpp"

#include <string>

namespace rubato::cli {

/// runs/NAME-HASH8: name of the sweep's file, hash of its base with --set. What else changes in a sweep (variants,
/// axes, seeds) adds points to the same folder.
std::string default_sweep_directory(const SweepFile& sweep);

/// Makes the folder where it is missing and writes sweep.json. Throws InputError where something else than a sweep lies
/// there, and trace::OutputError where it cannot be written. Returns whether it held another sweep.json.
bool enter_sweep_directory(const std::string& directory, const SweepFile& sweep);

/// Whether a sweep has left anything in the folder.
bool holds_sweep(const std::string& directory);

}  // namespace rubato::cli
