#include "exec/mpi/mail.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace rubato::exec {
namespace {

/// Padding goes in pieces of this size.
constexpr std::size_t padding_piece = std::size_t{1} << 24;

}  // namespace

Mail::Mail(Fabric& fabric, PostOffice& office, const RankMap& map, const MailOptions& options, Deliver deliver,
           Told told)
    : fabric_(fabric),
      office_(office),
      map_(map),
      options_(options),
      deliver_(std::move(deliver)),
      told_(std::move(told)),
      note_bytes_(sizeof(Note) + options.inline_bytes) {
    notes_in_.resize(static_cast<std::size_t>(options.notes_ahead));
    for (std::size_t i = 0; i < notes_in_.size(); ++i) {
        notes_in_[i].bytes = std::make_unique<char[]>(note_bytes_);
        post_note(static_cast<std::int32_t>(i));
    }
}

void Mail::close() {
    if (std::exchange(closed_, true)) return;
    // What was posted ahead must not land in memory that is gone.
    for (std::size_t i = 0; i < purposes_.size(); ++i) {
        const auto kind = purposes_[i].kind;
        if (kind == Purpose::Kind::note_in || kind == Purpose::Kind::payload_in) fabric_.cancel(static_cast<Ticket>(i));
    }
    done_.clear();
    fabric_.poll(done_);
    for (auto& it : inboxes_)
        if (const BufferId landing = std::exchange(it.landing, no_buffer); landing != no_buffer)
            office_.release(landing, 0);
}

void Mail::expect(Ticket ticket, Purpose purpose) {
    const auto at = static_cast<std::size_t>(ticket);
    if (at >= purposes_.size()) purposes_.resize(at + 1);
    purposes_[at] = purpose;
}

std::span<char> Mail::bytes_of(BufferId buffer, const Slice& shape) {
    const auto floats =
        office_.data(buffer).subspan(static_cast<std::size_t>(shape.first), static_cast<std::size_t>(shape.count));
    return {reinterpret_cast<char*>(floats.data()), floats.size_bytes()};
}

template <class F>
void Mail::each_piece(std::span<char> bytes, F&& f) const {
    for (std::size_t at = 0; at < bytes.size(); at += options_.chunk_bytes)
        f(bytes.subspan(at, std::min(options_.chunk_bytes, bytes.size() - at)));
}

// ---- sending

void Mail::note(int rank, Note note, std::string_view bytes, bool answer) {
    std::int32_t slot = 0;
    if (free_notes_.empty()) {
        slot = static_cast<std::int32_t>(notes_out_.size());
        notes_out_.push_back({std::make_unique<char[]>(note_bytes_)});
    } else {
        slot = free_notes_.back();
        free_notes_.pop_back();
    }
    if (bytes.size() > options_.inline_bytes) throw std::logic_error("a note is longer than its room");
    note.bytes = static_cast<std::int64_t>(bytes.size());
    auto& out = notes_out_[static_cast<std::size_t>(slot)];
    std::memcpy(out.bytes.get(), &note, sizeof note);
    if (!bytes.empty()) std::memcpy(out.bytes.get() + sizeof note, bytes.data(), bytes.size());
    // A message without payload is taken when its note is; the rest needs no answer of its own.
    const bool message = note.kind == Note::Kind::message && note.payload.buffer == no_buffer;
    out.from = message ? note.from : -1;
    out.id = note.id;
    out.sent_ns = note.sent_ns;
    ++sends_;
    if (message) ++moving_;
    expect(fabric_.send(rank, note_tag, out.bytes.get(), sizeof note + bytes.size(), message || answer),
           {Purpose::Kind::note_out, slot});
}

