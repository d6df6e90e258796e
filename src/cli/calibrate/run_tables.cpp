#include "cli/calibrate/run_tables.hpp"

#include "cli/calibrate/table.hpp"
#include "cli/json_reader.hpp"
#include "cli/load.hpp"

#include <algorithm>
#include <filesystem>
#include <tuple>

namespace rubato::cli {
namespace {

namespace fs = std::filesystem;

/// A row's time must be that of one gradient on one device.
void require_single_gradients(const RunTables& run) {
    const WorkersSpec& workers = run.scenario.workers;
    const auto refuse = [&](const std::string& key, const std::string& why) {
        throw InputError(run.directory + ": has " + key + " above 1, so that " + why +
                         ": expected a run of the same machine without it");
    };
    if (run.scenario.topology == "sharded")
        throw InputError(run.directory +
                         ": has sharded servers, whose messages are parts of a model: expected a run of the same "
                         "machine with one server");
    if (workers.communication.push_every > 1)
        refuse("workers.communication.push_every", "its rows tell how long several gradients took together");
    if (run.backend != "sim" && !run.scenario.emulate.compute) return;
    for (const WorkerGroup& group : workers.groups)
        if (group.devices > 1) refuse("devices of a worker", "its rows tell of the slowest of several devices");
}

/// Returns how many rows there are of each worker.
std::vector<std::int64_t> read_gradients(const fs::path& path, RunTables& run) {
    std::error_code error;
    if (!fs::exists(path, error))
        throw InputError(path.string() + ": there is no such file; a run leaves it unless trace.gradients is false");
    Table table(path.string(), {"worker", "worker_seq", "read_version", "samples", "begin_ns", "end_ns", "push_ns"},
                true);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(run.scenario.lambda()));
    while (table.next()) {
        const std::int64_t worker = table.whole(0);
        if (worker < 0 || worker >= run.scenario.lambda())
            table.refuse(0, "a worker from 0 to " + std::to_string(run.scenario.lambda() - 1));
        ++rows[static_cast<std::size_t>(worker)];
        const auto begin = table.whole_if_any(4), end = table.whole_if_any(5), push = table.whole_if_any(6);
        // Of a gradient that was cancelled nobody knows how long it would have taken.
        if (!begin || !end) continue;
        const std::int64_t samples = table.whole(3);
        if (samples < 1 || samples > 1'000'000'000) table.refuse(3, "a number of samples");
        if (*end < *begin) table.refuse(5, "an end after begin_ns");
        run.gradients.push_back({static_cast<std::int32_t>(worker), static_cast<std::int32_t>(samples), table.whole(1),
                                 table.whole(2), 1e-9 * static_cast<double>(*begin), 1e-9 * static_cast<double>(*end),
                                 push ? 1e-9 * static_cast<double>(*push) : -1});
    }
    std::sort(run.gradients.begin(), run.gradients.end(), [](const TimedGradient& a, const TimedGradient& b) {
        return std::tie(a.worker, a.worker_seq) < std::tie(b.worker, b.worker_seq);
    });
    return rows;
}

/// What workers spent is divided by their gradients, so that the rows must be those of all.
void require_all_rows(const std::string& path, const RunTables& run, const std::vector<std::int64_t>& rows) {
    if (run.scenario.trace.every > 1) return;
    for (std::size_t w = 0; w < run.workers.size(); ++w)
        if (rows[w] != run.workers[w].started)
            throw InputError(path + ": has " + std::to_string(rows[w]) + " rows of worker " + std::to_string(w) +
                             ", which has begun " + std::to_string(run.workers[w].started) +
                             " gradients by workers.csv: expected the whole table");
}

void read_workers(const fs::path& path, RunTables& run) {
    Table table(path.string(),
                {"worker", "host", "push_moving_s", "pull_moving_s", "pull_request_s", "inquiries", "pulls",
                 "compute_s", "gradients", "applied", "dropped", "cancelled", "leftover"},
                true);
    while (table.next()) {
        WorkerTotals worker;
        worker.host = table.text(1);
        worker.push_moving_s = table.number_if_any(2).value_or(0);
        worker.pull_moving_s = table.number_if_any(3).value_or(0);
        worker.pull_request_s = table.number_if_any(4).value_or(0);
        worker.inquiries = table.whole_if_any(5).value_or(0);
        worker.pulls = table.whole_if_any(6).value_or(0);
        worker.compute_s = table.number_if_any(7).value_or(0);
        worker.gradients = table.whole_if_any(8).value_or(0);
        for (const std::size_t outcome : {9, 10, 11, 12}) worker.started += table.whole(outcome);
        if (table.whole(0) != static_cast<std::int64_t>(run.workers.size()))
            table.refuse(0, "worker " + std::to_string(run.workers.size()));
        run.workers.push_back(worker);
    }
    if (static_cast<int>(run.workers.size()) != run.scenario.lambda())
        throw InputError(path.string() + ": expected " + std::to_string(run.scenario.lambda()) +
                         " workers as in scenario.json, found " + std::to_string(run.workers.size()));
}

void read_servers(const fs::path& path, RunTables& run) {
    Table table(path.string(),
                {"host", "pushes", "updates", "replies", "push_s", "update_s", "pull_s", "bytes_in", "bytes_out"},
                true);
    while (table.next()) {
        run.servers.push_back({table.text(0), table.whole(1), table.whole(2), table.whole(3),
                               table.number_if_any(4).value_or(0), table.number_if_any(5).value_or(0),
                               table.number_if_any(6).value_or(0), table.number(7), table.number(8)});
    }
}

}  // namespace

// The server counts bytes that arrive and pushes that it has taken in, and a few are under way at the end; those of the
// weights are counted at once.
MessageSizes message_sizes(const RunTables& run) {
    const ServerTotals& server = run.servers.front();
    MessageSizes sizes;
    if (server.replies > 0) sizes.pull = server.bytes_out / static_cast<double>(server.replies);
    if (server.pushes == 0) return sizes;
    sizes.push = server.bytes_in / static_cast<double>(server.pushes);
    const CostSpec& cost = run.scenario.cost;
    if (run.backend == "sim" && cost.push_bytes > 0)
        sizes.push = static_cast<double>(cost.push_bytes);
    else if (sizes.push > 0.8 * sizes.pull && sizes.push < 1.25 * sizes.pull)
        sizes.push = sizes.pull;
    return sizes;
}

RunTables read_run(const std::string& directory) {
    const fs::path folder(directory);
    std::error_code error;
    if (!fs::is_directory(folder, error)) throw InputError(directory + ": there is no such run directory");
    if (!fs::exists(folder / "scenario.json", error))
        throw InputError(directory + ": is no run directory, it has no scenario.json");
    RunTables run;
    run.directory = directory;
    run.scenario = read_scenario((folder / "scenario.json").string()).scenario;
    if (fs::exists(folder / "summary.json", error)) {
        const Node summary = read_json((folder / "summary.json").string());
        const Node* backend = summary.find("backend");
        if (backend && backend->is(Node::Kind::string)) run.backend = backend->text;
        const Node* engine = summary.find("engine");
        const Node* crowded = engine ? engine->find("oversubscribed") : nullptr;
        run.oversubscribed = crowded && crowded->boolean;
    }
    require_single_gradients(run);
    const auto rows = read_gradients(folder / "gradients.csv", run);
    // Both are written at the end of a run.
    if (!run.backend.empty() && fs::exists(folder / "workers.csv", error)) read_workers(folder / "workers.csv", run);
    require_all_rows((folder / "gradients.csv").string(), run, rows);
    if (!run.backend.empty() && fs::exists(folder / "servers.csv", error)) read_servers(folder / "servers.csv", run);
    return run;
}

}  // namespace rubato::cli
