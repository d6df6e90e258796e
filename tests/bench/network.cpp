// Transfers per second of a network model alone: workers push through the server's link, at most so many at a time.
//
//     bench_network                              the flow model at four sizes, one JSON object a line
//     bench_network WORKERS TRANSFERS [MODEL] [CAP]   MODEL: flow, CM02 (default) or LV08; CAP: 8, 0 for none
#include "sim/network.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

using namespace rubato;

namespace {

/// Each worker computes, pushes to the server, and starts again when its push has arrived.
class Pushes final : public sim::NetworkSink {
public:
    Pushes(sim::Network& network, int workers, std::int64_t transfers, int cap)
        : network_(network), left_(transfers), cap_(cap > 0 ? cap : workers) {
        for (int w = 1; w <= workers; ++w) ready_.emplace_back(1000 * w, w);
        arm();
    }
    void on_alarm() override {
        while (!ready_.empty() && ready_.front().first <= network_.now()) {
            queue_.push_back(ready_.front().second);
            ready_.pop_front();
        }
        start();
        arm();
    }
    void on_transfer(std::int64_t token, bool) override {
        --moving_;
        if (--left_ == 0) return network_.stop();
        ready_.emplace_back(network_.now() + 1000000, static_cast<int>(token));
        start();
        arm();
    }

private:
    void start() {
        while (moving_ < cap_ && !queue_.empty()) {
            // Sizes differ, so that ends do not follow the order of beginnings.
            network_.transfer(queue_.front(), 0, 1e6 + 1000 * (queue_.front() % 97), queue_.front());
            queue_.pop_front();
            ++moving_;
        }
    }
    void arm() {
        if (!ready_.empty()) network_.at(ready_.front().first);
    }
    sim::Network& network_;
    std::int64_t left_;
    int cap_;
    int moving_ = 0;
    std::deque<std::pair<Time, int>> ready_;
    std::deque<int> queue_;
};

struct Figures {
    double rate, build_s, end_s;
};

Figures measure(const Scenario& scenario, int workers, std::int64_t transfers, int cap) {
    const auto begin = std::chrono::steady_clock::now();
    const auto network = sim::open_network({&scenario, workers + 1, true});
    const auto built = std::chrono::steady_clock::now();
    Pushes pushes(*network, workers, transfers, cap);
    network->run(pushes);
    const std::chrono::duration<double> build = built - begin, run = std::chrono::steady_clock::now() - built;
    return {static_cast<double>(transfers) / run.count(), build.count(), static_cast<double>(network->now()) * 1e-9};
}

void measure_flow() {
    Scenario scenario;
    scenario.cluster.network.model = "flow";
    const struct {
        int workers, cap;
        const char* target;
    } sizes[] = {{30, 8, ">= 10,000,000"},
                 {1000, 8, ">= 10,000,000"},
                 {10000, 8, ">= 10,000,000"},
                 {100000, 8, ">= 5,000,000"},
                 {10000, 0, ">= 1,000,000"}};
    for (const auto& [workers, cap, target] : sizes) {
        double best = 0;
        for (int round = 0; round < 3; ++round) best = std::max(best, measure(scenario, workers, 5000000, cap).rate);
        const std::string at_once = cap == 0 ? "all" : std::to_string(cap);
        std::printf(
            "{\"name\": \"transfers/s, flow network, %d workers, %s at once\", \"value\": %.0f, \"target\": \"%s\", "
            "\"detail\": \"network alone, fastest of 3\"}\n",
            workers, at_once.c_str(), best, target);
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 1) return measure_flow(), 0;
    const int workers = std::atoi(argv[1]);
    const std::int64_t transfers = argc > 2 ? std::atoll(argv[2]) : 1000000;
    Scenario scenario;
    const std::string model = argc > 3 ? argv[3] : "CM02";
    (model == "flow" ? scenario.cluster.network.model : scenario.cluster.network.simgrid) = model;
    const Figures figures = measure(scenario, workers, transfers, argc > 4 ? std::atoi(argv[4]) : 8);
    std::printf("%d workers, %lld transfers: %.0f transfers/s, platform in %.3f s, virtual end %.9f s\n", workers,
                static_cast<long long>(transfers), figures.rate, figures.build_s, figures.end_s);
    return 0;
}
