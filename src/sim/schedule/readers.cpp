#include "sim/schedule/readers.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace rubato::sim {

Readers::Readers(const DelayTrace& trace, int lambda, bool by_position) : trace_(trace) {
    const auto rows = trace.gradients.size() + trace.unfinished.size();
    first_.assign(static_cast<std::size_t>(lambda), none);
    before_.assign(rows, none);
    after_.assign(rows, none);
    std::vector<Row> last(first_);
    for (Row row = 0; row < static_cast<Row>(rows); ++row) {
        Row& its_last = last[static_cast<std::size_t>((*this)[row].worker)];
        if (its_last == none)
            first_[static_cast<std::size_t>((*this)[row].worker)] = row;
        else
            after_[static_cast<std::size_t>(its_last)] = row;
        before_[static_cast<std::size_t>(row)] = its_last;
        its_last = row;
    }
    sorted_.resize(rows);
    std::iota(sorted_.begin(), sorted_.end(), Row{0});
    const bool positions = by_position && trace.has_positions;
    const auto key = [&](Row row) {
        const Delay& it = (*this)[row];
        return std::tuple(it.read_version, positions ? it.data_epoch : 0, positions ? it.data_first : 0, before(row),
                          it.worker);
    };
    std::sort(sorted_.begin(), sorted_.end(), [&](Row a, Row b) { return key(a) < key(b); });
}

std::span<const Row> Readers::of(Version version) const {
    const auto earlier = [&](Row row, Version other) { return (*this)[row].read_version < other; };
    const auto begin = std::lower_bound(sorted_.begin(), sorted_.end(), version, earlier);
    const auto end = std::lower_bound(begin, sorted_.end(), version + 1, earlier);
    return {begin, end};
}

}  // namespace rubato::sim
