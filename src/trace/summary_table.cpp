// The table that a run ends with.
#include "trace/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace rubato::trace {
namespace {

std::string text(const std::optional<double>& value) {
    return value ? fmt::format("{:.4g}", *value) : "-";
}

std::string percent(const std::optional<double>& value) {
    return value ? fmt::format("{:.2f} %", 100 * *value) : "-";
}

std::string whole(const std::optional<double>& value) {
    return value ? fmt::format("{:.0f}", *value) : "-";
}

std::string row(std::string_view label, const std::string& value) {
    return fmt::format("{:<12} {}\n", label, value);
}

}  // namespace

std::string summary_table(const std::string& summary_json, const std::string& directory) {
    const SummaryView view = read_summary(summary_json);
    std::string out;
    out += row("run", fmt::format("{} on {}", view.scenario, view.backend));
    out += row("status", view.status + (view.status_detail.empty() ? "" : ": " + view.status_detail));
    out += row("time", fmt::format("{:.6g} s ({} clock)", view.time_s, view.clock));
    out += row("epochs", fmt::format("{:.4g}, {} updates, {} samples", view.epochs, view.updates, view.samples));
    out += row("gradients", fmt::format("{} applied, {} dropped, {} cancelled, {} left over", view.gradients.applied,
                                        view.gradients.dropped, view.gradients.cancelled, view.gradients.leftover));
    out += row("throughput",
               fmt::format("{} samples/s, {} updates/s", text(view.samples_per_s), text(view.updates_per_s)));
    out += row("staleness", fmt::format("mean {}, p99 {}, max {}", text(view.staleness_mean), whole(view.staleness_p99),
                                        whole(view.staleness_max)));
    if (!view.shard_bytes.empty()) {
        const auto largest = std::max_element(view.shard_bytes.begin(), view.shard_bytes.end());
        const auto all = std::accumulate(view.shard_bytes.begin(), view.shard_bytes.end(), std::int64_t{0});
        out += row("shards",
                   fmt::format("{}: mean staleness {}, {} gradients on mixed versions; shard {} takes {} of "
                               "what is pushed",
                               view.shard_bytes.size(), text(view.shards_staleness), view.mixed_gradients,
                               largest - view.shard_bytes.begin(),
                               percent(all > 0 ? std::optional(static_cast<double>(*largest) / static_cast<double>(all))
                                               : std::nullopt)));
    }
    out += row("utilization", percent(view.compute_utilization));
    if (view.train_loss) out += row("train loss", text(view.train_loss));
    if (view.valid_error)
        out += row("valid error", percent(view.valid_error) + ", best " + percent(view.best_valid_error));
    if (view.test_error) out += row("test error", percent(view.test_error));
    if (view.time_to_target_s) out += row("to target", text(view.time_to_target_s) + " s");
    if (!view.weights_hash.empty()) out += row("weights", view.weights_hash);
    if (!directory.empty()) out += row("directory", directory);
    return out;
}

}  // namespace rubato::trace
