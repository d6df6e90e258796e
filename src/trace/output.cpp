#include "trace/output.hpp"

#include "trace/tables.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace rubato::trace {
namespace {

Place place_of(const std::vector<Place>& places, RoleId role) {
    const auto index = static_cast<std::size_t>(role);
    return index < places.size() ? places[index] : Place{};
}

template <class Row>
void write_row(LineFile& file, const Row& row) {
    file.commit(put_row(file.reserve(), row));
}

}  // namespace

Output::Output(const Scenario& scenario, const RecorderOptions& options)
    : directory_(options.directory), every_(std::max(1, scenario.trace.every)) {
    make_directory(directory_);
    remove_leftovers(scenario.trace);
    write_file_by_rename(path("scenario.json"), options.scenario_json);
    write_file_by_rename(path("command.txt"), options.command + "\n");
    if (scenario.trace.gradients) gradients_.emplace(path("gradients.csv"), gradients_header);
    if (scenario.trace.updates) updates_.emplace(path("updates.csv"), updates_header);
    evals_.emplace(path("evals.csv"), evals_header);
    if (scenario.trace.timeline) timeline_.emplace(path("timeline.csv"), timeline_header);
    if (!scenario.trace.events) return;
    LogHeader header;
    header.samples = options.samples;
    header.parameters = options.parameters;
    header.lambda = scenario.lambda();
    header.scenario = scenario.name;
    log_.emplace(path("events.log"), header);
}

void Output::remove_leftovers(const TraceSpec& trace) const {
    const std::pair<const char*, bool> names[] = {{"summary.json", true},          {"workers.csv", true},
                                                  {"servers.csv", true},           {"gradients.csv", !trace.gradients},
                                                  {"updates.csv", !trace.updates}, {"timeline.csv", !trace.timeline},
                                                  {"events.log", !trace.events}};
    for (const auto& [name, remove] : names) {
        std::error_code error;  // where nothing can be removed nothing can be written, which is reported then
        if (remove) std::filesystem::remove(path(name), error);
    }
}

bool Output::takes(const Actions& actions) const {
    return (gradients_ && !actions.gradients.empty()) || (updates_ && !actions.updates.empty()) ||
           !actions.evals.empty() || log_;
}

void Output::write(Time now, RoleId role, const Event& event, const Actions& actions) {
    if (gradients_)
        for (const GradientRow& row : actions.gradients)
            if (row.outcome != Outcome::applied || row.seq % every_ == 0) write_row(*gradients_, row);
    if (updates_)
        for (const UpdateRow& row : actions.updates) write_row(*updates_, row);
    for (const EvalRow& row : actions.evals) write_row(*evals_, row);
    if (log_) log_->step(now, role, event, actions);
}

void Output::write(const Span& span) {
    if (timeline_) write_row(*timeline_, span);
}

void Output::flush() {
    for (auto* file : {&gradients_, &updates_, &evals_, &timeline_})
        if (*file) (*file)->flush();
    if (log_) log_->flush();
}

void Output::finish(Figures& figures, const DriverReport& report, const std::vector<Place>& places) {
    for (auto* file : {&gradients_, &updates_, &evals_, &timeline_})
        if (*file) (*file)->close();
    if (log_) log_->finish();

    LineFile workers(path("workers.csv"), workers_header);
    for (std::size_t i = 0; i < figures.workers().size(); ++i) {
        const auto& worker = figures.workers()[i];
        const auto id = static_cast<WorkerId>(i);
        workers.append(worker_line(id, place_of(places, id + 1), worker.outcomes, worker.staleness.mean(),
                                   worker.staleness.percentile(99), worker.times, figures.last_update_ns));
    }
    workers.close();
    LineFile servers(path("servers.csv"), servers_header);
    for (const ServerRow& row : report.servers)
        servers.append(server_line(row, place_of(places, row.role), figures.last_update_ns));
    servers.close();
}

void Output::write_summary(const std::string& text) {
    write_file_by_rename(path("summary.json"), text);
}

}  // namespace rubato::trace
