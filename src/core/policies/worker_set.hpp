// A set of workers that is emptied in their order.
#pragma once

#include "core/types.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

namespace rubato {

/// A bit a worker, so that emptying it needs no sorting: a step for every 64 workers and one for each that is in it.
class WorkerSet {
public:
    explicit WorkerSet(int lambda = 0) : words_((static_cast<std::size_t>(lambda) + 63) / 64, 0) {}

    void add(WorkerId worker) { words_[static_cast<std::size_t>(worker) / 64] |= std::uint64_t{1} << (worker % 64); }
    void remove(WorkerId worker) {
        words_[static_cast<std::size_t>(worker) / 64] &= ~(std::uint64_t{1} << (worker % 64));
    }
    /// Appends all, in order, and leaves none.
    void take(std::vector<WorkerId>& out) {
        for (std::size_t i = 0; i < words_.size(); ++i)
            for (; words_[i] != 0; words_[i] &= words_[i] - 1)
                out.push_back(static_cast<WorkerId>(64 * i) + std::countr_zero(words_[i]));
    }
    /// Puts a list of different workers in order.
    void sort(std::vector<WorkerId>& list) {
        if (list.size() <= few) return std::sort(list.begin(), list.end());
        for (const WorkerId worker : list) add(worker);
        list.clear();
        take(list);
    }
    std::vector<WorkerId> members() const {
        std::vector<WorkerId> out;
        WorkerSet(*this).take(out);
        return out;
    }

    bool operator==(const WorkerSet&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        std::vector<WorkerId> members = self.members();
        std::int64_t words = static_cast<std::int64_t>(self.words_.size());
        field("words", words);
        field("members", members);
        if constexpr (!std::is_const_v<Self>) {
            self.words_.assign(static_cast<std::size_t>(words), 0);
            for (const WorkerId worker : members) self.add(worker);
        }
    }

private:
    /// So many are sorted faster than a set of all workers is swept.
    static constexpr std::size_t few = 8;

    std::vector<std::uint64_t> words_;
};

}  // namespace rubato
