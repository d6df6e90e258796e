// Figures that are allowed and yet hardly meant: units mixed up, zeros forgotten.
#pragma once

#include "cli/estimate.hpp"
#include "sim/network.hpp"
#include "sim/placement.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// One line each: what is odd, where, and what was probably meant. free_bytes: room on the disk that the run would be
/// written to; negative where it is not known.
std::vector<std::string> oddities(const Loaded& loaded, const Estimate& plan, sim::Network& network,
                                  const sim::Placement& placement, double free_bytes);

/// The same for a run by schedule, which has neither network nor machine.
std::vector<std::string> oddities(const Loaded& loaded, const Estimate& plan, double free_bytes);

/// Free bytes of the disk behind a folder, for this user; negative where it is not known.
double free_bytes(const std::string& folder);

/// "25 Gbps" for 3.125e9 bytes/s.
std::string bits_text(double bytes_per_s);

}  // namespace rubato::cli
