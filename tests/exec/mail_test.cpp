// Mail between ranks: order, slots, pieces, padding, and that nothing is left behind.
#include "exec/mpi/mail.hpp"
#include "memory_fabric.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace rubato;
using namespace rubato::exec;
using namespace rubato::test;

namespace {

/// One rank with a role: what comes is kept until the test takes it.
struct End {
    MemoryFabric fabric;
    PostOffice office;
    std::vector<std::int32_t> freed;
    std::vector<Event> events;
    std::vector<std::pair<Note, std::string>> notes;
    Mail mail;
    Time now = 0;

    End(MemoryNet& net, int rank, std::int64_t elements, const MailOptions& options, int workers = 1)
        : fabric(net, rank),
          office(elements, [](RoleId, const Event&) {}),
          mail(
              fabric, office, RankMap{1, workers}, options,
              [this](RoleId, const Event& event) { events.push_back(event); },
              [this](int, const Note& note, std::string_view bytes) { notes.emplace_back(note, bytes); }) {
        office.when_freed([this](std::int32_t channel) { freed.push_back(channel); });
    }
    void turn() {
        mail.progress(++now);
        for (std::size_t i = 0; i < freed.size(); ++i) mail.slot_freed(freed[i], now);
        freed.clear();
    }
    /// Sends a gradient whose elements, from `first` on, are all `value`; the role lets go of it at once.
    void push(RoleId role, ActionId id, float value, std::int64_t count, std::int64_t padding = 0,
              std::int64_t first = 0) {
        const BufferId buffer = office.allocate();
        std::fill_n(office.data(buffer).data() + first, count, value);
        Send send;
        send.id = id;
        send.to = 0;
        send.channel = Channel::gradient;
        Push record;
        record.worker_seq = id;
        send.message = record;
        send.payload = {buffer, first, count};
        mail.send(role, send, now, padding);
        office.release(buffer, now);
    }
    std::vector<Delivered> deliveries() const {
        std::vector<Delivered> found;
        for (const auto& event : events)
            if (const auto* it = std::get_if<Delivered>(&event)) found.push_back(*it);
        return found;
    }
    std::vector<ActionId> taken() const {
        std::vector<ActionId> found;
        for (const auto& event : events)
            if (const auto* it = std::get_if<Taken>(&event)) found.push_back(it->id);
        return found;
    }
};

MailOptions small_pieces() {
    MailOptions options;
    options.inline_bytes = 64;
    options.chunk_bytes = 100;
    options.notes_ahead = 2;
    return options;
}

}  // namespace

TEST_CASE("mail: a payload is taken only when there is a slot for it, and says since when") {
    for (const std::int64_t count : {8, 200}) {  // in its note; in pieces of its own
        CAPTURE(count);
        MemoryNet net(2);
        End server(net, 0, count, small_pieces()), worker(net, 1, count, small_pieces());
        worker.push(1, 1, 1.5F, count);
        worker.push(1, 2, 2.5F, count);
        for (int i = 0; i < 10; ++i) {
            worker.turn();
            server.turn();
        }
        REQUIRE(server.deliveries().size() == 1);
        CHECK(worker.taken() == std::vector<ActionId>{1});
        const auto first = server.deliveries().front();
        CHECK(server.office.data(first.payload.buffer)[static_cast<std::size_t>(count) - 1] == 1.5F);
        CHECK(std::get<Push>(first.message).worker_seq == 1);
        const Time freed = server.now = 1000;
        server.office.release(first.payload.buffer, freed);
        for (int i = 0; i < 10; ++i) {
            server.turn();
            worker.turn();
        }
        REQUIRE(server.deliveries().size() == 2);
        const auto second = server.deliveries().back();
        CHECK(second.started_ns > 1000);
        CHECK(second.sent_ns < 1000);
        CHECK(server.office.data(second.payload.buffer)[0] == 2.5F);
        CHECK(worker.taken() == std::vector<ActionId>{1, 2});
        server.office.release(second.payload.buffer, 0);
        server.turn();
        server.mail.close();
        worker.mail.close();
        CHECK(server.office.outstanding() == 0);
        CHECK(worker.office.outstanding() == 0);
    }
}

TEST_CASE("mail: padding goes along and comes to nothing") {
    MemoryNet net(2);
    End server(net, 0, 4, small_pieces()), worker(net, 1, 4, small_pieces());
    const std::int64_t padding = (std::int64_t{1} << 24) + 777;  // more than one piece of it
    for (ActionId id = 1; id <= 3; ++id) worker.push(1, id, static_cast<float>(id), 4, padding);
    std::vector<float> seen;
    for (int i = 0; i < 40; ++i) {
        worker.turn();
        server.turn();
        for (const auto& it : server.deliveries()) {
            seen.push_back(server.office.data(it.payload.buffer)[3]);
            server.office.release(it.payload.buffer, 0);
        }
        server.events.clear();
    }
    CHECK(seen == std::vector<float>{1, 2, 3});
    CHECK(worker.taken() == std::vector<ActionId>{1, 2, 3});
}

