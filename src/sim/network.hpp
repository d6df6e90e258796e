// The small door between the simulation driver and a network model: now, at, transfer.
#pragma once

#include "core/scenario.hpp"
#include "core/types.hpp"

#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rubato::sim {

using HostId = std::int32_t;

/// What the driver wants to know of the machine that the roles are placed on.
struct HostInfo {
    std::string name;
    double speed = 0;  ///< flop/s of one core
    int cores = 1;
};

/// Called by the network in virtual time. Either call may start transfers and set the alarm.
class NetworkSink {
public:
    virtual ~NetworkSink() = default;
    /// The alarm set by `at` rings.
    virtual void on_alarm() = 0;
    /// The whole of `transfer(..., token)` has arrived (ok), or its route or an end of it went off (not ok).
    virtual void on_transfer(std::int64_t token, bool ok) = 0;
    /// A host has gone off or is back, by the platform's profiles. Transfers from and to one that is off are reported
    /// no more: they are the sink's to cancel.
    virtual void on_host(HostId, bool) {}
    /// From now on a host computes at `factor` times its speed, by the platform's profiles; 0 or above.
    virtual void on_speed(HostId, double) {}
    /// Bandwidths or latencies have changed: what control_delay said holds no more.
    virtual void on_links() {}
};

/// A modelled network. One run a value; a value is used by one thread. Over the flow model many may live at once, in
/// many threads. Over SimGrid one value may live at a time in a process, and one after another is fine: each begins at
/// time 0 and says the same to the bit. A platform that nothing ran on serves the next equal request too. After a run
/// on one with profiles (availability that changes with time), a process can open no other.
class Network {
public:
    virtual ~Network() = default;
    virtual const std::vector<HostInfo>& hosts() const = 0;
    /// Virtual time, rounded to the nanosecond.
    virtual Time now() const = 0;
    /// Sets the one alarm; a later call replaces an earlier one. `when` in the past means now.
    virtual void at(Time when) = 0;
    /// As `at`, unless nothing of the network's own comes before, and it can tell: then true, the clock is at `when`
    /// already, and no alarm rings.
    virtual bool reach(Time when) {
        at(when);
        return false;
    }
    /// Starts moving `bytes` at once. No queue, no cap: that is the driver's. Within a host it arrives at once, or
    /// takes the platform's loopback where there is one. Throws PlatformError where there is no route.
    virtual void transfer(HostId from, HostId to, double bytes, std::int64_t token) = 0;
    /// A transfer that is under way comes to nothing, and is not reported. Of one that is not, nothing happens.
    virtual void cancel(std::int64_t token) = 0;
    /// From now on a link has so many times its bandwidth and latency as the platform says. link: its name in a
    /// platform of SimGrid's; elsewhere the host or switch that it joins to the rest. Throws PlatformError where there
    /// is no such link, or where the model cannot do it.
    virtual void degrade(const std::string& link, double bandwidth_factor, double latency_factor) = 0;
    /// When the platform's profiles change something next; -1: never, or not known.
    virtual Time next_change() { return -1; }
    /// Latency of the route plus bytes over its narrowest link, with the factors of the model (LV08): what a control
    /// message takes, outside the sharing. Within a host 0, unless the platform has a loopback.
    virtual Time control_delay(HostId from, HostId to, double bytes) = 0;
    /// Runs until neither an alarm nor a transfer is left, or until stop().
    virtual void run(NetworkSink& sink) = 0;
    /// No more calls of the sink; what still moves is cancelled. Also the sink's exceptions stop a run: run() throws
    /// them.
    virtual void stop() = 0;
    /// One line a route, for `rubato check`: bandwidth in bytes/s of the narrowest link (infinite within a host) and
    /// latency in s, as the platform gives them.
    virtual std::pair<double, double> route(HostId from, HostId to) = 0;
    /// Narrowest of the links that the routes of all `from` to `to` share, in bytes/s; infinite where they share none.
    virtual double common_bandwidth(const std::vector<HostId>& from, HostId to) {
        static_cast<void>(from);
        static_cast<void>(to);
        return std::numeric_limits<double>::infinity();
    }
    /// Warnings that the platform's reader had (units assumed and the like), for the user.
    virtual const std::vector<std::string>& warnings() const = 0;
};

/// A platform or network setting is wrong; what() is one line with file, line where known, expectation, suggestion.
struct PlatformError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// What the driver asks of a network.
struct NetworkRequest {
    const Scenario* scenario = nullptr;
    int star_hosts = 0;  ///< of the inline star: one for each worker host, and those of servers first
    /// Every transfer has host 0 at an end, at most cluster.network.concurrent_transfers at once in a direction: links
    /// of the inline star that can never be the narrowest need not be simulated.
    bool through_server = false;
    int star_servers = 1;  ///< of those hosts the first ones are of servers
};

/// Opens the network model that the scenario names; SimGrid's is in a module (dlopen, found relative to the
/// executable). Throws PlatformError, also where the module is not installed.
std::unique_ptr<Network> open_network(const NetworkRequest& request);

}  // namespace rubato::sim
