#include "core/collective/route.hpp"

#include "core/averaging/tree_reduce.hpp"

#include <algorithm>

namespace rubato {

namespace {

/// `parts` parts of `what`, as even as can be.
std::vector<Range> parts_of(const Range& what, int parts) {
    std::vector<Range> out = even_ranges(what.count, parts);
    for (Range& part : out) part.first += what.first;
    return out;
}

class Builder {
public:
    Builder(int rank, int size, const Range& what, bool paced) : rank_(rank), size_(size), what_(what), paced_(paced) {}

    void out(int to, const Range& what, bool own = false, bool alone = false) {
        if (what.count > 0) route_.outs.push_back({to, what, route_.ins.size(), own, alone});
    }
    void in(int from, const Range& what, Route::Work work) {
        if (what.count > 0) route_.ins.push_back({from, what, work});
    }
    Route take() { return std::move(route_); }

    void ordered();
    void ring();
    void tree();
    /// Ranks beyond a power of two hand their contributions to a neighbour first, and have the sum of it in the end.
    /// exchange(rank, ranks): among a power of two; here(rank): who that is.
    template <class Exchange>
    void among_power_of_two(Exchange&& exchange);
    void recursive_doubling();
    void rabenseifner();

private:
    int at(int rank) const { return ((rank % size_) + size_) % size_; }

    int rank_, size_;
    Range what_;
    bool paced_;
    Route route_;
};

// Everybody owns a part, sums it in the order of the ranks, and sends it to all.
void Builder::ordered() {
    const auto parts = parts_of(what_, size_);
    const auto part = [&](int rank) { return parts[static_cast<std::size_t>(rank)]; };
    route_.begins_empty = part(rank_).count > 0;
    for (int step = 1; step < size_; ++step) out(at(rank_ + step), part(at(rank_ + step)), true);
    for (int from = 0; from < size_; ++from) in(from, part(rank_), Route::Work::fold);
    for (int step = 1; step < size_; ++step) out(at(rank_ + step), part(rank_));
    for (int step = 1; step < size_; ++step) in(at(rank_ - step), part(at(rank_ - step)), Route::Work::place);
}

// A part is never changed after it was sent, but for the sum of all, which has what was sent in it.
void Builder::ring() {
    const auto parts = parts_of(what_, size_);
    const auto part = [&](int number) { return parts[static_cast<std::size_t>(at(number))]; };
    for (int step = 0; step < size_ - 1; ++step) {
        out(at(rank_ + 1), part(rank_ - step));
        in(at(rank_ - 1), part(rank_ - step - 1), Route::Work::fold);
    }
    for (int step = 0; step < size_ - 1; ++step) {
        out(at(rank_ + 1), part(rank_ + 1 - step));
        in(at(rank_ - 1), part(rank_ - step), Route::Work::place);
    }
}

// Binomial, up to rank 0 and down again: to one child after the other, that with most below it first. All at once they
// would share the link, and those who have to pass the sum on would have it last.
void Builder::tree() {
    const std::vector<int> children = reduce_children(rank_, size_);
    for (const int child : children) in(child, what_, Route::Work::fold);
    if (const int parent = reduce_parent(rank_); parent >= 0) {
        out(parent, what_);
        in(parent, what_, Route::Work::place);
    }
    for (auto child = children.rbegin(); child != children.rend(); ++child) out(*child, what_, false, true);
}

template <class Exchange>
void Builder::among_power_of_two(Exchange&& exchange) {
    int ranks = 1;
    while (2 * ranks <= size_) ranks *= 2;
    const int beyond = size_ - ranks;
    if (rank_ < 2 * beyond && rank_ % 2 == 0) {
        out(rank_ + 1, what_);
        return in(rank_ + 1, what_, Route::Work::place);
    }
    if (rank_ < 2 * beyond) in(rank_ - 1, what_, Route::Work::fold);
    if (paced_ && beyond > 0 && what_.count > 0) {
        const Range nothing{what_.first, 0};
        for (int other = rank_ / 2; rank_ < 2 * beyond && other < ranks - beyond; other += beyond)
            route_.outs.push_back({2 * beyond + other, nothing, route_.ins.size()});
        if (rank_ >= 2 * beyond) route_.ins.push_back({2 * (rank_ % beyond) + 1, nothing, Route::Work::word});
    }
    const auto here = [&](int rank) { return rank < beyond ? 2 * rank + 1 : rank + beyond; };
    exchange(rank_ < 2 * beyond ? rank_ / 2 : rank_ - beyond, ranks, here);
    if (rank_ < 2 * beyond) out(rank_ - 1, what_);
}

void Builder::recursive_doubling() {
    among_power_of_two([this](int rank, int ranks, auto&& here) {
        for (int mask = 1; mask < ranks; mask *= 2) {
            out(here(rank ^ mask), what_);
            in(here(rank ^ mask), what_, Route::Work::renew);
        }
    });
}

// Recursive halving leaves each rank with the sum of one part; doubling brings the others.
void Builder::rabenseifner() {
    among_power_of_two([this](int rank, int ranks, auto&& here) {
        const auto parts = parts_of(what_, ranks);
        const auto span = [&](int first, int last) {
            const Range& head = parts[static_cast<std::size_t>(first)];
            return Range{head.first, parts[static_cast<std::size_t>(last - 1)].end() - head.first};
        };
        int first = 0, last = ranks;
        for (int mask = ranks / 2; mask > 0; mask /= 2) {
            const int middle = first + mask;
            const bool upper = (rank & mask) != 0;
            out(here(rank ^ mask), upper ? span(first, middle) : span(middle, last));
            (upper ? first : last) = middle;
            in(here(rank ^ mask), span(first, last), Route::Work::fold);
        }
        for (int mask = 1; mask < ranks; mask *= 2) {
            out(here(rank ^ mask), span(first, last));
            const int other = (rank & mask) != 0 ? first - mask : first + mask;
            in(here(rank ^ mask), span(other, other + mask), Route::Work::place);
            first = std::min(first, other);
            last = first + 2 * mask;
        }
    });
}

}  // namespace

Route make_route(AllreduceAlgorithm algorithm, int rank, int size, const Range& what, bool paced) {
    Builder builder(rank, size, what, paced);
    if (size == 1) return builder.take();
    switch (algorithm) {
        case AllreduceAlgorithm::ordered: builder.ordered(); break;
        case AllreduceAlgorithm::ring: builder.ring(); break;
        case AllreduceAlgorithm::recursive_doubling: builder.recursive_doubling(); break;
        case AllreduceAlgorithm::rabenseifner: builder.rabenseifner(); break;
        case AllreduceAlgorithm::tree: builder.tree(); break;
        case AllreduceAlgorithm::native: builder.in(-1, what, Route::Work::library); break;
    }
    return builder.take();
}

}  // namespace rubato