TEST_CASE("mail: both ends know of a long payload that moves, and of none that waits for a slot") {
    for (const std::int64_t padding : {std::int64_t{100}, 3 * (std::int64_t{1} << 24)}) {
        CAPTURE(padding);
        const bool is_long = padding > 65536;
        MemoryNet net(2);
        End server(net, 0, 40, small_pieces()), worker(net, 1, 40, small_pieces());
        bool sender_knew = false, receiver_knew = false;
        const auto turn = [&](int times) {
            for (int i = 0; i < times; ++i) {
                worker.turn();
                sender_knew = sender_knew || worker.mail.flowing();
                server.turn();
                receiver_knew = receiver_knew || server.mail.flowing();
            }
        };
        worker.push(1, 1, 1, 40, padding);
        turn(40);
        CHECK(sender_knew == is_long);
        CHECK(receiver_knew == is_long);
        REQUIRE(server.deliveries().size() == 1);
        CHECK_FALSE(worker.mail.flowing());
        CHECK_FALSE(server.mail.flowing());
        sender_knew = receiver_knew = false;
        worker.push(1, 2, 2, 40, padding);
        turn(40);
        CHECK_FALSE(sender_knew);
        CHECK_FALSE(receiver_knew);
        server.office.release(server.deliveries().front().payload.buffer, 0);
        turn(40);
        CHECK(receiver_knew == is_long);
        REQUIRE(server.deliveries().size() == 2);
        CHECK_FALSE(server.mail.flowing());
        CHECK_FALSE(worker.mail.flowing());
    }
}

TEST_CASE("mail: whatever the order of turns, each channel keeps its order and nothing is lost") {
    std::mt19937 random(7);
    for (int trial = 0; trial < 200; ++trial) {
        constexpr int workers = 3;
        MemoryNet net(1 + workers);
        MailOptions options = small_pieces();
        if (trial % 2) options.ahead_bytes = 0;  // receives are posted when they are needed only
        options.alike = trial % 5 < 3;
        const std::int64_t count = trial % 3 ? 60 : 5;
        const auto shape = [&](ActionId id) {
            const std::int64_t first = options.alike ? 0 : id % 4;
            return Slice{no_buffer, first, options.alike ? count : count - first - id % 2};
        };
        std::vector<std::unique_ptr<End>> ends;
        for (int rank = 0; rank <= workers; ++rank)
            ends.push_back(std::make_unique<End>(net, rank, count, options, workers));
        std::vector<ActionId> sent(workers, 0), seen(workers, 0);
        std::vector<BufferId> held;
        for (int step = 0; step < 400; ++step) {
            const auto rank = random() % (1 + workers);
            auto& end = *ends[rank];
            if (rank > 0 && step < 200 && random() % 3 == 0) {
                auto& id = sent[rank - 1];
                ++id;
                const Slice its = shape(id);
                end.push(static_cast<RoleId>(rank), id, static_cast<float>(id), its.count, 0, its.first);
            }
            end.turn();
            if (rank != 0) continue;
            for (const auto& it : end.deliveries()) {
                auto& last = seen[static_cast<std::size_t>(it.from) - 1];
                CHECK(std::get<Push>(it.message).worker_seq == ++last);
                const Slice its = shape(last);
                CHECK(it.payload.first == its.first);
                CHECK(it.payload.count == its.count);
                for (const std::int64_t at : {its.first, its.first + its.count - 1})
                    CHECK(end.office.data(it.payload.buffer)[static_cast<std::size_t>(at)] == static_cast<float>(last));
                held.push_back(it.payload.buffer);
            }
            end.events.clear();
            while (!held.empty() && (step >= 200 || random() % 2)) {
                end.office.release(held.back(), end.now);
                held.pop_back();
            }
        }
        CHECK(seen == sent);
        for (int worker = 0; worker < workers; ++worker)
            CHECK(ends[static_cast<std::size_t>(worker) + 1]->taken().size() ==
                  static_cast<std::size_t>(sent[static_cast<std::size_t>(worker)]));
        for (auto& end : ends) {
            end->mail.close();
            CHECK(end->office.outstanding() == 0);
            CHECK_FALSE(end->mail.moving());
        }
    }
}

TEST_CASE("mail: payloads of another shape on one channel are a mistake of the program") {
    MemoryNet net(2);
    End worker(net, 1, 10, small_pieces());
    worker.push(1, 1, 0, 10);
    CHECK_THROWS_AS(worker.push(1, 2, 0, 9), std::logic_error);
}

TEST_CASE("mail: notes carry text and keep their order") {
    MemoryNet net(2);
    End first(net, 0, 1, small_pieces()), second(net, 1, 1, small_pieces());
    for (int i = 0; i < 20; ++i) {
        Note note;
        note.kind = Note::Kind::record;
        note.number = i;
        second.mail.note(0, note, std::to_string(i));
    }
    for (int i = 0; i < 20; ++i) first.turn();
    REQUIRE(first.notes.size() == 20);
    for (int i = 0; i < 20; ++i) {
        CHECK(first.notes[static_cast<std::size_t>(i)].first.number == i);
        CHECK(first.notes[static_cast<std::size_t>(i)].second == std::to_string(i));
    }
}
