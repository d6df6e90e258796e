// A profile: what was measured of a machine, and what a simulation of it needs. docs/calibration.md describes the file.
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::cli {

/// Compute times of one batch size.
struct ComputeTimes {
    std::int64_t n = 0;
    double mean = 0;                ///< s
    std::vector<double> quantiles;  ///< s, one a level of the profile, ascending; empty where n is too small to tell
};

/// Compute times of a device class, with some number of workers on each host.
struct DeviceProfile {
    std::string source;                            ///< measured | run | timings
    std::map<std::int64_t, ComputeTimes> batches;  ///< by batch size; never empty
    /// Seconds of a gradient beside its computation, from weights in hand to gradient in hand: threads hand it over.
    double dispatch_s = 0;
    /// Factor on the times by workers on the host; 1 where they were measured. Empty: not known.
    std::map<std::int64_t, double> host_sharing;
};

/// Seconds of one operation of the server: fixed_s + per_byte_s * bytes.
struct OperationCost {
    std::int64_t n = 0;
    double fixed_s = 0, per_byte_s = 0;
};

struct ByteRange {
    double smallest = 0, largest = 0;
};

struct ServerProfile {
    std::string source;
    ByteRange bytes;
    std::optional<OperationCost> push, pull, update;  ///< none: not known
};

/// Messages of one size, alone on their way.
struct MessageTime {
    double bytes = 0, seconds = 0;
    std::int64_t n = 0;
};

struct NetworkProfile {
    std::string source;
    ByteRange bytes;       ///< of messages with a payload
    double latency_s = 0;  ///< of a message without a size, from end to end
    double bandwidth = 0;  ///< bytes/s of a message alone
    /// bytes/s of the server's link under several transfers; none: not told apart from bandwidth.
    std::optional<double> server_bandwidth;
    double largest_error = 0;  ///< of the fit, relative
    std::vector<MessageTime> messages;
};

/// Levels of quantiles: 0 to 1 in steps of 0.02, denser near both ends, where waits at barriers are decided.
const std::vector<double>& profile_levels();

struct Profile {
    std::string date;  ///< UTC, "2026-01-31T12:00:00Z"
    std::string host;
    int cores = 0;
    std::vector<double> levels = profile_levels();  ///< of all its quantiles
    std::map<std::string, DeviceProfile> compute;   ///< by device class
    std::optional<CommonNoise> common;              ///< of compute times; none: not known, or nothing is common
    std::optional<ServerProfile> server;
    std::optional<NetworkProfile> network;
    std::vector<std::string> notes;  ///< what it cannot tell, a sentence each
};

/// The mean, and from 20 values on the quantiles: order statistics, linear between them. seconds: at least one; sorted
/// in place.
ComputeTimes compute_times(std::vector<double>& seconds);

/// The JSON Schema of profiles.
std::string_view profile_schema_text();

Node to_node(const Profile& profile);

/// Reads and checks a profile. Throws InputError (file, line, path, what was expected).
Profile read_profile(const std::string& path);
/// The same from text; `path` is for messages.
Profile parse_profile(const std::string& text, const std::string& path);

}  // namespace rubato::cli
