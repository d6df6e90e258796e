#include "trace/saved_run.hpp"

#include "trace/table_reader.hpp"

#include <cmath>
#include <stdexcept>

namespace rubato::trace {
namespace {

void keep_warning(const TableReader& table, std::vector<std::string>& warnings) {
    if (!table.warning().empty()) warnings.push_back(table.warning());
}

Outcome outcome_of(const std::string& text, const std::string& path) {
    for (const Outcome outcome : {Outcome::applied, Outcome::dropped, Outcome::cancelled, Outcome::leftover})
        if (name(outcome) == text) return outcome;
    throw std::invalid_argument(path + ": outcome: expected applied, dropped, cancelled or leftover, found \"" + text +
                                "\"");
}

}  // namespace

std::vector<GradientRow> read_gradients(const std::string& path, std::vector<std::string>& warnings) {
    TableReader table(path, {"seq", "worker", "worker_seq", "read_version", "apply_version", "samples", "pull_ns",
                             "begin_ns", "end_ns", "push_ns", "applied_ns", "outcome"});
    std::vector<GradientRow> rows;
    while (table.next()) {
        GradientRow& row = rows.emplace_back();
        row.seq = table.whole_at(0);
        row.worker = static_cast<WorkerId>(table.whole_at(1));
        row.worker_seq = table.whole_at(2);
        row.read_version = table.whole_at(3);
        row.apply_version = table.whole(4).value_or(-1);
        row.samples = static_cast<std::int32_t>(table.whole_at(5));
        row.pull_ns = table.whole(6).value_or(-1);
        row.begin_ns = table.whole(7).value_or(-1);
        row.end_ns = table.whole(8).value_or(-1);
        row.push_ns = table.whole(9).value_or(-1);
        row.applied_ns = table.whole(10).value_or(-1);
        row.outcome = outcome_of(table.text(11), path);
    }
    keep_warning(table, warnings);
    return rows;
}

std::vector<UpdateRow> read_updates(const std::string& path, std::vector<std::string>& warnings) {
    TableReader table(path, {"time_ns", "version", "contributors", "mean_staleness", "samples"});
    std::vector<UpdateRow> rows;
    while (table.next()) {
        UpdateRow& row = rows.emplace_back();
        row.time_ns = table.whole_at(0);
        row.version = table.whole_at(1);
        row.contributors = static_cast<std::int32_t>(table.whole_at(2));
        row.mean_staleness = table.number(3).value_or(0);
        row.samples = table.whole_at(4);
    }
    keep_warning(table, warnings);
    return rows;
}

std::vector<SavedWorker> read_workers(const std::string& path, std::vector<std::string>& warnings) {
    TableReader table(path, {"worker", "applied", "compute_s", "push_queued_s", "push_moving_s", "pull_request_s",
                             "pull_moving_s", "policy_wait_s", "apply_wait_s", "idle_s"});
    std::vector<SavedWorker> rows;
    while (table.next()) {
        if (table.whole_at(0) != static_cast<std::int64_t>(rows.size()))
            throw std::invalid_argument(path + ": expected worker " + std::to_string(rows.size()) + ", found " +
                                        std::to_string(table.whole_at(0)));
        SavedWorker& row = rows.emplace_back();
        row.applied = table.whole_at(1);
        row.ended = table.number(2).has_value();
        if (!row.ended) continue;
        row.compute_s = table.number_at(2);
        row.push_queued_s = table.number_at(3);
        row.push_moving_s = table.number_at(4);
        row.pull_request_s = table.number_at(5);
        row.pull_moving_s = table.number_at(6);
        row.policy_wait_s = table.number_at(7);
        row.apply_wait_s = table.number_at(8);
        row.idle_s = table.number_at(9);
    }
    keep_warning(table, warnings);
    return rows;
}

std::vector<ServerRow> read_servers(const std::string& path, std::vector<std::string>& warnings) {
    TableReader table(path, {"role", "pushes", "updates", "replies", "push_s", "update_s", "pull_s", "evaluate_s",
                             "bytes_in", "bytes_out"});
    const auto ns = [&table](std::size_t index) {
        return static_cast<Time>(std::llround(table.number(index).value_or(0) * 1e9));
    };
    std::vector<ServerRow> rows;
    while (table.next()) {
        ServerRow& row = rows.emplace_back();
        row.role = static_cast<RoleId>(table.whole_at(0));
        row.pushes = table.whole_at(1);
        row.updates = table.whole_at(2);
        row.replies = table.whole_at(3);
        row.push_ns = ns(4);
        row.update_ns = ns(5);
        row.pull_ns = ns(6);
        row.evaluate_ns = ns(7);
        row.bytes_in = table.whole_at(8);
        row.bytes_out = table.whole_at(9);
    }
    keep_warning(table, warnings);
    return rows;
}

}  // namespace rubato::trace
