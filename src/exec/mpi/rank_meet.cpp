// How ranks come together before the run: each does its part, and says so to rank 0, which tells all to go on. A plain
// collective call would wait for ever for one that stands still.
#include "exec/mpi/rank_silence.hpp"
#include "exec/mpi/ranks.hpp"
#include "exec/mpi/wire.hpp"

#include <future>
#include <string>
#include <vector>

namespace rubato::exec {
namespace {

constexpr char alive = alive_word, here = 1;

/// The words of other ranks, of which the last one is `here`; with_texts: their texts, too, which come after it.
class Listener {
public:
    Listener(const Patience& patience, int first, int last, bool with_texts)
        : patience_(patience), first_(first), with_texts_(with_texts), others_(static_cast<std::size_t>(last - first)) {
        for (auto& it : others_) expect(it, &it.word, 1);
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    /// Ends the program where one is silent for too long. later_ns: beyond the limit.
    void listen(std::vector<Completion>& done, Time later_ns) {
        done.clear();
        patience_.fabric.poll(done);
        // All of them before anything is asked for anew, which may get the ticket of one that is over.
        ready_.clear();
        for (auto& other : others_)
            if (std::any_of(done.begin(), done.end(), [&](const auto& it) { return it.ticket == other.ticket; }))
                ready_.push_back(&other);
        sends_ -= static_cast<std::int64_t>(done.size() - ready_.size());
        for (Other* other : ready_) heard(*other);
        for (auto& it : others_) {
            const Time silent = it.silence.look();
            if (it.ticket == nothing || silent <= patience_.limit_ns + later_ns) continue;
            patience_.lost(rank_of(it), silent);
            patience_.fabric.abort(3);
        }
    }
    bool all_done() const {
        return std::all_of(others_.begin(), others_.end(), [](const Other& it) { return it.ticket == nothing; });
    }
    /// What this rank sends comes back among what is done.
    void count_send() { ++sends_; }
    bool sending() const { return sends_ > 0; }
    std::string& text(int rank) { return others_[static_cast<std::size_t>(rank - first_)].text; }

private:
    static constexpr Ticket nothing = -1;
    struct Other {
        enum class Next : std::uint8_t { word, size, text } next = Next::word;
        Ticket ticket = nothing;  ///< of what is awaited
        char word = alive;
        std::uint64_t size = 0;
        std::string text;
        Silence silence;
    };
    int rank_of(const Other& it) const { return first_ + static_cast<int>(&it - others_.data()); }
    void expect(Other& it, void* into, std::size_t bytes) {
        it.ticket = patience_.fabric.receive(rank_of(it), meet_tag, into, bytes);
    }
    void heard(Other& it) {
        it.silence.heard();
        it.ticket = nothing;
        switch (it.next) {
            case Other::Next::word:
                if (it.word == alive) return expect(it, &it.word, 1);
                if (!with_texts_) return;
                it.next = Other::Next::size;
                return expect(it, &it.size, sizeof it.size);
            case Other::Next::size:
                it.next = Other::Next::text;
                it.text.resize(it.size);
                return expect(it, it.text.data(), it.text.size());
            case Other::Next::text: return;
        }
    }

    const Patience& patience_;
    int first_;
    bool with_texts_;
    std::vector<Other> others_;
    std::vector<Other*> ready_;
    std::int64_t sends_ = 0;
};

}  // namespace

// Rank 0 names who is silent; where that is rank 0 itself, the second does, a little later.
std::vector<std::string> meet(const Patience& patience, const std::function<std::string()>& work) {
    auto& fabric = patience.fabric;
    const bool first = fabric.rank() == 0;
    const Time later_ns = first ? 0 : std::min(fabric.rank(), 2) * Time{2'000'000'000};
    Listener others(patience, first ? 1 : 0, first ? fabric.size() : 1, first);
    const auto send = [&](int rank, const void* data, std::size_t bytes) {
        fabric.send(rank, meet_tag, data, bytes, false);
        others.count_send();
    };
    const auto say = [&](const char& word) {
        if (!first) return send(0, &word, 1);
        for (int rank = 1; rank < fabric.size(); ++rank) send(rank, &word, 1);
    };
    auto working = std::async(std::launch::async, work);
    const auto interval = word_interval(patience.limit_ns);
    auto said = std::chrono::steady_clock::now();
    std::string mine;
    std::uint64_t size = 0;
    bool done = false;
    std::vector<Completion> completions;
    while (!done || !others.all_done()) {
        if (!done && working.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) {
            done = true;
            mine = working.get();
            size = mine.size();
            if (!first) {
                say(here);
                send(0, &size, sizeof size);
                send(0, mine.data(), mine.size());
            }
        }
        others.listen(completions, later_ns);
        if (const auto now = std::chrono::steady_clock::now(); now - said >= interval && (first || !done)) {
            said = now;
            say(alive);
        }
        if (done && completions.empty()) rest();
    }
    if (first) say(here);
    while (others.sending()) others.listen(completions, later_ns);
    if (!first) return {};
    std::vector<std::string> texts{std::move(mine)};
    for (int rank = 1; rank < fabric.size(); ++rank) texts.push_back(std::move(others.text(rank)));
    return texts;
}

}  // namespace rubato::exec
