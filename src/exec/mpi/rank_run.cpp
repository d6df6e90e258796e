#include "exec/mpi/rank_run.hpp"

#include "learn/cores.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>
#include <utility>

namespace rubato::exec {
namespace {

/// By how much a short sleep is longer than asked for: 10 us on one machine, over 1 ms on another.
Time late_wakeup() {
    std::array<Time, 9> late{};
    for (Time& it : late) {
        constexpr Time asked = 20'000;
        const auto begin = std::chrono::steady_clock::now();
        std::this_thread::sleep_for(std::chrono::nanoseconds(asked));
        it = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count() - asked;
    }
    std::nth_element(late.begin(), late.begin() + 4, late.end());
    return std::clamp<Time>(late[4], 5'000, 2'000'000);
}

/// RUBATO_CHUNK_BYTES cuts payloads into smaller pieces than the library asks for: tests need no gigabytes then.
MailOptions mail_options(const Scenario& scenario) {
    MailOptions options;
    options.alike = !needs_of(scenario).parts;
    if (const char* text = std::getenv("RUBATO_CHUNK_BYTES"))
        options.chunk_bytes = std::clamp<std::size_t>(std::strtoul(text, nullptr, 10), 1, options.chunk_bytes);
    return options;
}

}  // namespace

RankRun::RankRun(const RunInput& input, Fabric& fabric)
    : Execution(input, "mpi"),
      fabric_(fabric),
      map_(rank_map(*input.scenario)),
      rank_(fabric.rank()),
      mail_(
          fabric, office_, map_, mail_options(*input.scenario),
          [this](RoleId role, const Event& event) { arrived(role, event); },
          [this](int rank, const Note& note, std::string_view bytes) { told(rank, note, bytes); }) {
    office_.when_freed([this](std::int32_t channel) { put({-1, {}, channel, {}}); });
    // Sleeps are short; the kernel's habit of rounding them up by 50 us would double them.
    ::prctl(PR_SET_TIMERSLACK, 1000UL);
    if (needs_.library_sums > 0) fabric.open_groups(needs_.library_sums);
    keeps_rows_ = rank_ != 0;
    patience_s_ = 0.4;  // mpirun kills about a second after it has passed a signal on
    report_.ranks = map_.ranks();
    const auto host_cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
    report_.oversubscribed = host_cores < fabric.ranks_on_host();
    report_.bound_to_one_core = learn::bound_cores() == 1 && host_cores > 1;
    // Who spins takes a core that somebody else may compute on.
    if (learn::usable_cores() > 1 && host_cores >= 2 * fabric.ranks_on_host()) spin_ns_ = 10 * late_wakeup();
    others_.resize(static_cast<std::size_t>(map_.ranks()));
    received_.resize(static_cast<std::size_t>(scenario_.lambda()));
}

RankRun::~RankRun() {
    abort_ = true;
    close_lanes();
}

// ---- the queue of the reactor

void RankRun::put(Item item) {
    bool first = false;
    {
        std::lock_guard lock(queue_mutex_);
        first = queue_.empty();
        queue_.push_back(std::move(item));
    }
    if (first) wake_.notify_one();
}

void RankRun::mail(RoleId role, const Event& event) {
    put({role, event, -1, {}});
}

// What has come is in the server's books even if the server has not got round to it when the run is abandoned.
void RankRun::arrived(RoleId role, const Event& event) {
    if (const auto* delivered = std::get_if<Delivered>(&event)) {
        const auto count = [&](const Push& gradient) {
            const WorkerId worker = gradient.worker >= 0 ? gradient.worker : delivered->from - 1;
            received_[static_cast<std::size_t>(worker)] = gradient.worker_seq + 1;
        };
        if (const auto* push = std::get_if<Push>(&delivered->message)) count(*push);
        if (const auto* gave_up = std::get_if<GaveUp>(&delivered->message)) count(gave_up->gradient);
        if (const auto* bye = std::get_if<Bye>(&delivered->message); bye != nullptr && bye->cancelled)
            count(bye->gradient);
    }
    mail(role, event);
}

void RankRun::later(Seat&, std::function<void()> what) {
    put({-1, {}, -1, std::move(what)});
}

void RankRun::transmit(Seat& seat, const Send& action, Time sent_ns) {
    if (map_.rank_of(action.to) == rank_) return office_.send(seat.id, action, sent_ns);
    const auto own = action.payload.count * static_cast<std::int64_t>(sizeof(float));
    mail_.send(seat.id, action, sent_ns, payload_bytes(action.channel, action.payload) - own);
}

Seat* RankRun::seat_of(RoleId role) {
    if (map_.rank_of(role) != rank_) return nullptr;
    return seats_[static_cast<std::size_t>(map_.local(role))].get();
}

bool RankRun::serve_queue() {
    std::deque<Item> items;
    {
        std::lock_guard lock(queue_mutex_);
        items.swap(queue_);
    }
    for (auto& item : items) {
        if (item.what) item.what();
        if (item.channel >= 0) mail_.slot_freed(item.channel, clock());
        if (item.role < 0) continue;
        auto& seat = *seat_of(item.role);
        if (const auto* delivered = std::get_if<Delivered>(&item.event)) {
            // At the receiver, since only it knows since when there was room.
            if (delivered->payload.buffer != no_buffer)
                span(delivered->from,
                     delivered->channel != Channel::gradient ? "pull"
                     : delivered->from > scenario_.lambda()  ? "relay"
                                                             : "push",
                     delivered->started_ns, clock(), seat.id, payload_bytes(delivered->channel, delivered->payload));
        }
        deal_with(seat, item.event);
    }
    return !items.empty();
}

bool RankRun::serve_timers() {
    bool any = false;
    for (auto& seat : seats_) {
        if (seat->timers.empty() || seat->finished) continue;
        if (const auto fired = due_timer(*seat)) {
            deal_with(*seat, *fired);
            any = true;
        }
    }
    return any;
}

// The library offers nothing to sleep on, so an idle reactor looks again and again, the less often the longer nothing
// has come: it is late by a fiftieth of what it has waited, or by what a sleep takes at least, and burns little. Where
// there are cores to spare it spins until such a sleep is a small part of the wait. Lanes wake it at once. While a long
// payload moves it is not idle, and looks at little else: each look moves a few pages.
void RankRun::rest() {
    if (mail_.flowing()) {
        for (int i = 0; i < 16 && !mail_.progress(clock()); ++i)
            if (spin_ns_ == 0) std::this_thread::yield();
        return;
    }
    constexpr Time shortest_ns = 20'000, longest_ns = 1'000'000;
    const Time idle = clock() - worked_ns_;
    if (idle < spin_ns_) return;
    Time ns = std::clamp(idle / 50, shortest_ns, longest_ns);
    for (const auto& seat : seats_) ns = std::clamp<Time>(next_timer(*seat, clock() + ns) - clock(), 0, ns);
    std::unique_lock lock(queue_mutex_);
    wake_.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return !queue_.empty(); });
}

