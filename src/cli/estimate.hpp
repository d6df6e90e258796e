// What a run will be made of, before it runs: slices, gradients, updates, bytes.
#pragma once

#include "cli/load.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace rubato::cli {

/// Empty where the stop criteria do not tell (only seconds or a target bound them).
struct Estimate {
    std::int64_t slices = 0;      ///< of an epoch
    std::int64_t last_slice = 0;  ///< samples of an epoch's last slice
    int per_update = 1;           ///< pushes of a full update
    std::optional<double> gradients;
    std::optional<double> pushes;  ///< of one gradient each, or of the sum of workers.communication.push_every
    std::optional<double> updates;
    std::optional<double> messages;  ///< gradients, weights and control
    std::optional<double> network_bytes;
    std::optional<double> disk_bytes;  ///< at most, about
    std::string limited_by;            ///< the criterion that the counts come from
};

/// Gradients that make one full update; pushes, where each carries several.
int gradients_of_update(const Scenario& scenario);

Estimate estimate(const Loaded& loaded);

/// Wall-clock seconds of a simulated run on this machine, to the order of magnitude: 300,000 messages/s (measured), and
/// 5 Gflop/s a core for real gradients and evaluations. 0 where the stop criteria do not tell.
double wall_seconds(const Loaded& loaded, const Estimate& plan);

/// "350 kB", "1.2 GB".
std::string bytes_text(double bytes);
/// "9 ms", "1.5 h".
std::string seconds_text(double seconds);
/// 1281167 as "1,281,167".
std::string count_text(double count);

}  // namespace rubato::cli
