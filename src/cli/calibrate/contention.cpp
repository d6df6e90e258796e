#include "cli/calibrate/contention.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace rubato::cli {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// A transfer begins to move, or has ended.
struct Change {
    double time_s = 0;
    std::int32_t host = 0;
    std::size_t transfer = 0;
    bool ends = false;
    bool operator<(const Change& other) const { return std::tie(time_s, ends) < std::tie(other.time_s, other.ends); }
};

std::vector<Change> changes_of(const std::vector<Transfer>& transfers) {
    std::vector<Change> changes;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
        changes.push_back({transfers[i].begin_s, transfers[i].host, i, false});
        changes.push_back({transfers[i].end_s, transfers[i].host, i, true});
    }
    std::sort(changes.begin(), changes.end());
    return changes;
}

/// The messages that move, by host, and what each has got so far.
class Shares {
public:
    explicit Shares(double capacity) : capacity_(capacity) {}
    void begin(std::int32_t host) { ++moving_[host].number; }
    void end(std::int32_t host) {
        if (--moving_[host].number == 0) busy_.erase(host);
    }
    /// What a message of the host that always moved would have got, in seconds alone.
    double got(std::int32_t host) { return moving_[host].got; }
    void touch(std::int32_t host) { busy_.insert(host); }

    void advance(double seconds) {
        const double level = fair_share();
        for (const auto host : busy_) {
            auto& it = moving_[host];
            it.got += seconds * std::min(1.0 / it.number, level);
        }
    }
    bool full() const { return full_; }
    std::size_t hosts() const { return busy_.size(); }

private:
    struct Moving {
        int number = 0;
        double got = 0;
    };

    /// Hosts with many messages are held back by their own link first.
    double fair_share() {
        std::vector<int> numbers;
        int left = 0;
        for (const auto host : busy_) {
            numbers.push_back(moving_[host].number);
            left += numbers.back();
        }
        std::sort(numbers.rbegin(), numbers.rend());
        double capacity = capacity_;
        for (const int number : numbers) {
            if (1.0 / number > capacity / left) {
                full_ = full_ || numbers.size() > 1;
                return capacity / left;
            }
            capacity -= 1;
            left -= number;
        }
        return 1;
    }

    double capacity_;
    bool full_ = false;
    std::map<std::int32_t, Moving> moving_;
    std::set<std::int32_t> busy_;
};

struct Alone {
    std::vector<double> seconds;
    bool full = false;
};

Alone alone_times(const std::vector<Transfer>& transfers, const std::vector<Change>& changes, double capacity) {
    Alone alone;
    alone.seconds.resize(transfers.size());
    Shares shares(capacity);
    double now = changes.front().time_s;
    for (const Change& change : changes) {
        if (change.time_s > now) shares.advance(change.time_s - now);
        now = change.time_s;
        double& seconds = alone.seconds[change.transfer];
        if (change.ends) {
            seconds = shares.got(change.host) - seconds;
            shares.end(change.host);
        } else {
            shares.touch(change.host);
            seconds = shares.got(change.host);
            shares.begin(change.host);
        }
    }
    alone.full = shares.full();
    return alone;
}

/// Hosts whose messages moved at the same time, at most.
std::size_t most_hosts(const std::vector<Change>& changes) {
    std::map<std::int32_t, int> numbers;
    std::size_t busy = 0, most = 0;
    for (const Change& change : changes) {
        int& number = numbers[change.host];
        if (!change.ends && number++ == 0) most = std::max(most, ++busy);
        if (change.ends && --number == 0) --busy;
    }
    return most;
}

/// Root mean square of the relative deviations from the mean of the same size.
double spread(const std::vector<Transfer>& transfers, const std::vector<double>& seconds) {
    struct Moments {
        double n = 0, sum = 0, squares = 0;
    };
    std::map<double, Moments> by_size;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
        Moments& m = by_size[transfers[i].bytes];
        ++m.n;
        m.sum += seconds[i];
        m.squares += seconds[i] * seconds[i];
    }
    double total = 0, n = 0;
    for (const auto& [bytes, m] : by_size) {
        const double mean = m.sum / m.n;
        if (mean > 0) total += m.n * std::max(0.0, m.squares / m.n / (mean * mean) - 1);
        n += m.n;
    }
    return std::sqrt(total / n);
}

}  // namespace

// Messages leave in the order in which they came: all have the same work and the same latency. `work` counts what each
// message that was always there would have got.
double mean_moving(const std::vector<double>& starts, const SharedLink& link, double alone_s) {
    const double need = std::max(0.0, alone_s - link.latency_s);
    const std::size_t cap = link.transfers_max > 0 ? static_cast<std::size_t>(link.transfers_max) : starts.size();
    std::deque<std::pair<double, double>> latent;   // (start, end of the latency)
    std::deque<std::pair<double, double>> sharing;  // (start, work at its end)
    double now = starts.empty() ? 0 : starts.front(), work = 0, total = 0;
    std::size_t next = 0, waiting = 0;
    for (std::size_t left = 0; left < starts.size();) {
        const double rate = sharing.empty() ? 0 : 1 / static_cast<double>(sharing.size());
        const double arrives = next < starts.size() ? starts[next] : never;
        const double joins = latent.empty() ? never : latent.front().second;
        const double leaves = sharing.empty() ? never : now + (sharing.front().second - work) / rate;
        const double then = std::max(now, std::min({arrives, joins, leaves}));
        work += rate * (then - now);
        now = then;
        if (leaves <= then) {
            work = sharing.front().second;
            total += now - sharing.front().first;
            sharing.pop_front();
            ++left;
        } else if (joins <= then) {
            sharing.emplace_back(latent.front().first, work + need);
            latent.pop_front();
        } else {
            ++next;
            ++waiting;
        }
        for (; waiting > 0 && latent.size() + sharing.size() < cap; --waiting)
            latent.emplace_back(now, now + link.latency_s);
    }
    return starts.empty() ? 0 : total / static_cast<double>(starts.size());
}

double alone_seconds(const std::vector<double>& starts, const SharedLink& link, double mean_s) {
    if (starts.empty() || mean_s <= link.latency_s) return mean_s;
    double low = link.latency_s, high = mean_s;
    for (int i = 0; i < 50 && high - low > 1e-6 * high; ++i) {
        const double middle = (low + high) / 2;
        (mean_moving(starts, link, middle) > mean_s ? high : low) = middle;
    }
    return (low + high) / 2;
}

Unshared unshared(std::vector<Transfer> transfers, double latency_s) {
    for (auto& transfer : transfers) transfer.begin_s = std::min(transfer.begin_s + latency_s, transfer.end_s);
    const auto changes = changes_of(transfers);
    const auto capacity_max = static_cast<double>(std::max<std::size_t>(1, most_hosts(changes)));
    Unshared result;
    double best = never;
    constexpr double step = 1.05;
    for (double capacity = 1;; capacity = std::min(capacity * step, capacity_max)) {
        Alone alone = alone_times(transfers, changes, capacity);
        const double score = spread(transfers, alone.seconds);
        if (score < best * (1 - 1e-9)) {
            best = score;
            result.seconds = std::move(alone.seconds);
            result.capacity = capacity;
            result.saturated = alone.full;
        }
        if (capacity >= capacity_max) break;
    }
    for (double& seconds : result.seconds) seconds += latency_s;
    return result;
}

}  // namespace rubato::cli