void RankRun::pump_until(const std::function<bool()>& done) {
    while (!done()) {
        bool any = mail_.progress(clock());
        // Messages may come before this rank is told to begin: they wait behind the Start.
        if (running_) {
            any = serve_queue() || any;
            any = serve_timers() || any;
        }
        const Time now = clock();
        if (any) worked_ns_ = now;
        constexpr Time look_ns = 5'000'000;
        if (now - looked_ns_ >= look_ns) look_around();
        if (!any) rest();
    }
}

// ---- the run

void RankRun::told(int rank, const Note& note, std::string_view bytes) {
    auto& other = others_[static_cast<std::size_t>(rank)];
    other.heard_ns = clock();
    if (rank == 0) heard_first_ns_ = other.heard_ns;
    Note answer;
    switch (note.kind) {
        case Note::Kind::clock_ask:
            answer.kind = Note::Kind::clock_tell;
            answer.sent_ns = note.sent_ns;
            answer.number = raw_clock();
            return mail_.note(rank, answer);
        case Note::Kind::clock_tell: {
            const Time now = raw_clock();
            asked_.push_back(now - note.sent_ns);
            asked_.push_back(note.number - (now + note.sent_ns) / 2);
            return;
        }
        case Note::Kind::ready: other.ready = true; return;
        case Note::Kind::begin: first_begin_ns_ = note.number; return;
        case Note::Kind::ping:
            answer.kind = Note::Kind::pong;
            answer.number = static_cast<std::int64_t>(steps_.load());
            answer.computes = working_ > 0;
            return mail_.note(rank, answer);
        case Note::Kind::pong:
            other.steps = note.number;
            other.computes = note.computes;
            return;
        case Note::Kind::finished:
            other.finished = true;
            if (++finished_ranks_ == map_.ranks() - 1) run_deferred();
            return;
        case Note::Kind::end: ended_ = true; return;
        case Note::Kind::abandon:
            abandoned_ = true;
            abandon_status_ = note.status;
            return;
        case Note::Kind::failed:
            if (failed_.empty()) failed_ = who(rank) + ": " + std::string(bytes);
            if (note.status == Status::disk_full) abandon_status_ = Status::disk_full;
            return;
        case Note::Kind::interrupted: told_to_end_ = true; return;
        case Note::Kind::ask_books: return tell_books(note);
        case Note::Kind::books: return hear_books(other, note, bytes);
        case Note::Kind::record:
            other.record += bytes;
            other.recorded = note.number == 1;
            return;
        case Note::Kind::message:
        case Note::Kind::flows:
        case Note::Kind::taken: return;  // the mail's own
    }
}

