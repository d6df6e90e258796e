// Sums of all ranks that the library takes.
#include "exec/mpi/mail.hpp"

#include <algorithm>
#include <utility>

namespace rubato::exec {

// The number that goes ahead is there only when all ranks have begun. Until then nobody knows how long that takes, and
// this rank may sleep; from then on a long sum flows, as payloads do.
void Mail::sum(RoleId role, const SumAll& action) {
    const auto unused = std::find_if(sums_.begin(), sums_.end(), [](const Sum& it) { return it.buffer == no_buffer; });
    const auto index = static_cast<std::int32_t>(unused - sums_.begin());
    Sum& it = unused == sums_.end() ? sums_.emplace_back() : *unused;
    it = {role, action.id, action.sum, action.wish, 1, false, false};
    const auto whole = office_.data(action.sum)
                           .subspan(static_cast<std::size_t>(action.first), static_cast<std::size_t>(action.count));
    it.is_long = whole.size_bytes() >= options_.flow_bytes;
    expect(fabric_.largest(action.group, &it.wish), {Purpose::Kind::wish, index});
    const std::size_t at_once = std::max<std::size_t>(1, options_.chunk_bytes / sizeof(float));
    for (std::size_t first = 0; first < whole.size(); first += at_once) {
        ++it.pieces;
        expect(fabric_.sum(action.group, whole.data() + first, std::min(at_once, whole.size() - first)),
               {Purpose::Kind::sum, index});
    }
}

void Mail::wish_came(Sum& sum) {
    if (sum.is_long && sum.pieces > 1) {
        sum.flows = true;
        ++flowing_;
    }
    sum_came(sum);
}

void Mail::sum_came(Sum& sum) {
    if (--sum.pieces > 0) return;
    if (std::exchange(sum.flows, false)) --flowing_;
    const BufferId buffer = std::exchange(sum.buffer, no_buffer);
    deliver_(sum.role, Summed{sum.id, buffer, sum.wish});
}

}  // namespace rubato::exec
