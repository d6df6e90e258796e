// For a checkpoint rank 0 asks every rank for the books of its workers and what it has sent.
#include "exec/mpi/rank_run.hpp"

#include <utility>

namespace rubato::exec {

/// What this rank has sent so far.
RankRecord RankRun::counts() const {
    RankRecord record;
    record.messages = mail_.payloads_sent() + office_.messages();
    record.control_messages = mail_.control_sent() + office_.control_messages();
    return record;
}

void RankRun::send_record(const RankRecord& record, Note note) {
    const std::string bytes = to_bytes(record);
    constexpr std::size_t piece = 2048;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
        note.number = at + piece >= bytes.size() ? 1 : 0;
        mail_.note(0, note, std::string_view(bytes).substr(at, piece), true);
    }
}

void RankRun::tell_books(const Note& asked) {
    // What is in its part of the timeline so far belongs to the checkpoint.
    if (input_.recorder != nullptr) input_.recorder->flush();
    RankRecord record = counts();
    {
        std::lock_guard lock(report_mutex_);
        record.bytes = report_.bytes;
        record.bytes_in = server_.bytes_in;
    }
    for (const auto& seat : seats_) record.workers.push_back(books(seat->role, asked.sent_ns));
    Note note;
    note.kind = Note::Kind::books;
    note.id = asked.id;
    send_record(record, note);
}

void RankRun::gather_books(Time now, std::function<void(Gathered)> then) {
    gathering_ = Gathering{std::move(then), now, clock(), gatherings_ + 1, 0};
    Note ask;
    ask.kind = Note::Kind::ask_books;
    ask.id = ++gatherings_;
    ask.sent_ns = now;
    for (auto& other : others_) other.books.clear();
    to_all(ask);
}

void RankRun::hear_books(Other& other, const Note& note, std::string_view bytes) {
    if (!gathering_ || note.id != gathering_->id) return;  // too late
    other.books += bytes;
    if (note.number != 1) return;
    if (++gathering_->answers == map_.ranks() - 1) end_gathering();
}

// A rank that does not answer, which is no reason to save nothing, has idled as far as anybody knows.
void RankRun::end_gathering() {
    const Gathering it = *std::exchange(gathering_, std::nullopt);
    Gathered out;
    for (WorkerId worker = 0; worker < map_.lambda; ++worker) {
        WorkerRow& row = out.books.emplace_back();
        row.worker = worker;
        row.idle_ns = it.now_ns;
    }
    const auto add = [&out](const RankRecord& record) {
        out.messages += record.messages;
        out.control_messages += record.control_messages;
        out.bytes += record.bytes;
        out.bytes_in += record.bytes_in;
        for (const WorkerRow& row : record.workers) out.books[static_cast<std::size_t>(row.worker)] = row;
    };
    add(counts());
    for (const auto& other : others_) {
        if (other.books.empty()) continue;
        try {
            add(record_from_bytes(other.books));
        } catch (const std::logic_error&) {
            // Only a part of it has come.
        }
    }
    it.then(std::move(out));
}

void RankRun::watch_gathering(Time now) {
    const Time patience_ns = input_.interrupted != nullptr && *input_.interrupted ? 200'000'000 : 2'000'000'000;
    if (gathering_ && now - gathering_->begun_ns > patience_ns) end_gathering();
}

}  // namespace rubato::exec
