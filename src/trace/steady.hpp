// Figures of the steady part of a run: after the start-up and before the end, where workers fall idle.
#pragma once

#include "core/rows.hpp"

#include <optional>
#include <vector>

namespace rubato::trace {

/// Figures of the steady window; empty where the window holds too few updates or takes no time.
struct SteadyFigures {
    std::optional<double> staleness_mean;  ///< over gradients
    std::optional<double> samples_per_s;
    std::optional<double> samples_per_s_ci95;  ///< half width of the 95 % confidence interval
};

/// Remembers how far the run was at each update. The window leaves out the first 10 % and the last 5 % of all updates.
/// The confidence interval is by batch means: ten batches of equally many updates, Student's t with nine degrees of
/// freedom. Beyond 65,536 updates only every second, fourth, ... is remembered, so that memory stays bounded; the edges
/// of window and batches then lie on the nearest remembered update, at most 1/32768 of the run away.
class SteadyWindow {
public:
    void add(const UpdateRow& row);
    SteadyFigures figures() const;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("total", self.total_);
        field("stride", self.stride_);
        field("marks", self.marks_);
    }

    /// Totals after `updates` updates.
    struct Mark {
        template <class Self, class F>
        static void each(Self& self, F&& field) {
            field("updates", self.updates);
            field("time_ns", self.time_ns);
            field("samples", self.samples);
            field("gradients", self.gradients);
            field("staleness", self.staleness);
        }
        std::int64_t updates = 0;
        Time time_ns = 0;
        std::int64_t samples = 0;
        std::int64_t gradients = 0;
        double staleness = 0;
    };
    /// The window's edges. Equal where there are too few updates.
    struct Edges {
        Mark begin, end;
    };
    Edges edges() const;

private:
    static constexpr std::size_t marks_max = 1 << 16;

    const Mark& nearest(double updates) const;
    double updates_before() const;  ///< the window begins
    double updates_until() const;   ///< it ends

    Mark total_;
    std::int64_t stride_ = 1;
    std::vector<Mark> marks_{Mark{}};  ///< of the updates 0, stride, 2 stride, ...
};

}  // namespace rubato::trace