void Mail::send(RoleId from, const Send& send, Time now, std::int64_t padding) {
    Note it;
    it.channel = send.channel;
    it.from = from;
    it.to = send.to;
    it.id = send.id;
    it.sent_ns = now;
    it.message = send.message;
    const int rank = map_.rank_of(send.to);
    if (send.payload.buffer == no_buffer) {
        ++control_;
        return note(rank, it);
    }
    ++payloads_;
    ++moving_;
    it.payload = {0, send.payload.first, send.payload.count};
    it.padding = padding;
    const auto [shape, fresh] = shapes_.emplace(Key{from, send.to, send.channel}, it.payload);
    if (options_.alike && !fresh && !(shape->second == it.payload))
        throw std::logic_error("a channel's payloads have one shape");

    const auto bytes = bytes_of(send.payload.buffer, send.payload);
    const auto index = new_payload();
    by_action_.emplace(std::pair(from, send.id), index);
    auto& out = payloads_out_[static_cast<std::size_t>(index)];
    out = {from, send.id, no_buffer, 0, false, false};
    if (bytes.size() <= options_.inline_bytes && padding == 0) return note(rank, it, {bytes.data(), bytes.size()});
    note(rank, it);
    office_.retain(send.payload.buffer);
    out.buffer = send.payload.buffer;
    const int tag = map_.tag(from, send.to, send.channel);
    const auto start = [&](const char* data, std::size_t size) {
        ++out.pieces;
        ++sends_;
        expect(fabric_.send(rank, tag, data, size, false), {Purpose::Kind::payload_out, index});
    };
    each_piece(bytes, [&](std::span<char> piece) { start(piece.data(), piece.size()); });
    if (padding > 0 && !zeros_) zeros_ = std::make_unique<char[]>(padding_piece);
    for (auto left = static_cast<std::size_t>(padding); left > 0; left -= std::min(left, padding_piece))
        start(zeros_.get(), std::min(left, padding_piece));
}

std::int32_t Mail::new_payload() {
    if (free_payloads_.empty()) {
        payloads_out_.emplace_back();
        return static_cast<std::int32_t>(payloads_out_.size() - 1);
    }
    const auto index = free_payloads_.back();
    free_payloads_.pop_back();
    return index;
}

void Mail::flows(const Note& note) {
    const auto it = by_action_.find({note.to, note.id});
    if (it == by_action_.end()) throw std::logic_error("a message flows that was never sent");
    auto& payload = payloads_out_[static_cast<std::size_t>(it->second)];
    if (payload.pieces == 0) return;
    payload.flows = true;
    ++flowing_;
}

void Mail::taken(const Note& note) {
    const auto it = by_action_.find({note.to, note.id});
    if (it == by_action_.end()) throw std::logic_error("a message is taken that was never sent");
    const auto index = it->second;
    by_action_.erase(it);
    auto& payload = payloads_out_[static_cast<std::size_t>(index)];
    payload.taken = true;
    --moving_;
    // At once, so that the role hears of it before any answer to its message.
    deliver_(payload.from, Taken{payload.id, note.sent_ns});
    finish(index);
}

// Taken, and every piece given back by the library, which may be later.
void Mail::finish(std::int32_t index) {
    const OutPayload payload = payloads_out_[static_cast<std::size_t>(index)];
    if (!payload.taken || payload.pieces > 0) return;
    free_payloads_.push_back(index);
    if (payload.buffer != no_buffer) office_.release(payload.buffer, 0);
}

// ---- receiving

void Mail::post_note(std::int32_t slot) {
    auto& it = notes_in_[static_cast<std::size_t>(slot)];
    it.from = -1;
    it.ticket = fabric_.receive(Fabric::any_rank, note_tag, it.bytes.get(), note_bytes_);
    expect(it.ticket, {Purpose::Kind::note_in, slot});
}

