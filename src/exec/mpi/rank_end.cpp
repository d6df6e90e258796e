// How a run ends: in order, abandoned, or with an error; what the ranks have recorded comes together on rank 0.
#include "exec/mpi/rank_run.hpp"

#include <algorithm>
#include <utility>

namespace rubato::exec {

namespace {

void add(trace::ServerRow& sum, const trace::ServerRow& part) {
    sum.pushes += part.pushes;
    sum.updates += part.updates;
    sum.replies += part.replies;
    sum.push_ns += part.push_ns;
    sum.update_ns += part.update_ns;
    sum.pull_ns += part.pull_ns;
    sum.bytes_in += part.bytes_in;
    sum.bytes_out += part.bytes_out;
}

}  // namespace

void RankRun::to_all(Note note) {
    for (int rank = 1; rank < map_.ranks(); ++rank) mail_.note(rank, note);
}

void RankRun::abandon_run(Status status, const std::string& detail) {
    abandoned_ = true;
    abandoned_ns_ = clock();
    abandon_status_ = status;
    report_.detail = detail;
    Note note;
    note.kind = Note::Kind::abandon;
    note.status = status;
    to_all(note);
}

void RankRun::abandon_seats(Status status) {
    for (auto& seat : seats_) {
        if (seat->finished) continue;
        std::deque<Event> pending;
        {
            std::lock_guard lock(queue_mutex_);
            for (const auto& item : queue_)
                if (item.role == seat->id) pending.push_back(item.event);
        }
        abandon(*seat, pending, status);
    }
}

void RankRun::give_record() {
    if (input_.recorder != nullptr) input_.recorder->close();
    RankRecord record = counts();
    record.bytes = report_.bytes;
    record.bytes_in = server_.bytes_in;
    record.clock_residual_ns = residual_ns_;
    record.gradients = stated_.gradients;
    record.workers = stated_.workers;
    record.relays = relays_;
    record.updates = stated_.updates;
    record.shards = stated_.shards;
    Note note;
    note.kind = Note::Kind::record;
    send_record(record, note);
    pump_until([this] { return mail_.sending() == 0 || abort_; });
}

void RankRun::take_record(const Other& other) {
    RankRecord record = record_from_bytes(other.record);
    report_.messages += record.messages;
    report_.control_messages += record.control_messages;
    report_.bytes += record.bytes;
    server_.bytes_in += record.bytes_in;
    report_.clock_residual_ns = std::max(report_.clock_residual_ns.value_or(0), record.clock_residual_ns);
    // What the server has taken in is in its books; the worker may not have heard of it any more.
    std::erase_if(record.gradients, [this](const GradientRow& row) {
        return row.worker_seq < received_[static_cast<std::size_t>(row.worker)] ||
               (!relays_.empty() && !stated_once_.emplace(row.worker, row.worker_seq).second);
    });
    computed_.resize(received_.size());
    for (const WorkerRow& row : record.workers) computed_[static_cast<std::size_t>(row.worker)] = row.gradients;
    for (std::size_t i = 0; i < record.relays.size() && i < relays_.size(); ++i) add(relays_[i], record.relays[i]);
    // A shard states what it has of each worker, whatever the worker knows of that, and comes before its workers.
    std::erase_if(record.shards, [this](const ShardRow& row) {
        const auto worker = static_cast<std::size_t>(row.worker);
        return row.shard == 0 && row.worker_seq < received_[worker];
    });
    std::map<std::pair<std::int32_t, WorkerId>, std::int64_t> now_stated;
    std::erase_if(record.shards, [&](const ShardRow& row) {
        const std::pair key(row.shard, row.worker);
        if (row.worker_seq < shard_stated_[key]) return true;
        auto& behind = now_stated[key];
        behind = std::max(behind, row.worker_seq + 1);
        return false;
    });
    for (const auto& [key, behind] : now_stated) shard_stated_[key] = std::max(shard_stated_[key], behind);
    Actions rows;
    rows.gradients = std::move(record.gradients);
    rows.workers = std::move(record.workers);
    rows.updates = std::move(record.updates);
    rows.shards = std::move(record.shards);
    if (input_.recorder != nullptr) input_.recorder->rows(rows);
}

// The worker has it as taken. Of the gradient itself no more is known than whose it was, and which.
void RankRun::state_lost_in_relays() {
    const bool all = std::all_of(others_.begin() + map_.first_relay_rank(), others_.end(),
                                 [](const Other& it) { return it.recorded; });
    // Without records of gradients the root does not know which have come.
    if (all || relays_.empty() || scenario_.topology == "sharded" || !scenario_.trace.gradients) return;
    Actions lost;
    for (WorkerId worker = 0; worker < static_cast<WorkerId>(computed_.size()); ++worker)
        for (std::int64_t seq = received_[static_cast<std::size_t>(worker)];
             seq < computed_[static_cast<std::size_t>(worker)]; ++seq) {
            if (stated_once_.contains({worker, seq})) continue;
            GradientRow& row = lost.gradients.emplace_back();
            row.seq = row.read_version = -1;
            row.worker = worker;
            row.worker_seq = seq;
            row.outcome = Outcome::leftover;
        }
    if (input_.recorder != nullptr) input_.recorder->rows(lost);
}

// Waits for every rank that is alive; of an abandoned run ranks that tell nothing for a few seconds are lost. Records
// of shards have a row for every gradient, and take their time.
void RankRun::collect_records() {
    constexpr Time patience_ns = 5'000'000'000;
    collecting_ = true;
    collecting_ns_ = clock();
    Time moved_ns = collecting_ns_;
    std::size_t told = 0;
    pump_until([&] {
        if (abort_) return true;
        std::size_t bytes = 0;
        for (const auto& it : others_) bytes += it.record.size();
        if (std::exchange(told, bytes) != bytes) moved_ns = clock();
        const bool all = std::all_of(others_.begin() + 1, others_.end(), [](const auto& it) { return it.recorded; });
        return all || (abandoned_ && clock() - std::max(abandoned_ns_, moved_ns) > patience_ns);
    });
    collecting_ = false;
    // Relays first: what they have, their workers may not know to be taken.
    const auto relays = others_.begin() + map_.first_relay_rank();
    std::rotate(others_.begin() + 1, relays, others_.end());
    for (const auto& other : others_)
        if (other.recorded) take_record(other);
    std::rotate(others_.begin() + 1, others_.begin() + 1 + map_.relays, others_.end());
    state_lost_in_relays();
}

void RankRun::close_books() {
    if (rank_ != 0) {
        if (error_) return;
        if (abandoned_) abandon_seats(abandon_status_);
        if (ended_) align_clock(false);
        return give_record();
    }
    if (!failed_.empty() && !error_) {
        if (abandon_status_ != Status::disk_full) error_ = std::make_exception_ptr(std::runtime_error(failed_));
        abandon_run(abandon_status_, failed_);
    }
    if (error_) {
        if (!abandoned_) abandon_run(Status::stalled, "");
        return;
    }
    collect_records();
    if (!abandoned_) return;
    report_.status = abandon_status_;
    for (RoleId role = 1; role <= map_.lambda; ++role)
        if (map_.rank_of(role) > 0 && !others_[static_cast<std::size_t>(map_.rank_of(role))].recorded)
            mail(0, PeerLost{role});
    abandon_seats(abandon_status_);
}

RankResult RankRun::result() {
    if (error_ && rank_ != 0) {
        // Rank 0 tells it, and ends the program.
        Note note;
        note.kind = Note::Kind::failed;
        std::string text = "failed";
        try {
            std::rethrow_exception(error_);
        } catch (const trace::OutputError& problem) {
            if (problem.full) note.status = Status::disk_full;
            text = problem.what();
        } catch (const std::exception& problem) {
            text = problem.what();
        }
        mail_.note(0, note, std::string_view(text).substr(0, 500));
        abort_ = false;
        pump_until([this] { return abandoned_; });
        return {report_, true};
    }
    if (error_) std::rethrow_exception(error_);
    // What the library still reads of our buffers.
    if (!abandoned_) pump_until([this] { return mail_.sending() == 0 || abort_; });
    mail_.close();
    if (!abandoned_ && office_.outstanding() != 0)
        throw std::logic_error(std::to_string(office_.outstanding()) + " buffers were never released");
    report_.wall_s = static_cast<double>(report_.end_ns - start_ns()) * 1e-9;
    if (rank_ == 0) {
        report_.messages += mail_.payloads_sent() + office_.messages();
        report_.control_messages += mail_.control_sent() + office_.control_messages();
        report_.servers.push_back(server_);
        report_.servers.insert(report_.servers.end(), relays_.begin(), relays_.end());
    }
    return {report_, abandoned_};
}

}  // namespace rubato::exec
