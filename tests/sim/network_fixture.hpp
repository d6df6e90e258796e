// What tests of network models share: where the data lie, and a sink that writes down what it is told.
#pragma once

#include "sim/network.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rubato::tests {

/// A file of tests/sim/data.
std::string data_file(const std::string& name);

/// A file of shared/cases (RUBATO_SHARED, or a folder `shared` beside or above the sources); nothing where it is
/// missing.
std::optional<std::string> shared_file(const std::string& name);

/// A scenario with a platform file (empty: the inline star) and a model: flow, CM02, LV08, or one of
/// SimGrid's followed by "+gamma".
Scenario scenario_on(const std::string& platform, const std::string& model);

/// What the call returns, or "threw " and the message, in a forked child: a platform with profiles spoils its process.
std::string in_child(const std::function<std::string()>& call);

/// Message of the PlatformError that the call throws; empty where it throws none.
std::string platform_error(const std::function<void()>& call);

/// Writes down arrivals; starts transfers at given times.
class RecordingSink : public sim::NetworkSink {
public:
    struct Message {
        sim::HostId from = 0, to = 0;
        double bytes = 0;
        Time at = 0;
    };
    struct Arrival {
        std::int64_t token = 0;  ///< index of the message
        Time time = 0;
        bool ok = false;
        bool operator==(const Arrival&) const = default;
    };

    RecordingSink(sim::Network& network, std::vector<Message> messages);
    void on_alarm() override;
    void on_transfer(std::int64_t token, bool ok) override;
    const std::vector<Arrival>& run();
    /// The arrivals as text: "TOKEN TIME_NS" or "TOKEN failed TIME_NS", one a line.
    std::string text() const;

private:
    void start_due();

    sim::Network& network_;
    std::vector<Message> messages_;
    std::size_t next_ = 0;
    std::vector<Arrival> arrivals_;
};

}  // namespace rubato::tests
