// How ranks leave the program: rank 0 last, once the summary is written. Without words of its own it could not be told
// from one that stands still, and the library waits for ever for a rank that does not come to its end.
#include "exec/mpi/rank_silence.hpp"
#include "exec/mpi/ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>
#include <utility>

namespace rubato::exec {
namespace {

constexpr char alive = alive_word, leave = 1;

void tell_all(Fabric& fabric, const char& word) {
    for (int rank = 1; rank < fabric.size(); ++rank) fabric.send(rank, leave_tag, &word, 1, false);
}

}  // namespace

void keep_alive(const Patience& patience, const std::function<void()>& work) {
    auto done = std::async(std::launch::async, work);
    const auto interval = word_interval(patience.limit_ns);
    std::vector<Completion> sent;
    while (done.wait_for(interval) != std::future_status::ready) {
        tell_all(patience.fabric, alive);
        patience.fabric.poll(sent);
    }
    done.get();
}

void let_go(const Patience& patience, int status) {
    auto& fabric = patience.fabric;
    tell_all(fabric, leave);
    std::vector<char> words(static_cast<std::size_t>(fabric.size()));
    std::vector<bool> gone(words.size());
    gone[0] = true;
    for (int rank = 1; rank < fabric.size(); ++rank)
        fabric.receive(rank, leave_tag, &words[static_cast<std::size_t>(rank)], 1);
    std::vector<Completion> done;
    Silence silence;
    while (std::find(gone.begin(), gone.end(), false) != gone.end()) {
        done.clear();
        fabric.poll(done);
        for (std::size_t rank = 1; rank < words.size(); ++rank) gone[rank] = words[rank] == leave;
        if (done.empty()) rest();
        const Time silent = silence.look();
        if (silent <= patience.limit_ns) continue;
        for (std::size_t rank = 1; rank < words.size(); ++rank)
            if (!gone[rank]) patience.lost(static_cast<int>(rank), silent);
        fabric.abort(status);
    }
}

// The rank after the first speaks for the others, but where it does not, either.
void wait_to_leave(const Patience& patience) {
    auto& fabric = patience.fabric;
    constexpr Time later_ns = 2'000'000'000;
    constexpr char none = -1;
    std::vector<Completion> done;
    Silence silence;
    for (char word = alive; word != leave;) {
        if (word == alive) {
            silence.heard();
            word = none;
            fabric.receive(0, leave_tag, &word, 1);
        }
        done.clear();
        fabric.poll(done);
        if (done.empty()) rest();
        const Time silent = silence.look();
        if (word != none || silent <= patience.limit_ns + (fabric.rank() == 1 ? 1 : 2) * later_ns) continue;
        patience.lost(0, silent);
        fabric.abort(3);
    }
    fabric.send(0, leave_tag, &leave, 1, false);
    fabric.poll(done);
}

// Two speak for all.
void limit_farewell(const Patience& patience, int status) {
    constexpr Time later_ns = 2'000'000'000;
    const Time limit = patience.limit_ns + std::min(patience.fabric.rank(), 2) * later_ns;
    const bool speaks = patience.fabric.rank() < 2;
    Deadline(limit, [lost = patience.lost, speaks, limit, status] {
        if (speaks) lost(-1, limit);
        std::_Exit(status);
    }).let_run();
}

}  // namespace rubato::exec
