// What messages would take alone, from messages that shared a link.
#include "cli/calibrate/contention.hpp"
#include "learn/random.hpp"
#include "sim/flow/flow_network.hpp"
#include "sim/network.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace rubato;
using namespace rubato::cli;
using doctest::Approx;

namespace {

/// Messages of `bytes` from several hosts to the server of an inline star, over the flow model.
class Star final : public sim::NetworkSink {
public:
    Star(double server_bandwidth, int hosts) {
        scenario_.cluster.network.model = "flow";
        scenario_.cluster.network.star = {1e9, 25e-6, server_bandwidth, 1e11, {}};
        network_ = sim::open_network({&scenario_, hosts + 1, true});
    }
    std::vector<Transfer> run(std::vector<Transfer> planned) {
        std::sort(planned.begin(), planned.end(), [](const auto& a, const auto& b) { return a.begin_s < b.begin_s; });
        transfers_ = std::move(planned);
        network_->at(time_of(0));
        network_->run(*this);
        return transfers_;
    }
    void on_alarm() override {
        for (; next_ < transfers_.size() && time_of(next_) <= network_->now(); ++next_)
            network_->transfer(transfers_[next_].host + 1, 0, transfers_[next_].bytes,
                               static_cast<std::int64_t>(next_));
        if (next_ < transfers_.size()) network_->at(time_of(next_));
    }
    void on_transfer(std::int64_t token, bool) override {
        transfers_[static_cast<std::size_t>(token)].end_s = 1e-9 * static_cast<double>(network_->now());
    }

private:
    Time time_of(std::size_t i) const { return static_cast<Time>(1e9 * transfers_[i].begin_s); }

    Scenario scenario_;
    std::unique_ptr<sim::Network> network_;
    std::vector<Transfer> transfers_;
    std::size_t next_ = 0;
};

/// 2,000 messages of 1 MB at random times, at a load of `load` of a host's link.
std::vector<Transfer> planned(double load, int hosts) {
    learn::Stream stream(3, 0, learn::Purpose::sample, 0);
    std::vector<Transfer> transfers;
    for (int i = 0; i < 2000; ++i) {
        const double begin = 2000 * 1e-3 / load * stream.uniform();
        transfers.push_back(
            {begin, 0, 1e6, static_cast<std::int32_t>(stream.below(static_cast<std::uint64_t>(hosts)))});
    }
    return transfers;
}

}  // namespace

TEST_CASE("the mean of messages that share one link tells what one takes alone, from either end") {
    for (const double load : {0.05, 0.5, 0.9}) {
        const auto done = Star(1e9, 40).run(planned(load, 40));
        double total = 0;
        std::vector<double> starts, ends;
        for (const auto& transfer : done) {
            total += transfer.end_s - transfer.begin_s;
            starts.push_back(transfer.begin_s);
            ends.push_back(-transfer.end_s);
        }
        std::sort(ends.begin(), ends.end());
        const double mean = total / static_cast<double>(done.size());
        CHECK(mean > (load < 0.4 ? 1.0 : 1.2) * 1.05e-3);
        const SharedLink link{50e-6, 0};
        CHECK(mean_moving(starts, link, 1.05e-3) == Approx(mean).epsilon(0.001));
        CHECK(alone_seconds(starts, link, mean) == Approx(1.05e-3).epsilon(0.002));
        CHECK(alone_seconds(ends, link, mean) == Approx(1.05e-3).epsilon(0.002));
    }
}

TEST_CASE("a cap on transfers lets the rest wait without moving") {
    const std::vector<double> starts{0, 0, 0, 0};
    CHECK(mean_moving(starts, {0, 0}, 1) == Approx(4));
    CHECK(mean_moving(starts, {0, 1}, 1) == Approx(1));
    CHECK(mean_moving(starts, {0, 2}, 1) == Approx(2));
    CHECK(mean_moving(starts, {0.5, 1}, 1.5) == Approx(1.5));
    CHECK(alone_seconds(starts, {0, 2}, 2) == Approx(1).epsilon(1e-4));
    CHECK(alone_seconds(starts, {3, 2}, 2) == 2);
}

TEST_CASE("single transfers tell the capacity of the server's link, though hosts share links too") {
    for (const double capacity : {1.0, 2.5}) {
        const auto done = Star(capacity * 1e9, 6).run(planned(0.9 * capacity, 6));
        const Unshared result = unshared(done, 50e-6);
        CHECK(result.capacity == Approx(capacity).epsilon(0.05));
        CHECK(result.saturated);
        for (const double seconds : result.seconds) REQUIRE(seconds == Approx(1.05e-3).epsilon(0.06));
    }
    // Far from full, the link bears at least what it has borne.
    const auto done = Star(100e9, 6).run(planned(0.9, 6));
    const Unshared result = unshared(done, 50e-6);
    CHECK_FALSE(result.saturated);
    for (const double seconds : result.seconds) REQUIRE(seconds == Approx(1.05e-3).epsilon(0.001));
}
