// How ranks leave the program: rank 0 last, once the summary is written. Without words of its own it could not be told
// from one that stands still, and the library waits for ever for a rank that does not come to its end.
#include "exec/mpi/ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>
#include <utility>

namespace rubato::exec {
namespace {

constexpr char alive = 0, leave = 1;

Time now_ns() {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

/// Since when nothing was heard, without the times in which this rank stood still itself.
class Silence {
public:
    void heard() { since_ns_ = now_ns(); }
    Time look() {
        const Time now = now_ns();
        if (const Time gap = now - std::exchange(looked_ns_, now); gap > 500'000'000) since_ns_ += gap;
        return now - since_ns_;
    }

private:
    Time since_ns_ = now_ns(), looked_ns_ = since_ns_;
};

void rest() {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void tell_all(Fabric& fabric, const char& word) {
    for (int rank = 1; rank < fabric.size(); ++rank) fabric.send(rank, leave_tag, &word, 1, false);
}

}  // namespace

void keep_alive(const Leaving& leaving, const std::function<void()>& work) {
    auto done = std::async(std::launch::async, work);
    const std::chrono::nanoseconds interval(std::clamp<Time>(leaving.limit_ns / 8, 10'000'000, 1'000'000'000));
    std::vector<Completion> sent;
    while (done.wait_for(interval) != std::future_status::ready) {
        tell_all(leaving.fabric, alive);
        leaving.fabric.poll(sent);
    }
    done.get();
}

void let_go(const Leaving& leaving, int status) {
    auto& fabric = leaving.fabric;
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
        if (silent <= leaving.limit_ns) continue;
        for (std::size_t rank = 1; rank < words.size(); ++rank)
            if (!gone[rank]) leaving.lost(static_cast<int>(rank), silent);
        fabric.abort(status);
    }
}

// The rank after the first speaks for the others, but where it does not, either.
void wait_to_leave(const Leaving& leaving) {
    auto& fabric = leaving.fabric;
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
        if (word != none || silent <= leaving.limit_ns + (fabric.rank() == 1 ? 1 : 2) * later_ns) continue;
        leaving.lost(0, silent);
        fabric.abort(3);
    }
    fabric.send(0, leave_tag, &leave, 1, false);
    fabric.poll(done);
}

// Counts its own naps, since a process that was stopped has not waited. Two speak for all.
void limit_farewell(const Leaving& leaving, int status) {
    static constexpr Time nap_ns = 100'000'000, later_ns = 2'000'000'000;
    const Time limit = leaving.limit_ns + std::min(leaving.fabric.rank(), 2) * later_ns;
    std::thread([lost = leaving.lost, speaks = leaving.fabric.rank() < 2, limit, status] {
        for (Time waited = 0; waited < limit; waited += nap_ns)
            std::this_thread::sleep_for(std::chrono::nanoseconds(nap_ns));
        if (speaks) lost(-1, limit);
        std::_Exit(status);
    }).detach();
}

}  // namespace rubato::exec
