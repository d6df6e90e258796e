// The machine of a scenario: what messages, gradients and updates cost on it, how its workers differ, and what breaks.
//
// Field names are those of the JSON. Times are seconds and sizes bytes unless the name says otherwise.
#pragma once

#include "core/types.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rubato {

/// What the simulated machine is charged, apart from the model that learns.
struct CostSpec {
    std::string model;            ///< a name of the catalogue, or empty
    std::int64_t push_bytes = 0;  ///< a gradient message
    std::int64_t pull_bytes = 0;  ///< a weights message
    double flops_per_sample = 0;  ///< forward and backward
    std::int64_t parameters = 0;
};

/// Quantiles of compute time over its mean, at the levels of the device, for one batch size; their mean is 1.
struct TimeShape {
    double batch = 0;
    std::vector<double> factors;  ///< [levels], ascending
};

/// Seconds of one gradient as a function of the batch size, and how they scatter.
struct DeviceSpec {
    enum class Kind : std::uint8_t { flops, table, power, affine };
    Kind kind = Kind::flops;                       ///< flops: flops_per_sample * batch / host speed
    std::vector<std::pair<double, double>> table;  ///< (batch, seconds), ascending
    double c = 0, p = 1, b0 = 1;                   ///< power: c * (batch / b0)^p
    double a = 0, b = 0;                           ///< affine: a + b * batch
    double host_sharing = 0;                       ///< times (1 + host_sharing * (workers on the host - 1))
    /// (workers on the host, factor), ascending, instead of host_sharing; empty: none.
    std::vector<std::pair<double, double>> sharing = {};
    /// Levels of the quantiles, from 0 to 1, ascending; empty where there are none.
    std::vector<double> levels = {};
    std::vector<TimeShape> shapes =
        {};  ///< measured scatter, ascending in the batch size; empty: cluster.noise instead
};

/// Slow moments of a host, which all of its workers feel at once.
struct CommonNoise {
    double share = 0;   ///< of the variance of each worker's normal score, 0 to 1; 0: none
    double time_s = 0;  ///< how long such a moment lasts, above 0 where there is a share
    bool operator==(const CommonNoise&) const = default;
};

/// A random factor on compute times with mean 1 and coefficient of variation cv.
struct NoiseSpec {
    enum class Kind : std::uint8_t { lognormal, normal, exponential };
    double cv = 0;  ///< 0: no noise
    CommonNoise common = {};
    Kind kind = Kind::lognormal;
};

/// Workers that compute more slowly for a while: in one spell, in spells at random, or in single gradients at random.
struct StragglerSpec {
    std::vector<WorkerId> workers;   ///< ascending; empty: all, each with spells of its own
    double slowdown = 1;             ///< factor on compute time
    double from_s = 0, until_s = 0;  ///< one spell
    double every_s = 0, for_s = 0;   ///< means of exponential times between spells and of spells; 0: not of this kind
    double probability = 0;          ///< of a gradient; 0: not of this kind
    bool operator==(const StragglerSpec&) const = default;
};

/// What breaks, in one spell or in spells at random: workers or hosts crash and return, or links carry less.
struct FaultSpec {
    std::vector<WorkerId> workers = {};   ///< they crash; exactly one of these three is not empty,
    std::vector<std::string> hosts = {};  ///< and each of its members has spells of its own
    std::vector<std::string> links = {};
    double at_s = 0, until_s = 0;   ///< one spell; until_s 0: for good
    double every_s = 0, for_s = 0;  ///< means of exponential times between spells and of spells; 0: one spell
    double bandwidth_factor = 1, latency_factor = 1;  ///< of links within a spell
    bool operator==(const FaultSpec&) const = default;
};

/// Sizes of messages that figures were measured with, bytes.
struct MeasuredBytes {
    double smallest = 0, largest = 0;
    bool operator==(const MeasuredBytes&) const = default;
};

/// Each cost is seconds, and seconds for every byte: of the gradient message, the weights message, and the weights.
struct ServerCostSpec {
    double push_s = 0, push_s_per_byte = 0;      ///< each gradient that is taken in
    double pull_s = 0, pull_s_per_byte = 0;      ///< each weights message that goes out
    double update_s = 0, update_s_per_byte = 0;  ///< each update
    std::optional<MeasuredBytes> measured_bytes;

    double push(const CostSpec& cost) const { return push_s + push_s_per_byte * static_cast<double>(cost.push_bytes); }
    double pull(const CostSpec& cost) const { return pull_s + pull_s_per_byte * static_cast<double>(cost.pull_bytes); }
    double update(const CostSpec& cost) const {
        return update_s + update_s_per_byte * static_cast<double>(cost.pull_bytes);
    }
};

/// What handing on (a part of) a model takes beside the network, where models are averaged: seconds, and seconds for
/// every byte of it.
struct ExchangeCostSpec {
    double send_s = 0, send_s_per_byte = 0;  ///< of each message, at its sender: putting together, and taking apart
    double copy_s = 0, copy_s_per_byte = 0;  ///< of each copy between a worker's device and its host

    double send(double bytes) const { return send_s + send_s_per_byte * bytes; }
    double copy(double bytes) const { return copy_s + copy_s_per_byte * bytes; }
};

/// An inline star: one private full-duplex link a host.
struct StarSpec {
    double bandwidth = 1.25e9;    ///< bytes/s of each worker host's link
    double latency = 1e-5;        ///< s of each link
    double server_bandwidth = 0;  ///< 0: as `bandwidth`
    double host_speed = 1e11;     ///< flop/s
    std::optional<MeasuredBytes> measured_bytes;
    bool operator==(const StarSpec&) const = default;
};

struct NetworkSpec {
    std::string model = "simgrid";
    std::string simgrid = "CM02";  ///< CM02 | LV08
    bool tcp_gamma = false;
    int concurrent_transfers = 8;  ///< a direction of a host's link; 0: unlimited
    StarSpec star;                 ///< used where `platform` is empty
};

struct ClusterSpec {
    std::string platform;            ///< SimGrid XML or JSON file, resolved; empty: the inline star
    std::vector<std::string> hosts;  ///< worker hosts in order (empty: all but the server's, in platform order)
    std::string server_host;         ///< empty: the platform's first host
    NetworkSpec network;
    std::map<std::string, DeviceSpec> devices;
    NoiseSpec noise;
    ServerCostSpec server;
    ExchangeCostSpec exchange;
    std::vector<StragglerSpec> stragglers = {};
};

}  // namespace rubato
