// Slots and buffers of messages between roles of one process.
#include "exec/post_office.hpp"

#include <doctest/doctest.h>
#include <variant>
#include <vector>

using namespace rubato;

namespace {

constexpr RoleId root = 0, first = 1, second = 2;

// Hands out what arrives, by role.
struct Office {
    std::vector<std::vector<BufferId>> got = std::vector<std::vector<BufferId>>(3);
    exec::PostOffice office{0, [this](RoleId to, const Event& event) {
                                if (const auto* it = std::get_if<Delivered>(&event))
                                    if (it->payload.buffer != no_buffer)
                                        got[static_cast<std::size_t>(to)].push_back(it->payload.buffer);
                            }};

    void send(RoleId from, RoleId to, BufferId weights) {
        office.send(from, Send{0, to, Channel::weights, Weights{}, {weights, 0, 0}}, 0);
    }
    // The root sends a model of its own and keeps nothing of it.
    void send_model() {
        const BufferId model = office.allocate();
        send(root, first, model);
        office.release(model, 0);
    }
};

}  // namespace

TEST_CASE("a message that waits for a slot holds its payload, and gives the sender's slot back when it moves") {
    Office at;
    const auto slots = static_cast<std::size_t>(exec::inbox_slots(Channel::weights));
    // The first passes every model on and lets go of it at once; the second keeps all that it has slots for.
    for (std::size_t i = 0; i < 2 * slots; ++i) {
        at.send_model();
        REQUIRE(at.got[first].size() == i + 1);
        at.send(first, second, at.got[first].back());
        at.office.release(at.got[first].back(), 0);
    }
    CHECK(at.got[second].size() == slots);

    // What waited occupies the slots between root and first: nothing more comes.
    at.send_model();
    CHECK(at.got[first].size() == 2 * slots);

    // Whoever the second lets go of, the next moves, and the slot in which the first had got it is free again.
    for (std::size_t i = 0; i < 2 * slots; ++i) {
        REQUIRE(at.got[second].size() > i);
        at.office.release(at.got[second][i], 0);
    }
    REQUIRE(at.got[first].size() == 2 * slots + 1);
    at.office.release(at.got[first].back(), 0);
    CHECK(at.office.outstanding() == 0);
    for (std::size_t i = 0; i < slots; ++i) at.send_model();
    CHECK(at.got[first].size() == 3 * slots + 1);
}
