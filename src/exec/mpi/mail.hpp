// Messages between roles on different ranks.
//
// A note (wire.hpp) goes ahead of every payload. Small payloads ride in the note; others follow on a channel of their
// own, straight from the buffer that the sender's role holds into the buffer that the receiver's role will be given.
// Receives for payloads are posted ahead, one for each free inbox slot of a channel that has been used before, so that
// what arrives is never copied; notes land in a ring. `Taken` is sent back when the whole payload lies in its slot:
// a synchronous send that also tells since when there was a slot for it.
#pragma once

#include "exec/mpi/fabric.hpp"
#include "exec/mpi/wire.hpp"
#include "exec/post_office.hpp"

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string_view>

namespace rubato::exec {

struct MailOptions {
    std::size_t inline_bytes = 3072;                 ///< largest payload that rides in its note
    std::size_t chunk_bytes = std::size_t{1} << 30;  ///< longer payloads go in pieces: MPI counts in int
    std::size_t ahead_bytes = std::size_t{4} << 30;  ///< limit on the memory of receives that are posted ahead
    std::size_t flow_bytes = 65536;                  ///< payloads from this size on are told to flow
    bool alike = true;                               ///< payloads of one channel have one shape; otherwise no receive
                                                     ///< is posted before its note is there
    int notes_ahead = 16;                            ///< receives for notes
};

/// Belongs to one thread, the reactor. Throws FabricError.
class Mail {
public:
    /// deliver: told of what has come for a role of this rank (Delivered, Taken). told: of every other note, with the
    /// bytes behind it.
    using Deliver = std::function<void(RoleId, const Event&)>;
    using Told = std::function<void(int rank, const Note&, std::string_view)>;
    Mail(Fabric& fabric, PostOffice& office, const RankMap& map, const MailOptions& options, Deliver deliver,
         Told told);
    ~Mail() { close(); }
    Mail(const Mail&) = delete;
    Mail& operator=(const Mail&) = delete;

    /// padding: bytes that go after the payload to no purpose. Throws std::logic_error where a channel's payload has
    /// another shape than the one before, unless they may differ.
    void send(RoleId from, const Send& send, Time now, std::int64_t padding = 0);
    /// answer: is not sent before the receiver begins to take it, so that notes in great number cannot flood it.
    void note(int rank, Note note, std::string_view bytes = {}, bool answer = false);
    /// One byte, which outlives the call, on a tag that is not the mail's.
    void word(int rank, int tag, const char& what) {
        expect(fabric_.send(rank, tag, &what, 1, false), {Purpose::Kind::word});
    }
    /// Has the library add up what all ranks ask for; its memory is the office's. Before the first one: open_groups.
    void sum(RoleId role, const SumAll& action);
    /// Lets the library work and deals with what is done; whether anything was.
    bool progress(Time now);
    /// A slot of the inbox that PostOffice knows by this number is free.
    void slot_freed(std::int32_t channel, Time now);
    /// Takes back what is posted ahead and gives up its buffers; nothing can come any more.
    void close();
    /// Sends that the library is not done with.
    std::int64_t sending() const { return sends_; }
    /// Whether a long payload is on its way to or from this rank. Without hardware for it the library moves one by a
    /// few pages whenever it may work, so that whoever sleeps meanwhile makes it take forty times as long.
    bool flowing() const { return flowing_ > 0; }
    /// Whether any message of this rank waits to be taken.
    bool moving() const { return moving_ > 0; }
    std::int64_t payloads_sent() const { return payloads_; }
    std::int64_t control_sent() const { return control_; }

private:
    /// What a ticket stands for.
    struct Purpose {
        enum class Kind : std::uint8_t {
            none,
            note_in,
            note_out,
            payload_in,
            payload_out,
            word,
            wish,
            sum
        } kind = Kind::none;
        std::int32_t index = 0;  ///< of the note, inbox, outgoing payload or sum
    };
    struct OutNote {
        std::unique_ptr<char[]> bytes;
        RoleId from = -1;  ///< told Taken{id} when the note is taken; -1: nobody is
        ActionId id = 0;
        Time sent_ns = 0;
    };
    struct OutPayload {
        RoleId from = 0;
        ActionId id = 0;
        BufferId buffer = no_buffer;  ///< held; no_buffer where it rode in its note
        int pieces = 0;               ///< not yet sent
        bool taken = false;
        bool flows = false;
    };
    /// A sum of all ranks, by the library.
    struct Sum {
        RoleId role = 0;
        ActionId id = 0;
        BufferId buffer = no_buffer;
        std::int32_t wish = 0;  ///< the largest of all, once that is there: then all ranks have begun
        int pieces = 0;         ///< still to come, the wish among them
        bool is_long = false;
        bool flows = false;
    };
    struct Announced {
        Note note;
        std::string bytes;  ///< of a payload that rides in its note
    };
    /// The receiving end of a channel.
    struct Inbox {
        int rank = 0;
        int tag = 0;
        std::int32_t channel = 0;  ///< PostOffice's number
        std::deque<Time> free;     ///< since when each free slot is
        std::deque<Announced> announced;
        Slice shape;
        std::int64_t padding = -1;
        bool in_notes = false;
        BufferId landing = no_buffer;  ///< what a posted receive fills
        Time slot_ns = 0;              ///< since when there was a slot for it
        int pieces = 0;                ///< still to come
        bool flows = false;
        std::int64_t padding_left = 0, padding_moving = 0;
        std::unique_ptr<char[]> scratch;  ///< where padding goes

