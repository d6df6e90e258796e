#include "cli/compare/saved_run.hpp"

#include "cli/calibrate/table.hpp"
#include "cli/error.hpp"

#include <cmath>

namespace rubato::cli {
namespace {

void keep_warning(const Table& table, std::vector<std::string>& warnings) {
    if (!table.warning().empty()) warnings.push_back(table.warning());
}

Outcome outcome_at(const Table& table, std::size_t column) {
    for (const Outcome outcome : {Outcome::applied, Outcome::dropped, Outcome::cancelled, Outcome::leftover})
        if (name(outcome) == table.text(column)) return outcome;
    table.refuse(column, "applied, dropped, cancelled or leftover");
}

}  // namespace

std::vector<GradientRow> read_gradients(const std::string& path, bool sums, std::vector<std::string>& warnings) {
    std::vector<std::string> columns{"seq",     "worker",   "worker_seq", "read_version", "apply_version", "samples",
                                     "pull_ns", "begin_ns", "end_ns",     "push_ns",      "applied_ns",    "outcome"};
    if (sums) columns.emplace_back("count");
    Table table(path, columns, true);
    std::vector<GradientRow> rows;
    while (table.next()) {
        GradientRow& row = rows.emplace_back();
        row.seq = table.whole(0);
        row.worker = static_cast<WorkerId>(table.whole(1));
        row.worker_seq = table.whole(2);
        row.read_version = table.whole(3);
        row.apply_version = table.whole_if_any(4).value_or(-1);
        row.samples = static_cast<std::int32_t>(table.whole(5));
        row.pull_ns = table.whole_if_any(6).value_or(-1);
        row.begin_ns = table.whole_if_any(7).value_or(-1);
        row.end_ns = table.whole_if_any(8).value_or(-1);
        row.push_ns = table.whole_if_any(9).value_or(-1);
        row.applied_ns = table.whole_if_any(10).value_or(-1);
        row.outcome = outcome_at(table, 11);
        if (sums) row.count = static_cast<std::int32_t>(table.whole(12));
    }
    keep_warning(table, warnings);
    return rows;
}

std::vector<UpdateRow> read_updates(const std::string& path, std::vector<std::string>& warnings) {
    Table table(path, {"time_ns", "version", "contributors", "mean_staleness", "samples", "shard"}, true);
    std::vector<UpdateRow> rows;
    while (table.next()) {
        if (table.whole(5) != 0) continue;  // the summary counts updates of the first one of several servers
        UpdateRow& row = rows.emplace_back();
        row.time_ns = table.whole(0);
        row.version = table.whole(1);
        row.contributors = static_cast<std::int32_t>(table.whole(2));
        row.mean_staleness = table.number_if_any(3).value_or(0);
        row.samples = table.whole(4);
    }
    keep_warning(table, warnings);
    return rows;
}

std::vector<SavedWorker> read_workers(const std::string& path, std::vector<std::string>& warnings) {
    Table table(path,
                {"worker", "applied", "compute_s", "push_queued_s", "push_moving_s", "pull_request_s", "pull_moving_s",
                 "policy_wait_s", "apply_wait_s", "idle_s"},
                true);
    std::vector<SavedWorker> rows;
    while (table.next()) {
        if (table.whole(0) != static_cast<std::int64_t>(rows.size()))
            table.refuse(0, "worker " + std::to_string(rows.size()));
        SavedWorker& row = rows.emplace_back();
        row.applied = table.whole(1);
        row.ended = table.number_if_any(2).has_value();
        if (!row.ended) continue;
        row.compute_s = table.number(2);
        row.push_queued_s = table.number(3);
        row.push_moving_s = table.number(4);
        row.pull_request_s = table.number(5);
        row.pull_moving_s = table.number(6);
        row.policy_wait_s = table.number(7);
        row.apply_wait_s = table.number(8);
        row.idle_s = table.number(9);
    }
    keep_warning(table, warnings);
    return rows;
}

std::vector<trace::ServerRow> read_servers(const std::string& path, std::vector<std::string>& warnings) {
    Table table(
        path,
        {"role", "pushes", "updates", "replies", "push_s", "update_s", "pull_s", "evaluate_s", "bytes_in", "bytes_out"},
        true);
    const auto ns = [&table](std::size_t index) {
        return static_cast<Time>(std::llround(table.number_if_any(index).value_or(0) * 1e9));
    };
    std::vector<trace::ServerRow> rows;
    while (table.next()) {
        trace::ServerRow& row = rows.emplace_back();
        row.role = static_cast<RoleId>(table.whole(0));
        row.pushes = table.whole(1);
        row.updates = table.whole(2);
        row.replies = table.whole(3);
        row.push_ns = ns(4);
        row.update_ns = ns(5);
        row.pull_ns = ns(6);
        row.evaluate_ns = ns(7);
        row.bytes_in = table.whole(8);
        row.bytes_out = table.whole(9);
    }
    keep_warning(table, warnings);
    return rows;
}

}  // namespace rubato::cli
