// A deliberately naive second opinion: the protocols as one would write them down on a sheet of paper, with none of the
// engine's machinery. Transfers take fixed times and share nothing; the server takes no time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace rubato::test {

struct OracleInput {
    int lambda = 1;
    int gradients_per_update = 1;
    double push_s = 0, pull_s = 0, control_s = 0;
    std::int64_t gradients = 0;                        ///< stop when so many were taken in
    std::function<double(int, std::int64_t)> compute;  ///< seconds of a worker's k-th gradient
};

struct OracleRow {
    int worker = 0;
    std::int64_t worker_seq = 0, read_version = 0, apply_version = 0;
    bool operator==(const OracleRow&) const = default;
};

/// n-softsync and async: rows in the order of application.
inline std::vector<OracleRow> softsync_oracle(const OracleInput& input) {
    struct Event {
        double at;
        bool inquiry;
        int worker;
        bool operator<(const Event& other) const { return at > other.at; }
    };
    std::priority_queue<Event> events;
    std::vector<std::int64_t> read(static_cast<std::size_t>(input.lambda), 0), seq = read;
    for (int w = 0; w < input.lambda; ++w)
        events.push({input.control_s + input.compute(w, 0) + input.push_s, false, w});
    std::vector<OracleRow> rows, waiting;
    std::int64_t version = 0, taken = 0;
    while (taken < input.gradients) {
        const Event event = events.top();
        events.pop();
        const auto w = static_cast<std::size_t>(event.worker);
        if (event.inquiry) {
            const double reply = read[w] == version ? input.control_s : input.pull_s;
            read[w] = version;
            events.push({event.at + reply + input.compute(event.worker, seq[w]) + input.push_s, false, event.worker});
            continue;
        }
        ++taken;
        waiting.push_back({event.worker, seq[w]++, read[w], version});
        if (static_cast<int>(waiting.size()) == input.gradients_per_update) {
            rows.insert(rows.end(), waiting.begin(), waiting.end());
            waiting.clear();
            ++version;
        }
        events.push({event.at + input.control_s, true, event.worker});
    }
    return rows;
}

/// Largest distance between the distribution functions of two samples of small integers.
inline double ks_distance(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
    const auto top = std::max(*std::max_element(a.begin(), a.end()), *std::max_element(b.begin(), b.end()));
    std::vector<double> share_a(static_cast<std::size_t>(top) + 1, 0.0), share_b = share_a;
    for (auto value : a) share_a[static_cast<std::size_t>(value)] += 1.0 / static_cast<double>(a.size());
    for (auto value : b) share_b[static_cast<std::size_t>(value)] += 1.0 / static_cast<double>(b.size());
    double sum_a = 0, sum_b = 0, distance = 0;
    for (std::size_t i = 0; i < share_a.size(); ++i) {
        sum_a += share_a[i];
        sum_b += share_b[i];
        distance = std::max(distance, sum_a > sum_b ? sum_a - sum_b : sum_b - sum_a);
    }
    return distance;
}

}  // namespace rubato::test
