// One rank of a run: a reactor for its roles and all calls of the library, lanes on threads of their own.
#pragma once

#include "exec/execution.hpp"
#include "exec/mpi/mail.hpp"
#include "exec/mpi/rank_record.hpp"
#include "exec/mpi/ranks.hpp"

#include <condition_variable>
#include <map>
#include <set>

namespace rubato::exec {

class RankRun final : Execution {
public:
    RankRun(const RunInput& input, Fabric& fabric);
    ~RankRun() override;
    RankResult go();

private:
    /// What the reactor is to do: an event for a role of this rank, a free slot, or anything else.
    struct Item {
        RoleId role = -1;
        Event event;
        std::int32_t channel = -1;
        std::function<void()> what;
    };
    /// What rank 0 knows of another rank.
    struct Other {
        std::int64_t steps = 0;
        bool computes = false;
        bool ready = false, finished = false;
        bool silent = false;  ///< and the user was told
        Time heard_ns = 0;
        std::string record, books;
        bool recorded = false;
    };
    /// Rank 0 asks for books.
    struct Gathering {
        std::function<void(Gathered)> then;
        Time now_ns = 0, begun_ns = 0;
        ActionId id = 0;
        int answers = 0;
    };

    void mail(RoleId role, const Event& event) override;
    void arrived(RoleId role, const Event& event);
    void transmit(Seat& seat, const Send& action, Time sent_ns) override;
    void add_up(Seat& seat, const SumAll& action) override { mail_.sum(seat.id, action); }
    void later(Seat& seat, std::function<void()> what) override;
    bool others_finished() const override { return finished_ranks_ == map_.ranks() - 1; }
    void gather_books(Time now, std::function<void(Gathered)> then) override;
    void wake_all() override { wake_.notify_all(); }
    void put(Item item);

    // rank_run.cpp: the loop
    void pump_until(const std::function<bool()>& done);
    bool serve_queue();
    bool serve_timers();
    void rest();
    void told(int rank, const Note& note, std::string_view bytes);
    void run_roles();
    void seat_roles();
    Seat* seat_of(RoleId role);
    bool all_finished() const;
    RankResult result();

    // rank_clock.cpp
    void align_clock(bool at_start);
    Time raw_clock() const;

    // rank_books.cpp: for checkpoints
    RankRecord counts() const;
    void send_record(const RankRecord& record, Note note);
    void tell_books(const Note& asked);
    void hear_books(Other& other, const Note& note, std::string_view bytes);
    void end_gathering();
    void watch_gathering(Time now);

    // rank_end.cpp: how it ends
    void give_record();
    void collect_records();
    void take_record(const Other& other);
    /// States what a relay whose record never came has taken and nobody else knows of.
    void state_lost_in_relays();
    void close_books();
    void abandon_run(Status status, const std::string& detail);
    void abandon_seats(Status status);
    void to_all(Note note);

    // rank_watch.cpp: signals, and who is alive
    void look_around();
    void interrupt();
    void watch_others(Time now);
    bool in_vain(Time now, Time limit);
    void comfort(Time now);
    void watch_records(Time now);
    void watch_first(Time now);
    std::string who(int rank) const;
    std::string silence_text(int rank, Time silence) const;
    std::string stall_text(Time now) const;

    Fabric& fabric_;
    RankMap map_;
    int rank_;
    std::mutex queue_mutex_;
    std::condition_variable wake_;
    std::deque<Item> queue_;
    Mail mail_;
    Time spin_ns_ = 0;      ///< idle for less, it does not sleep
    Time worked_ns_ = 0;    ///< when there was something to do last
    Time looked_ns_ = 0;    ///< last look around
    bool running_ = false;  ///< between begin and end
    bool ended_ = false, abandoned_ = false;
    bool collecting_ = false;  ///< rank 0: waits for the records of the others,
    Time collecting_ns_ = 0;   ///< since then
    Time abandoned_ns_ = 0;
    Status abandon_status_ = Status::stalled;

    std::optional<Time> first_begin_ns_;  ///< what rank 0's clock said at the beginning
    std::vector<std::int64_t> asked_;     ///< answers to clock_ask: {round trip, offset} in turn
    std::int64_t offset_ns_ = 0, residual_ns_ = 0;

    std::vector<Other> others_;  ///< rank 0: by rank
    std::optional<Gathering> gathering_;
    ActionId gatherings_ = 0;
    int finished_ranks_ = 0;
    bool said_finished_ = false;
    std::string failed_;                         ///< rank 0: what a rank said that cannot go on
    std::int64_t moved_ = -1;                    ///< steps of all ranks at the last change,
    Time moved_ns_ = 0;                          ///< and when that was
    std::int64_t updated_ = -1, come_then_ = 0;  ///< updates when a rank was silent, gradients that had come by then,
    Time updated_ns_ = 0;                        ///< and when the last of those updates was seen
    Time pinged_ns_ = 0;
    Time heard_first_ns_ = 0;   ///< other ranks: last word of rank 0
    std::int64_t sending_ = 0;  ///< and what it had not taken then
    bool told_to_end_ = false;  ///< another rank was sent a signal
    bool interrupting_ = false;
    std::set<std::pair<WorkerId, std::int64_t>> stated_once_;  ///< rank 0, of a tree: gradients in the records so far
    std::vector<std::int64_t> computed_;  ///< rank 0: gradients of each worker, where its record says so
    /// Rank 0: by shard and worker, the number behind that of the last gradient in the records so far.
    std::map<std::pair<std::int32_t, WorkerId>, std::int64_t> shard_stated_;
    std::vector<std::int64_t>
        received_;  ///< rank 0: by worker, the number behind that of its last gradient that came or was given up
};

}  // namespace rubato::exec
