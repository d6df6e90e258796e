// A profile's parts from anybody's measurements.
#pragma once

#include "cli/calibrate/profile.hpp"

#include <map>
#include <string>

namespace rubato::cli {

/// Compute times by device class from a table `device,batch,seconds` with one gradient a row. Throws InputError (file,
/// line, column).
std::map<std::string, DeviceProfile> devices_of_timings(const std::string& path);

/// Latency and bandwidth from a table `bytes,seconds` with one message a row: the median of each size, then fit_line.
/// Throws InputError, also where the times do not grow with the size, so that there is no bandwidth. What the table
/// cannot tell is added to `notes`.
NetworkProfile network_of_table(const std::string& path, std::vector<std::string>& notes);

/// The same from times in hand; `what` begins messages. source: of the profile.
NetworkProfile network_of_times(std::vector<std::pair<double, double>> times, const std::string& source,
                                const std::string& what, std::vector<std::string>& notes);

}  // namespace rubato::cli
