// The action of protocols that average models: a weighted sum.
#pragma once

#include "core/types.hpp"

namespace rubato {

/// One summand of a Mix.
struct MixTerm {
    BufferId buffer = no_buffer;
    double factor = 1;
    bool operator==(const MixTerm&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("buffer", self.buffer);
        field("factor", self.factor);
    }
};

/// out = sum of factor * buffer over the terms, in their order, for `count` elements from `first` on (count 0: all);
/// other elements of `out` stay as they are. Each element is summed in double and rounded once, so that a mean of equal
/// models has their bits. Ends in Mixed. In the compute lane of a worker, unless it goes on beside its computation, and
/// the apply lane of a server. Takes over the role's reference to `out` (no_buffer: a new one, whose other elements are
/// anything), which may be among the terms, and holds the terms; what somebody else holds of `out` is never changed.
struct Mix {
    static constexpr std::string_view kind = "mix";
    /// What the modelled machine is charged: nothing; what a server takes to add a push to a sum; what it takes for an
    /// update, of which the result is the new version; what it takes to copy the elements between device and host;
    /// nothing, and the result is what the owner of the version has from now on.
    enum class Work : std::uint8_t { move, sum, update, copy, adopt };
    static constexpr std::int32_t most = 4;  ///< terms; no protocol needs more, and no action grows
    ActionId id = 0;
    BufferId out = no_buffer;
    Work work = Work::move;
    bool beside = false;
    std::int64_t first = 0, count = 0;
    std::int32_t term_count = 0;
    MixTerm terms[most];
    void add(BufferId buffer, double factor) { terms[term_count++] = {buffer, factor}; }
    bool operator==(const Mix&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("out", self.out);
        field("work", self.work);
        field("beside", Rare{self.beside, false});
        field("first", Rare{self.first, 0});
        field("count", Rare{self.count, 0});
        for (std::int32_t i = 0; i < self.term_count && i < most; ++i) field("term", self.terms[i]);
    }
};

}  // namespace rubato
