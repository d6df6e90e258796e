// What a sweep adds to each point besides the run itself, one JSON object a line: resolving and checking the setting,
// the recorder and the row, and the table's side of it. Called with a sweep file.
#include "cli/sweep/aggregate.hpp"
#include "cli/sweep/run_point.hpp"
#include "trace/recorder.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

using namespace rubato;
using namespace rubato::cli;

namespace {

constexpr int rounds = 2000;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class F>
void measure(const char* what, double microseconds_max, F&& call) {
    call(0);
    const double begin = now();
    for (int i = 0; i < rounds; ++i) call(i);
    std::printf("{\"name\": \"%s\", \"value\": %.2f, \"unit\": \"us\", \"target\": \"<= %g\"}\n", what,
                (now() - begin) / rounds * 1e6, microseconds_max);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const SweepFile sweep = read_sweep(argv[1], {});
    Resolver resolver(sweep);
    const std::uint32_t settings = resolver.settings();
    measure("sweep: resolve and check a setting", 60, [&](int i) {
        resolver.at({static_cast<std::uint32_t>(i) % settings, -1});
    });
    const Setting& setting = resolver.at({0, -1});
    std::string row;
    measure("sweep: seed, recorder and row of a point", 25, [&](int i) {
        const Scenario scenario = with_seed(setting.loaded, i);
        const trace::Recorder recorder(scenario, {});
        row = result_row(setting, Phase::report, i, identity_of(setting.content, setting.label, Phase::report, i),
                         "finished", "", recorder.cells({}));
    });
    const std::string folder =
        (std::filesystem::temp_directory_path() / ("rubato_bench_" + identity_text(std::uint64_t(now() * 1e9))))
            .string();
    std::filesystem::create_directories(folder);
    {
        Claims claims(folder);
        Results results(folder, result_columns(sweep));
        results.open_for_writing(
            claims, [](std::uint64_t) { return nullptr; }, false);
        ResultTable table;
        measure("sweep: claim, append and take in a row", 40, [&](int i) {
            claims.take(static_cast<std::uint64_t>(i) << 8);
            results.append(claims, row + "\n", [&](const ResultRow& taken) { table.take(results, taken); });
            claims.release(static_cast<std::uint64_t>(i) << 8);
        });
    }
    std::filesystem::remove_all(folder);
    return 0;
}
