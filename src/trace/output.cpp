#include "trace/output.hpp"

#include "core/policy.hpp"
#include "trace/checkpoint.hpp"
#include "trace/rank_parts.hpp"
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

/// For the last tables and the summary of a run that fills the disk.
constexpr const char *room = ".room", *summary_room = ".room-summary";

template <class Row>
void write_row(LineFile& file, const Row& row) {
    file.commit(put_row(file.reserve(), row));
}

}  // namespace

Output::Output(const Scenario& scenario, const RecorderOptions& options)
    : directory_(options.directory),
      rank_(options.rank),
      every_(std::max(1, scenario.trace.every)),
      sums_(scenario.workers.communication.push_every > 1) {
    header_.samples = options.samples;
    header_.parameters = options.parameters;
    header_.lambda = scenario.lambda();
    const bool parts_by_layers = scenario.protocol.averages_in_parts() && scenario.protocol.averaging.phases.by_layers;
    if (parts_by_layers || scenario.protocol.by_layers() ||
        (scenario.topology == "sharded" && scenario.shards.by_layers))
        header_.layers = scenario.layers;
    header_.scenario = scenario.name;
    const auto& resume = options.resume;
    const TableSizes sizes = resume ? resume->mark.tables : TableSizes{};
    if (resume) state_ = resume->roles;
    begin_parts(scenario.trace, resume);
    if (rank_ > 0) return;
    make_directory(directory_);
    hold_room(path(room));
    hold_room(path(summary_room));
    remove_leftovers(scenario.trace, resume.has_value());
    write_file_by_rename(path("scenario.json"), options.scenario_json);
    write_file_by_rename(path("command.txt"), options.command + "\n");
    if (scenario.trace.gradients)
        open(gradients_, path("gradients.csv"), sums_ ? summed_gradients_header : gradients_header, sizes.gradients);
    if (scenario.trace.updates) open(updates_, path("updates.csv"), updates_header, sizes.updates);
    open(evals_, path("evals.csv"), evals_header, sizes.evals);
    if (traits(scenario.protocol, scenario.lambda()).controller)
        open(controller_, path("controller.csv"), controller_header, sizes.controller);
    if (scenario.topology == "sharded" && scenario.trace.gradients)
        open(shards_, path("shards.csv"), shards_header, -1);
    if (scenario.protocol.averages() && scenario.trace.updates)
        open(rounds_, path("rounds.csv"), rounds_header, sizes.rounds);
    if (scenario.protocol.averages_in_phases() && scenario.trace.updates)
        open(exchanges_, path("exchanges.csv"), exchanges_header, sizes.exchanges);
    if (scenario.protocol.reduces() && scenario.trace.updates)
        open(iterations_, path("iterations.csv"), iterations_header, sizes.iterations);
    if (scenario.protocol.reduces() && scenario.trace.layers)
        open(layers_, path("layers.csv"), layers_header, sizes.layers);
    faults_size_ = sizes.faults;
    if (sizes.faults >= 0) open(faults_, path("faults.csv"), faults_header, sizes.faults);
    if (rank_ == 0) return;
    if (scenario.trace.timeline) open(timeline_, path("timeline.csv"), timeline_header, sizes.timeline);
    if (scenario.trace.events) log_.emplace(path("events.log"), header_, state_);
}

Output::~Output() {
    if (rank_ > 0) return;
    release_room(path(room));
    release_room(path(summary_room));
}

void Output::open(std::optional<LineFile>& file, const std::string& path, std::string_view header,
                  std::int64_t size) const {
    if (size < 0)
        file.emplace(path, header);
    else
        file.emplace(path, size);
}

void Output::begin_parts(const TraceSpec& trace, const std::optional<RecorderResume>& resume) {
    const bool goes_on = resume && trace.timeline && rank_ >= 0;
    if (rank_ <= 0 && !goes_on) remove_parts(directory_);
    if (rank_ < 0 || (!trace.timeline && !trace.events)) return;
    make_directory(directory_);  // where that fails, it is what the user named that is told
    make_directory(directory_ + "/ranks");
    const std::string timeline = part_path(directory_, "timeline.csv", rank_);
    // The parts of a run that ended in order have become one.
    std::error_code error;
    if (goes_on && rank_ == 0 && !std::filesystem::exists(timeline, error))
        std::filesystem::rename(path("timeline.csv"), timeline, error);
    if (trace.timeline)
        open(timeline_, timeline, timeline_header, goes_on ? keep_part_until(timeline, resume->now_ns) : -1);
    if (trace.events) log_.emplace(part_path(directory_, "events.log", rank_), header_);
}

void Output::remove_leftovers(const TraceSpec& trace, bool resumes) const {
    std::error_code ignored;
    if (!resumes) std::filesystem::remove_all(checkpoint_folder(directory_), ignored);
    const std::pair<const char*, bool> names[] = {{"summary.json", true},          {"workers.csv", true},
                                                  {"servers.csv", true},           {"gradients.csv", !trace.gradients},
                                                  {"updates.csv", !trace.updates}, {"timeline.csv", !trace.timeline},
                                                  {"events.log", !trace.events},   {"controller.csv", !resumes},
                                                  {"faults.csv", !resumes},        {"shards.csv", true},
                                                  {"rounds.csv", !resumes},        {"exchanges.csv", !resumes},
                                                  {"iterations.csv", !resumes},    {"layers.csv", !resumes}};
    for (const auto& [name, remove] : names) {
        std::error_code error;  // where nothing can be removed nothing can be written, which is reported then
        if (remove) std::filesystem::remove(path(name), error);
    }
}