bool Mail::progress(Time now) {
    done_.clear();
    fabric_.poll(done_);
    if (done_.empty()) return false;
    // All of them first: their tickets are given out again as soon as anything is sent.
    came_.clear();
    for (const auto& it : done_)
        came_.emplace_back(std::exchange(purposes_[static_cast<std::size_t>(it.ticket)], {}), it.from);
    for (const auto& [purpose, from] : came_) {
        const auto index = static_cast<std::size_t>(purpose.index);
        switch (purpose.kind) {
            case Purpose::Kind::note_in: notes_in_[index].from = from; break;
            case Purpose::Kind::note_out: {
                const auto& out = notes_out_[index];
                --sends_;
                if (out.from >= 0) {
                    --moving_;
                    deliver_(out.from, Taken{out.id, out.sent_ns});
                }
                free_notes_.push_back(purpose.index);
                break;
            }
            case Purpose::Kind::payload_out:
                --sends_;
                if (--payloads_out_[index].pieces == 0 && std::exchange(payloads_out_[index].flows, false)) --flowing_;
                finish(purpose.index);
                break;
            case Purpose::Kind::payload_in: piece_came(inboxes_[index], now); break;
            case Purpose::Kind::word: break;
            case Purpose::Kind::wish: wish_came(sums_[index]); break;
            case Purpose::Kind::sum: sum_came(sums_[index]); break;
            case Purpose::Kind::none: throw std::logic_error("the library is done with what nobody asked for");
        }
    }
    take_notes(now);
    return true;
}

void Mail::take_notes(Time now) {
    while (notes_in_[next_note_].from >= 0) {
        const auto slot = next_note_;
        next_note_ = (next_note_ + 1) % notes_in_.size();
        take_note(notes_in_[slot].from, notes_in_[slot].bytes.get(), now);
        post_note(static_cast<std::int32_t>(slot));
    }
}

void Mail::take_note(int rank, const char* bytes, Time now) {
    Note note;
    std::memcpy(static_cast<void*>(&note), bytes, sizeof note);
    const std::string_view rest(bytes + sizeof note, static_cast<std::size_t>(note.bytes));
    if (note.kind == Note::Kind::message) return arrived(note, rank, rest, now);
    if (note.kind == Note::Kind::flows) return flows(note);
    if (note.kind == Note::Kind::taken) return taken(note);
    told_(rank, note, rest);
}

Mail::Inbox& Mail::inbox(const Note& note, int rank) {
    const auto [it, fresh] =
        index_.emplace(Key{note.from, note.to, note.channel}, static_cast<std::int32_t>(inboxes_.size()));
    if (!fresh) return inboxes_[static_cast<std::size_t>(it->second)];
    auto& made = inboxes_.emplace_back();
    made.rank = rank;
    made.tag = map_.tag(note.from, note.to, note.channel);
    made.channel = office_.open_inbox();
    made.free.assign(static_cast<std::size_t>(office_.slots_of(note.channel)), 0);
    by_channel_.emplace(made.channel, it->second);
    return made;
}

void Mail::arrived(const Note& note, int rank, std::string_view bytes, Time now) {
    if (note.payload.buffer == no_buffer)
        return deliver_(
            note.to,
            Delivered{
                note.from, note.channel, note.message, {}, std::min(note.sent_ns, now), std::min(note.sent_ns, now)});
    auto& to = inbox(note, rank);
    to.announced.push_back({note, std::string(bytes)});
    if (options_.alike) to.expect(note);
    pump(to, now);
}

// Posts or fills what there are slots for, and delivers what is complete.
void Mail::pump(Inbox& inbox, Time now) {
    for (;;) {
        if (inbox.landing == no_buffer) {
            const bool waits = !inbox.announced.empty();
            if (!options_.alike && waits) inbox.expect(inbox.announced.front().note);
            if (inbox.free.empty() || inbox.padding < 0 || !(waits || options_.alike)) return;
            if (inbox.in_notes) {
                if (!waits) return;
                inbox.slot_ns = inbox.free.front();
                inbox.free.pop_front();
                inbox.landing = office_.allocate_in(inbox.channel);
                const auto to = bytes_of(inbox.landing, inbox.shape);
                std::memcpy(to.data(), inbox.announced.front().bytes.data(), to.size());
            } else {
                const auto bytes = static_cast<std::size_t>(inbox.shape.count) * sizeof(float);
                if (!waits && ahead_ + bytes > options_.ahead_bytes) return;
                post(inbox);
            }
        }
        if (inbox.announced.empty()) return;
        if (inbox.pieces > 0 || inbox.padding_left > 0) return starts_to_flow(inbox);
        deliver(inbox, now);
    }
}

