// Whether a recorded run computes the same again, bit for bit.
#pragma once

#include "sim/replay/recomputation.hpp"

#include <string>

namespace rubato::sim {

/// Compares what is recomputed with what was recorded.
class Verification final : public RecomputationListener {
public:
    void on_gradient(RoleId role, const Compute& compute, const GradientReady& recorded, double loss) override;
    void on_evaluated(RoleId role, const Evaluate& evaluate, const Evaluated& recorded,
                      const Metrics& metrics) override;
    const Actions* on_step(Time, RoleId, const Event&, const Actions& recorded) override { return &recorded; }

    /// The first gradient whose loss differs, and the first figure of an evaluation; empty where none does.
    const std::string& loss_difference() const { return loss_difference_; }
    const std::string& evaluation_difference() const { return evaluation_difference_; }

private:
    std::string loss_difference_, evaluation_difference_;
};

}  // namespace rubato::sim