void RankRun::seat_roles() {
    const BufferId initial = first_weights();
    auto all = roles();
    for (RoleId id = 0; id < static_cast<RoleId>(all.size()); ++id)
        if (map_.rank_of(id) == rank_) seat_role(std::move(all[static_cast<std::size_t>(id)]), id, initial);
    office_.release(initial, 0);
}

bool RankRun::all_finished() const {
    return std::all_of(seats_.begin(), seats_.end(), [](const auto& seat) { return seat->finished; });
}

void RankRun::run_roles() {
    running_ = true;
    pump_until([this] {
        if (abort_ || abandoned_ || ended_ || !failed_.empty()) return true;
        if (!all_finished()) return false;
        Note note;
        note.kind = Note::Kind::finished;
        if (rank_ != 0) {
            if (!std::exchange(said_finished_, true)) mail_.note(0, note);
            return false;
        }
        if (!others_finished()) return false;
        note.kind = Note::Kind::end;
        to_all(note);
        return ended_ = true;
    });
}

RankResult RankRun::go() {
    seat_roles();
    align_clock(true);
    try {
        run_roles();
    } catch (...) {
        fail(std::current_exception());
    }
    running_ = false;
    report_.end_ns = clock();
    close_books();
    return result();
}

RankResult run_ranks(const RunInput& input, Fabric& fabric) {
    return RankRun(input, fabric).go();
}

RankMap rank_map(const Scenario& scenario) {
    return {scenario.workers_per_rank, scenario.lambda(), roles_of(scenario) - 1 - scenario.lambda(),
            scenario.topology == "sharded", needs_of(scenario).replicas};
}

std::vector<trace::Place> rank_places(const Scenario& scenario, const std::vector<std::string>& hosts) {
    std::vector<trace::Place> places;
    const RankMap map = rank_map(scenario);
    for (RoleId role = 0; role < map.roles(); ++role)
        places.push_back({hosts.at(static_cast<std::size_t>(map.rank_of(role))), "cpu"});
    return places;
}

}  // namespace rubato::exec