void Mail::starts_to_flow(Inbox& inbox) {
    const auto bytes = static_cast<std::size_t>(inbox.shape.count) * sizeof(float);
    if (inbox.flows || bytes + static_cast<std::size_t>(inbox.padding) < options_.flow_bytes) return;
    inbox.flows = true;
    ++flowing_;
    const Note& message = inbox.announced.front().note;
    Note answer;
    answer.kind = Note::Kind::flows;
    answer.from = message.to;
    answer.to = message.from;
    answer.id = message.id;
    note(inbox.rank, answer);
}

void Mail::post(Inbox& inbox) {
    inbox.slot_ns = inbox.free.front();
    inbox.free.pop_front();
    inbox.landing = office_.allocate_in(inbox.channel);
    const auto bytes = bytes_of(inbox.landing, inbox.shape);
    ahead_ += bytes.size();
    const auto index = by_channel_.at(inbox.channel);
    each_piece(bytes, [&](std::span<char> piece) {
        ++inbox.pieces;
        expect(fabric_.receive(inbox.rank, inbox.tag, piece.data(), piece.size()), {Purpose::Kind::payload_in, index});
    });
    inbox.padding_left = inbox.padding;
    if (inbox.pieces == 0) land_padding(inbox);
}

// One after another, since all of it goes to the same place.
void Mail::land_padding(Inbox& inbox) {
    if (inbox.padding_left == 0) return;
    if (!inbox.scratch) inbox.scratch = std::make_unique<char[]>(padding_piece);
    ++inbox.pieces;
    inbox.padding_moving = std::min<std::int64_t>(inbox.padding_left, padding_piece);
    expect(fabric_.receive(inbox.rank, inbox.tag, inbox.scratch.get(), static_cast<std::size_t>(inbox.padding_moving)),
           {Purpose::Kind::payload_in, by_channel_.at(inbox.channel)});
}

void Mail::piece_came(Inbox& inbox, Time now) {
    if (--inbox.pieces > 0) return;
    inbox.padding_left -= std::exchange(inbox.padding_moving, 0);
    if (inbox.padding_left > 0)
        land_padding(inbox);
    else
        pump(inbox, now);
}

void Mail::deliver(Inbox& inbox, Time now) {
    const Note note = inbox.announced.front().note;
    inbox.announced.pop_front();
    if (std::exchange(inbox.flows, false)) --flowing_;
    if (!inbox.in_notes) ahead_ -= static_cast<std::size_t>(inbox.shape.count) * sizeof(float);
    // Clocks of two ranks agree to a few microseconds only.
    const Time sent_ns = std::min(note.sent_ns, now);
    const Time started_ns = std::min(std::max(sent_ns, inbox.slot_ns), now);
    const Slice payload{std::exchange(inbox.landing, no_buffer), inbox.shape.first, inbox.shape.count};
    Note answer;
    answer.kind = Note::Kind::taken;
    answer.from = note.to;
    answer.to = note.from;
    answer.id = note.id;
    answer.sent_ns = started_ns;
    this->note(inbox.rank, answer);
    deliver_(note.to, Delivered{note.from, note.channel, note.message, payload, sent_ns, started_ns});
}

void Mail::slot_freed(std::int32_t channel, Time now) {
    auto& it = inboxes_[static_cast<std::size_t>(by_channel_.at(channel))];
    it.free.push_back(now);
    pump(it, now);
}

}  // namespace rubato::exec
