// What ranks say to each other.
#pragma once

#include "core/message.hpp"

#include <type_traits>

namespace rubato::exec {

/// First part of every note, as bytes: both ends run the same program on machines of the same kind, which the start of
/// a run makes sure of.
struct Note {
    enum class Kind : std::uint8_t {
        message,      ///< between roles; its payload rides in the note, or follows on a tag of its own
        flows,        ///< the payload of message `id` of role `to` has a slot, and is on its way
        taken,        ///< and lies in it
        clock_ask,    ///< what does the clock of rank 0 say? sent_ns: own clock
        clock_tell,   ///< sent_ns: as asked; number: the clock of rank 0
        ready,        ///< the rank is set up
        begin,        ///< number: the clock of rank 0 at the start of the run
        ping,         ///< rank 0 asks whether a rank is alive
        pong,         ///< and is told; number: steps taken so far; computes: a lane is at work
        finished,     ///< all roles of the rank have finished
        end,          ///< rank 0: the run is over, send your record
        abandon,      ///< rank 0: the run cannot go on; close the books and send your record
        failed,       ///< the rank cannot go on; what happened rides in the note
        interrupted,  ///< the rank was sent a signal that asks for the end of the run
        ask_books,    ///< rank 0, for checkpoint `id`: the workers' books up to sent_ns, and what was sent
        books,        ///< a piece of them rides in the note; number: 1 with the last one
        record,       ///< a piece of the rank's record rides in the note; number: 1 with the last one
    };
    Kind kind = Kind::message;
    Channel channel = Channel::control;
    bool computes = false;
    Status status = Status::finished;  ///< abandon, failed
    RoleId from = 0, to = 0;
    ActionId id = 0;
    Slice payload;             ///< buffer: 0 where there is one, no_buffer otherwise
    std::int64_t bytes = 0;    ///< that follow in the note
    std::int64_t padding = 0;  ///< bytes that follow the payload to no purpose (emulation)
    Time sent_ns = 0;          ///< taken: when the payload began to move
    std::int64_t number = 0;
    Message message;
};
static_assert(std::is_trivially_copyable_v<Note>);

/// Tags: notes, the words of rank_leave.cpp and rank_meet.cpp, and payloads, a tag for each pair of roles of two ranks.
inline constexpr int note_tag = 0, leave_tag = 1, meet_tag = 2, payload_tag = 16;
/// What a rank says on the former two that has nothing else to say.
inline constexpr char alive_word = 0;

/// Where roles live: the server on rank 0, workers on the ranks after it, `workers_per_rank` on each, and then the
/// relays of a tree, or the other shards, each on a rank of its own.
struct RankMap {
    int workers_per_rank = 1;
    int lambda = 1;
    int relays = 0;
    bool sharded = false;     ///< those are further servers
    bool serverless = false;  ///< role 0 keeps books alone, and shares rank 0 with the first workers
    int first_worker_rank() const { return serverless ? 0 : 1; }
    int worker_ranks() const { return (lambda + workers_per_rank - 1) / workers_per_rank; }
    int first_relay_rank() const { return first_worker_rank() + worker_ranks(); }
    int ranks() const { return first_relay_rank() + relays; }
    RoleId roles() const { return 1 + lambda + relays; }
    int rank_of(RoleId role) const {
        if (role > lambda) return first_relay_rank() + role - lambda - 1;
        return role == 0 ? 0 : first_worker_rank() + (role - 1) / workers_per_rank;
    }
    /// Its place among the roles of its rank.
    int local(RoleId role) const {
        if (role == 0 || role > lambda) return 0;
        return (role - 1) % workers_per_rank + (serverless && rank_of(role) == 0 ? 1 : 0);
    }
    int roles_of_a_rank() const { return workers_per_rank + (serverless ? 1 : 0); }
    /// Of payloads from one role to another.
    int tag(RoleId from, RoleId to, Channel channel) const {
        return payload_tag + (local(from) * roles_of_a_rank() + local(to)) * 3 + static_cast<int>(channel);
    }
};

}  // namespace rubato::exec
