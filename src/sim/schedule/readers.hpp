// Which gradients of a trace read each version, in the order in which their workers ask for batches.
#pragma once

#include "sim/schedule/delays.hpp"

#include <span>
#include <vector>

namespace rubato::sim {

/// Index of a gradient: those that were accepted first, in order, then the unfinished ones.
using Row = std::int64_t;

/// An index over a trace, which must outlive it.
class Readers {
public:
    static constexpr Row none = -1;

    /// by_position: batches are dealt in the order of the samples (shared-epoch), so where the trace tells positions,
    /// they say who asked first.
    Readers(const DelayTrace& trace, int lambda, bool by_position);

    const Delay& operator[](Row row) const {
        const auto k = static_cast<std::size_t>(row);
        const std::size_t accepted = trace_.gradients.size();
        return k < accepted ? trace_.gradients[k] : trace_.unfinished[k - accepted];
    }
    Row accepted() const { return static_cast<Row>(trace_.gradients.size()); }
    /// The first gradient of a worker; none where it has none.
    Row first(WorkerId worker) const { return first_[static_cast<std::size_t>(worker)]; }
    /// The one that its worker computed before or after; none where there is none.
    Row before(Row row) const { return before_[static_cast<std::size_t>(row)]; }
    Row after(Row row) const { return after_[static_cast<std::size_t>(row)]; }
    /// Those that read a version. Their workers ask for batches in this order: as their gradients before were accepted,
    /// unless positions say otherwise.
    std::span<const Row> of(Version version) const;

private:
    const DelayTrace& trace_;
    std::vector<Row> first_, before_, after_;
    std::vector<Row> sorted_;  ///< by version
};

}  // namespace rubato::sim
