// A network for tests: every transfer takes a fixed latency plus its bytes over its own bandwidth, with no sharing, so
// that a run can be followed by hand. Optionally each transfer is stretched by a random factor (in-order per channel is
// the driver's affair, so the stretch may reorder).
#pragma once

#include "learn/random.hpp"
#include "sim/network.hpp"

#include <cmath>
#include <map>
#include <queue>
#include <set>
#include <vector>

namespace rubato::test {

class IdealNetwork final : public sim::Network {
public:
    IdealNetwork(int hosts, double latency_s, double bandwidth, double jitter = 0, std::uint64_t seed = 0)
        : latency_s_(latency_s),
          bandwidth_(bandwidth),
          jitter_(jitter),
          stream_(seed, 0, learn::Purpose::sample, 77),
          hosts_(static_cast<std::size_t>(hosts), sim::HostInfo{"host", 1e9, 1}) {
        int number = 0;
        for (auto& host : hosts_) host.name += "-" + std::to_string(number++);
    }

    const std::vector<sim::HostInfo>& hosts() const override { return hosts_; }
    Time now() const override { return now_; }
    void at(Time when) override { alarm_ = when; }
    void transfer(sim::HostId, sim::HostId, double bytes, std::int64_t token) override {
        const double stretch = 1 + jitter_ * stream_.uniform();
        latest_[token] = next_;
        arrivals_.push(
            {now_ + std::llround((latency_s_ + bytes / (bandwidth_ * share_)) * stretch * 1e9), next_++, token});
    }
    void cancel(std::int64_t token) override { cancelled_.insert(latest_.at(token)); }
    void degrade(const std::string&, double bandwidth_factor, double) override { share_ = bandwidth_factor; }
    Time control_delay(sim::HostId, sim::HostId, double) override { return std::llround(latency_s_ * 1e9); }
    void run(sim::NetworkSink& sink) override {
        stopped_ = false;
        while (!stopped_ && (alarm_ >= 0 || !arrivals_.empty())) {
            // Arrivals go before an alarm of the same nanosecond, so that the driver gathers them.
            if (!arrivals_.empty() && (alarm_ < 0 || arrivals_.top().at <= alarm_)) {
                const auto arrival = arrivals_.top();
                arrivals_.pop();
                if (const auto it = cancelled_.find(arrival.sequence); it != cancelled_.end()) {
                    cancelled_.erase(it);
                    continue;
                }
                now_ = std::max(now_, arrival.at);
                sink.on_transfer(arrival.token, fails_after-- != 0);
            } else {
                now_ = std::max(now_, alarm_);
                alarm_ = -1;
                sink.on_alarm();
            }
        }
    }
    void stop() override { stopped_ = true; }
    std::pair<double, double> route(sim::HostId, sim::HostId) override { return {bandwidth_, latency_s_}; }
    const std::vector<std::string>& warnings() const override { return warnings_; }

    std::int64_t fails_after = -1;  ///< so many transfers arrive, and then one fails; -1: none does

private:
    struct Arrival {
        Time at;
        std::uint64_t sequence;
        std::int64_t token;
        bool operator<(const Arrival& other) const {
            return at != other.at ? at > other.at : sequence > other.sequence;
        }
    };
    double latency_s_, bandwidth_, jitter_, share_ = 1;
    std::map<std::int64_t, std::uint64_t> latest_;  ///< by token: a new transfer may have that of a cancelled one
    std::set<std::uint64_t> cancelled_;             ///< numbers of transfers
    learn::Stream stream_;
    std::vector<sim::HostInfo> hosts_;
    std::vector<std::string> warnings_;
    std::priority_queue<Arrival> arrivals_;
    std::uint64_t next_ = 0;
    Time now_ = 0, alarm_ = -1;
    bool stopped_ = false;
};

}  // namespace rubato::test
