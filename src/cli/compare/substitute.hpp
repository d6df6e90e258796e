// The predicted scenario simulated again with a part of the cluster as the measured run had it.
#pragma once

#include "cli/calibrate/use_profile.hpp"
#include "cli/compare/recorded_run.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// A part of the cluster, or all that were asked for at once.
struct Part {
    std::string name;  ///< compute | network | server | together
    ProfileParts parts;
};

/// The parts in their order, and last, where there are several, all of them together. Throws InputError for a name that
/// is none of compute, network and server.
std::vector<Part> parse_parts(const std::vector<std::string>& names);

/// What the simulation became.
struct Substitution {
    std::string part;
    double seconds = 0;        ///< of a worker per gradient
    double samples_per_s = 0;  ///< in the steady window
    double staleness = 0;      ///< mean in the steady window
    /// (seconds - predicted) / (measured - predicted): 1 closes the gap, beyond overshoots, below 0 widens it.
    double closed = 0;
    std::vector<std::string> notes;  ///< what the measured run cannot tell
};

/// Simulates each predicted run once a part, its seed with figures of a measured run. Gradients are only computed where
/// stop.target needs them. Throws InputError where a predicted run is no simulation, or a measured one has no figures
/// for the part.
std::vector<Substitution> substitute(const std::vector<RecordedRun>& predicted,
                                     const std::vector<RecordedRun>& measured, const std::vector<Part>& parts);

}  // namespace rubato::cli