bool Output::takes(const Actions& actions) const {
    return (gradients_ && !actions.gradients.empty()) || (updates_ && !actions.updates.empty()) ||
           (evals_ && !actions.evals.empty()) || (controller_ && !actions.controller.empty()) ||
           (shards_ && !actions.shards.empty()) || (rounds_ && !actions.rounds.empty()) ||
           (exchanges_ && !actions.exchanges.empty()) || (iterations_ && !actions.iterations.empty()) ||
           (layers_ && !actions.buckets.empty()) || log_;
}

void Output::write_rows(const Actions& actions) {
    if (gradients_)
        for (const GradientRow& row : actions.gradients)
            if (row.outcome != Outcome::applied || keeps(row)) write(row);
    if (updates_)
        for (const UpdateRow& row : actions.updates) write_row(*updates_, row);
    if (evals_)
        for (const EvalRow& row : actions.evals) write_row(*evals_, row);
    if (controller_)
        for (const ControllerRow& row : actions.controller) write_row(*controller_, row);
    if (shards_)
        for (const ShardRow& row : actions.shards)
            if (row.outcome != Outcome::applied || row.worker_seq % every_ == 0) write_row(*shards_, row);
    if (rounds_)
        for (const RoundRow& row : actions.rounds) write_row(*rounds_, row);
    if (exchanges_)
        for (const ExchangeRow& row : actions.exchanges) write_row(*exchanges_, row);
    if (iterations_)
        for (const IterationRow& row : actions.iterations) write_row(*iterations_, row);
    if (layers_)
        for (const BucketRow& row : actions.buckets) write_row(*layers_, row);
}

// Those that hold the first, or one by `every` further on.
bool Output::keeps(const GradientRow& row) const {
    return (row.seq + row.count - 1) / every_ != (row.seq - 1) / every_ || row.seq == 0;
}

void Output::write(const GradientRow& row) {
    if (sums_)
        gradients_->commit(put_summed_row(gradients_->reserve(), row));
    else
        write_row(*gradients_, row);
}

TableSizes Output::mark() {
    flush();
    const auto size = [](const std::optional<LineFile>& file) { return file ? file->size() : -1; };
    return {size(gradients_), size(updates_), size(evals_),     size(timeline_),   size(controller_),
            size(faults_),    size(rounds_),  size(exchanges_), size(iterations_), size(layers_)};
}

void Output::write(Time now, RoleId role, const Event& event, const Actions& actions) {
    write_rows(actions);
    log(now, role, event, actions);
}

void Output::log(Time now, RoleId role, const Event& event, const Actions& actions) {
    if (log_) log_->step(now, role, event, actions);
}

void Output::write(const Span& span) {
    if (timeline_) write_row(*timeline_, span);
}

// Runs without faults have no such table.
void Output::write(const FaultRow& row) {
    if (rank_ > 0) return;
    if (!faults_) open(faults_, path("faults.csv"), faults_header, faults_size_);
    faults_->append(fault_line(row));
}

void Output::flush() {
    for (auto* file : {&gradients_, &updates_, &evals_, &timeline_, &controller_, &faults_, &shards_, &rounds_,
                       &exchanges_, &iterations_, &layers_})
        if (*file) (*file)->flush();
    if (log_) log_->flush();
}

void Output::close() {
    for (auto* file : {&gradients_, &updates_, &evals_, &timeline_, &controller_, &faults_, &shards_, &rounds_,
                       &exchanges_, &iterations_, &layers_})
        if (*file) (*file)->close();
    if (log_) log_->finish();
}

void Output::abandon() {
    for (auto* file :
         {&gradients_, &updates_, &evals_, &timeline_, &shards_, &rounds_, &exchanges_, &iterations_, &layers_})
        if (*file) (*file)->abandon();
    if (log_) log_->abandon();
}

void Output::finish(Figures& figures, const DriverReport& report, const std::vector<Place>& places) {
    if (report.status == Status::disk_full) {
        abandon();
    } else {
        close();
        if (rank_ == 0 && timeline_) merge_timelines(directory_, report.ranks);
        if (rank_ == 0 && log_) merge_event_logs(directory_, report.ranks, header_, state_);
    }
    release_room(path(room));
    try {
        write_tables(figures, report, places);
    } catch (const OutputError& problem) {
        // Others may have taken the room at once. The summary, which has one of its own, says what it has to.
        if (!problem.full || report.status != Status::disk_full) throw;
        std::error_code ignored;
        for (const char* name : {"workers.csv", "servers.csv"}) std::filesystem::remove(path(name), ignored);
    }
}

void Output::write_tables(Figures& figures, const DriverReport& report, const std::vector<Place>& places) {
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
    write_in_room(path(summary_room), path("summary.json"), text);
}

}  // namespace rubato::trace
