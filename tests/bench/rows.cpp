// How many rows a second the recorder takes, as a timing-only simulation would state them.
#include "trace/recorder.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>

using namespace rubato;
using namespace rubato::trace;

int main(int argc, char** argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: bench_rows DIRECTORY [events]\n"), 2;
    Scenario scenario;
    scenario.workers.groups = {{1000, "default", 1}};
    scenario.trace.events = argc > 2;
    RecorderOptions options;
    options.directory = argv[1];
    options.samples = 60000;
    Recorder recorder(scenario, options);
    constexpr std::int64_t rows = 5'000'000;
    const auto begin = std::chrono::steady_clock::now();
    Actions actions;
    const Event event = Applied{};
    for (std::int64_t i = 0; i < rows; ++i) {
        actions.clear();
        GradientRow row;
        row.seq = i;
        row.worker = static_cast<WorkerId>(i % 1000);
        row.worker_seq = i / 1000;
        row.read_version = i < 999 ? 0 : i - 999;
        row.apply_version = i;
        row.samples = 32;
        row.pull_ns = i * 1234567;
        row.begin_ns = row.pull_ns + 1000;
        row.end_ns = row.begin_ns + 200'000'000;
        row.push_ns = row.end_ns;
        row.applied_ns = row.push_ns + 3'000'000;
        row.batch = {static_cast<std::int32_t>(i / 1875), 32, i % 1875 * 32};
        actions.gradients.push_back(row);
        recorder.step(row.applied_ns, 0, event, actions);
    }
    recorder.finish({});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double processor_s = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    std::printf("million rows/s: %.2f by the clock, %.2f by processor time\n",
                static_cast<double>(rows) / took.count() / 1e6, static_cast<double>(rows) / processor_s / 1e6);
}