        /// What comes next is like this one.
        void expect(const Note& note) {
            shape = note.payload;
            padding = note.padding;
            in_notes = note.bytes > 0;
        }
    };
    struct Key {
        RoleId from = 0, to = 0;
        Channel channel = Channel::control;
        auto operator<=>(const Key&) const = default;
    };

    void expect(Ticket ticket, Purpose purpose);
    void post_note(std::int32_t slot);
    void take_notes(Time now);
    void take_note(int rank, const char* bytes, Time now);
    void arrived(const Note& note, int rank, std::string_view bytes, Time now);
    void piece_came(Inbox& inbox, Time now);
    void pump(Inbox& inbox, Time now);
    void post(Inbox& inbox);
    void land_padding(Inbox& inbox);
    void deliver(Inbox& inbox, Time now);
    void starts_to_flow(Inbox& inbox);
    void flows(const Note& note);
    void taken(const Note& note);
    void finish(std::int32_t index);
    void wish_came(Sum& sum);
    void sum_came(Sum& sum);
    std::int32_t new_payload();
    Inbox& inbox(const Note& note, int rank);
    std::span<char> bytes_of(BufferId buffer, const Slice& shape);
    template <class F>
    void each_piece(std::span<char> bytes, F&& f) const;

    Fabric& fabric_;
    PostOffice& office_;
    RankMap map_;
    MailOptions options_;
    Deliver deliver_;
    Told told_;
    std::size_t note_bytes_;
    std::vector<Purpose> purposes_;  ///< by ticket
    std::vector<Completion> done_;
    std::vector<std::pair<Purpose, int>> came_;  ///< and from which rank

    /// Receives for notes: they are matched in the order in which they were posted, so they are read in that order.
    struct InNote {
        std::unique_ptr<char[]> bytes;
        Ticket ticket = 0;
        int from = -1;  ///< once it has come
    };
    std::vector<InNote> notes_in_;
    std::size_t next_note_ = 0;
    std::deque<OutNote> notes_out_;
    std::vector<std::int32_t> free_notes_;
    std::deque<OutPayload> payloads_out_;
    std::vector<std::int32_t> free_payloads_;
    std::deque<Sum> sums_;
    std::map<std::pair<RoleId, ActionId>, std::int32_t> by_action_;  ///< payloads that are not yet taken
    std::map<Key, std::int32_t> index_;
    std::map<Key, Slice> shapes_;  ///< of what this rank sends
    std::deque<Inbox> inboxes_;
    std::map<std::int32_t, std::int32_t> by_channel_;
    std::size_t ahead_ = 0;  ///< bytes of receives that are posted ahead
    bool closed_ = false;
    std::int64_t sends_ = 0, moving_ = 0, flowing_ = 0, payloads_ = 0, control_ = 0;
    std::unique_ptr<char[]> zeros_;  ///< padding that is sent
};

}  // namespace rubato::exec
