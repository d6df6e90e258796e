// Messages per second of the network model alone: workers push through the server's link, at most eight at a time.
#include "sim/network.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>

using namespace rubato;

namespace {

/// Each worker computes, pushes to the server, and starts again when its push has arrived.
class Pushes final : public sim::NetworkSink {
public:
    Pushes(sim::Network& network, int workers, std::int64_t messages) : network_(network), left_(messages) {
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
        while (moving_ < 8 && !queue_.empty()) {
            network_.transfer(queue_.front(), 0, 1e6, queue_.front());
            queue_.pop_front();
            ++moving_;
        }
    }
    void arm() {
        if (!ready_.empty()) network_.at(ready_.front().first);
    }
    sim::Network& network_;
    std::int64_t left_;
    int moving_ = 0;
    std::deque<std::pair<Time, int>> ready_;
    std::deque<int> queue_;
};

}  // namespace

int main(int argc, char** argv) {
    const int workers = argc > 1 ? std::atoi(argv[1]) : 30;
    const std::int64_t messages = argc > 2 ? std::atoll(argv[2]) : 1000000;
    Scenario scenario;
    if (argc > 3) scenario.cluster.network.simgrid = argv[3];
    const auto begin = std::chrono::steady_clock::now();
    const auto network = sim::open_network({&scenario, workers + 1});
    const auto built = std::chrono::steady_clock::now();
    Pushes pushes(*network, workers, messages);
    network->run(pushes);
    const auto end = std::chrono::steady_clock::now();
    const std::chrono::duration<double> build = built - begin, run = end - built;
    std::printf("%d workers, %lld messages: %.0f messages/s, platform in %.3f s, virtual end %.9f s\n", workers,
                static_cast<long long>(messages), static_cast<double>(messages) / run.count(), build.count(),
                static_cast<double>(network->now()) * 1e-9);
    return 0;
}
