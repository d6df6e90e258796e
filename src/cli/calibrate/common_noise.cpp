#include "cli/calibrate/common_noise.hpp"

#include "sim/noise.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

namespace rubato::cli {
namespace {

/// A gradient with the rank of its time among those of its worker and batch size, as a fraction less one half.
struct Ranked {
    double begin_s = 0;
    double rank = 0;
    std::int32_t worker = 0;
};

/// Fewer gradients of one kind have no ranks to speak of.
constexpr std::size_t fewest = 50;

/// Sets the ranks of gradients [indices] by their times; equal times in the order of their computation.
void rank(const std::vector<TimedGradient>& rows, std::vector<std::size_t>& indices, std::vector<Ranked>& ranked) {
    if (indices.size() < fewest) return;
    const auto seconds = [&](std::size_t i) { return rows[i].end_s - rows[i].begin_s; };
    std::stable_sort(indices.begin(), indices.end(),
                     [&](std::size_t a, std::size_t b) { return seconds(a) < seconds(b); });
    for (std::size_t place = 0; place < indices.size(); ++place)
        ranked.push_back({rows[indices[place]].begin_s,
                          (static_cast<double>(place) + 0.5) / static_cast<double>(indices.size()) - 0.5,
                          rows[indices[place]].worker});
}

/// So many workers of a host tell as much as all, and pairs of them are few.
constexpr std::size_t workers_max = 16;

/// By host, in the order of their beginnings; without each worker's first tenth, which warms up.
std::vector<std::vector<Ranked>> ranked_by_host(const RunTables& run) {
    std::map<std::string, std::vector<Ranked>> hosts;
    std::map<std::string, std::size_t> workers;
    const auto& rows = run.gradients;
    for (std::size_t begin = 0; begin < rows.size();) {
        std::size_t end = begin;
        while (end < rows.size() && rows[end].worker == rows[begin].worker) ++end;
        std::map<std::int32_t, std::vector<std::size_t>> by_batch;
        for (std::size_t i = begin + (end - begin) / 10; i < end; ++i) by_batch[rows[i].samples].push_back(i);
        const std::string& host = run.workers[static_cast<std::size_t>(rows[begin].worker)].host;
        begin = end;
        if (++workers[host] > workers_max) continue;
        for (auto& [batch, indices] : by_batch) rank(rows, indices, hosts[host]);
    }
    std::vector<std::vector<Ranked>> result;
    for (auto& [name, ranked] : hosts) {
        std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) { return a.begin_s < b.begin_s; });
        result.push_back(std::move(ranked));
    }
    return result;
}

/// Sums over pairs of different workers, by lag: bin k is lags from (k - 1/2) to (k + 1/2) times `bin_s`.
struct Lags {
    double bin_s = 0;
    std::vector<double> product, n;
};

Lags lags_of(const std::vector<std::vector<Ranked>>& hosts, double bin_s) {
    constexpr std::size_t bins = 129;
    Lags lags{bin_s, std::vector<double>(bins), std::vector<double>(bins)};
    const double reach = bin_s * (static_cast<double>(bins) - 0.5);
    for (const auto& ranked : hosts) {
        for (std::size_t i = 0; i < ranked.size(); ++i) {
            for (std::size_t j = i + 1; j < ranked.size() && ranked[j].begin_s - ranked[i].begin_s < reach; ++j) {
                if (ranked[i].worker == ranked[j].worker) continue;
                const auto bin = static_cast<std::size_t>((ranked[j].begin_s - ranked[i].begin_s) / bin_s + 0.5);
                lags.product[bin] += ranked[i].rank * ranked[j].rank;
                ++lags.n[bin];
            }
        }
    }
    return lags;
}

/// The share that fits best with this time, and the sum of squares that it explains.
struct Fit {
    double share = 0, explained = 0;
};

Fit fit(const Lags& lags, double time_s) {
    double across = 0, squares = 0;
    for (std::size_t k = 0; k < lags.n.size(); ++k) {
        if (lags.n[k] == 0) continue;
        const double shape = sim::common_correlation(static_cast<double>(k) * lags.bin_s / time_s);
        // The variance of a uniform rank is 1/12.
        const double spearman = 12 * lags.product[k] / lags.n[k];
        across += lags.n[k] * shape * 2 * std::sin(std::numbers::pi * spearman / 6);
        squares += lags.n[k] * shape * shape;
    }
    if (squares == 0) return {};
    return {across / squares, across > 0 ? across * across / squares : 0};
}

}  // namespace

std::optional<CommonNoise> common_noise(const RunTables& run) {
    if (run.workers.empty()) return std::nullopt;
    const auto hosts = ranked_by_host(run);
    double total = 0;
    for (const auto& gradient : run.gradients) total += gradient.end_s - gradient.begin_s;
    if (!(total > 0)) return std::nullopt;
    const double mean_s = total / static_cast<double>(run.gradients.size());
    const Lags lags = lags_of(hosts, mean_s / 4);
    CommonNoise best;
    double explained = 0;
    for (double time_s = mean_s / 4; time_s <= 16 * mean_s; time_s *= 1.1) {
        const Fit found = fit(lags, time_s);
        if (found.explained <= explained) continue;
        explained = found.explained;
        best = {std::min(1.0, found.share), time_s};
    }
    // Neighbouring pairs share their moment: as many independent ones as there are gradients, at most.
    std::size_t gradients = 0;
    for (const auto& ranked : hosts) gradients += ranked.size();
    const double error = 1 / std::sqrt(static_cast<double>(std::max<std::size_t>(1, gradients)));
    if (best.share < std::max(0.05, 4 * error)) return std::nullopt;
    return best;
}

}  // namespace rubato::cli
