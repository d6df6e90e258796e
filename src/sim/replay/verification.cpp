#include "sim/replay/verification.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <map>

namespace rubato::sim {
namespace {

/// Bit for bit; but one NaN is as good as another, since a log does not tell them apart.
bool same(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

std::string text(const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string("none");
}

}  // namespace

void Verification::on_gradient(RoleId role, const Compute& compute, const GradientReady& recorded, double loss) {
    if (same(loss, recorded.loss) || !loss_difference_.empty()) return;
    loss_difference_ = fmt::format("the loss of gradient {} of {} is {}, recorded is {}", compute.worker_seq,
                                   role_name(role), loss, recorded.loss);
}

void Verification::on_evaluated(RoleId, const Evaluate& evaluate, const Evaluated& recorded, const Metrics& metrics) {
    if (!evaluation_difference_.empty()) return;
    std::map<std::string_view, std::optional<double>> figures;
    Metrics::each(recorded.metrics, [&](std::string_view name, const auto& value) { figures[name] = value; });
    Metrics::each(metrics, [&](std::string_view name, const std::optional<double>& value) {
        const auto& before = figures[name];
        if (value.has_value() == before.has_value() && (!value || same(*value, *before))) return;
        if (!evaluation_difference_.empty()) return;
        evaluation_difference_ =
            fmt::format("{} of version {} is {}, recorded is {}", name, evaluate.version, text(value), text(before));
    });
}

}  // namespace rubato::sim
