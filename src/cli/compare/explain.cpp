#include "cli/compare/explain.hpp"

#include "cli/compare/reading.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::cli {
namespace {

/// By cause and by whose it is.
struct Table {
    explicit Table(std::size_t lambda) : cells(lambda) {}
    std::vector<Seconds> cells;  ///< by worker
};

/// rates of both sides and what a second of a worker per own gradient weighs in the gap.
struct Weights {
    std::vector<double> of_worker;  ///< 0 where one of the sides has no gradient of the worker
    double rate_predicted = 0, rate_measured = 0;
    double lambda = 0;

    Weights(const Side& predicted, const Side& measured) : lambda(static_cast<double>(predicted.workers.size())) {
        for (const auto& worker : predicted.workers) rate_predicted += rate(worker);
        for (const auto& worker : measured.workers) rate_measured += rate(worker);
        for (std::size_t w = 0; w < predicted.workers.size(); ++w)
            of_worker.push_back(scale() * rate(predicted.workers[w]) * rate(measured.workers[w]));
    }
    static double rate(const WorkerPhases& worker) { return worker.any ? 1 / worker.spent.sum() : 0; }
    double scale() const { return lambda / (rate_predicted * rate_measured); }
    /// What it takes from H that a worker makes gradients on one side only.
    double of_lost(const WorkerPhases& here, const WorkerPhases& there) const {
        return !here.any && there.any ? scale() * rate(there) : 0;
    }
};

/// The seconds of all workers, each where its cause lies; waits that were followed with those whom they were for.
Table charged(const Side& side, const Weights& weights) {
    Table out(side.workers.size());
    for (std::size_t w = 0; w < side.workers.size(); ++w) {
        const WorkerPhases& worker = side.workers[w];
        if (!worker.any) continue;
        Seconds own = worker.spent;
        for (const auto& [other, parts] : worker.waited_for) {
            own[Cause::policy_wait] -= parts.sum();
            out.cells[static_cast<std::size_t>(other)].add(parts, weights.of_worker[w]);
        }
        own[Cause::policy_wait] = std::max(0.0, own[Cause::policy_wait]);
        out.cells[w].add(own, weights.of_worker[w]);
    }
    return out;
}

/// Divides the workers of one cause into those that stand out, others that do, and the rest.
class Division {
public:
    Division(Cause cause, const Table& predicted, const Table& measured)
        : cause_(cause), predicted_(predicted), measured_(measured) {}

    std::vector<GapLine> lines() const {
        std::vector<WorkerId> left;
        for (std::size_t w = 0; w < predicted_.cells.size(); ++w) left.push_back(static_cast<WorkerId>(w));
        std::vector<GapLine> out;
        // Twice: some may be slower and some faster than was predicted.
        for (int round = 0; round < 2 && left.size() > 1; ++round) {
            const auto apart = standing_out(left);
            // What most have in common is nobody's own.
            if (4 * apart.size() > 3 * left.size()) break;
            out.push_back(line(apart, GapLine::Who::some));
            std::erase_if(left, [&](WorkerId w) { return std::find(apart.begin(), apart.end(), w) != apart.end(); });
        }
        const bool all = left.size() == predicted_.cells.size();
        const auto who = all && left.size() > 1 ? GapLine::Who::all
                         : left.size() > 1      ? GapLine::Who::others
                                                : GapLine::Who::some;
        out.push_back(line(left, who));
        return out;
    }

private:
    double difference(WorkerId w) const {
        const auto index = static_cast<std::size_t>(w);
        return measured_.cells[index][cause_] - predicted_.cells[index][cause_];
    }
    /// Those with at least half of the largest difference, in its direction.
    std::vector<WorkerId> standing_out(const std::vector<WorkerId>& among) const {
        double largest = 0;
        for (const WorkerId w : among)
            if (std::fabs(difference(w)) > std::fabs(largest)) largest = difference(w);
        std::vector<WorkerId> out;
        for (const WorkerId w : among)
            if (difference(w) * largest >= largest * largest / 2) out.push_back(w);
        return out;
    }
    GapLine line(const std::vector<WorkerId>& workers, GapLine::Who who) const {
        GapLine out{cause_, workers, who, 0, 0, 0};
        for (const WorkerId w : workers) {
            out.predicted += predicted_.cells[static_cast<std::size_t>(w)][cause_];
            out.measured += measured_.cells[static_cast<std::size_t>(w)][cause_];
        }
        return out;
    }

    Cause cause_;
    const Table& predicted_;
    const Table& measured_;
};

bool larger(const GapLine& a, const GapLine& b) {
    return std::fabs(a.difference()) > std::fabs(b.difference());
}

void set_shares(std::vector<GapLine>& lines, double gap) {
    for (auto& line : lines) line.share = gap != 0 ? line.difference() / gap : 0;
}

std::vector<GapLine> over_workers(const Table& predicted, const Table& measured) {
    std::vector<GapLine> out;
    for (std::size_t c = 0; c < causes; ++c) {
        GapLine line{static_cast<Cause>(c), {}, GapLine::Who::all, 0, 0, 0};
        for (std::size_t w = 0; w < predicted.cells.size(); ++w) {
            line.workers.push_back(static_cast<WorkerId>(w));
            line.predicted += predicted.cells[w].at(c);
            line.measured += measured.cells[w].at(c);
        }
        out.push_back(std::move(line));
    }
    return out;
}

std::vector<GapLine> of_each_worker(const Side& predicted, const Side& measured, const Weights& weights, double gap) {
    std::vector<GapLine> out;
    for (std::size_t w = 0; w < predicted.workers.size(); ++w) {
        const WorkerPhases &a = predicted.workers[w], &b = measured.workers[w];
        for (std::size_t c = 0; c < causes; ++c) {
            GapLine line{static_cast<Cause>(c), {static_cast<WorkerId>(w)}, GapLine::Who::some, 0, 0, 0};
            line.predicted = a.any ? a.spent.at(c) : 0;
            line.measured = b.any ? b.spent.at(c) : 0;
            if (line.predicted == 0 && line.measured == 0) continue;
            line.share = gap != 0 ? weights.of_worker[w] * line.difference() / gap : 0;
            out.push_back(std::move(line));
        }
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const GapLine& a, const GapLine& b) { return std::fabs(a.share) > std::fabs(b.share); });
    return out;
}

}  // namespace

Side mean_side(const std::vector<RecordedRun>& runs, const std::vector<RunPhases>& phases) {
    Side side;
    side.workers.resize(phases.front().workers.size());
    for (std::size_t w = 0; w < side.workers.size(); ++w) {
        double count = 0;
        for (const auto& run : phases) count += run.workers[w].any;
        for (const auto& run : phases) {
            const WorkerPhases& worker = run.workers[w];
            if (!worker.any) continue;
            side.workers[w].any = true;
            side.workers[w].spent.add(worker.spent, 1 / count);
            for (const auto& [other, parts] : worker.waited_for)
                side.workers[w].waited_for[other].add(parts, 1 / count);
        }
    }
    const auto mean = [&runs](std::int64_t trace::ServerRow::*count, Time trace::ServerRow::*time) {
        double seconds = 0, number = 0;
        for (const auto& run : runs) {
            for (const auto& server : run.servers) {
                seconds += static_cast<double>(server.*time) * 1e-9;
                number += static_cast<double>(server.*count);
            }
        }
        return number > 0 ? seconds / number : 0;
    };
    side.seconds_per_push = mean(&trace::ServerRow::pushes, &trace::ServerRow::push_ns);
    side.seconds_per_update = mean(&trace::ServerRow::updates, &trace::ServerRow::update_ns);
    side.seconds_per_pull = mean(&trace::ServerRow::replies, &trace::ServerRow::pull_ns);
    return side;
}

Explanation explain(const Side& predicted, const Side& measured, bool followed, bool steady) {
    const Weights weights(predicted, measured);
    Explanation out;
    out.followed = followed;
    out.steady = steady;
    if (weights.rate_predicted == 0 || weights.rate_measured == 0) return out;
    out.predicted = weights.lambda / weights.rate_predicted;
    out.measured = weights.lambda / weights.rate_measured;

    Table before = charged(predicted, weights), after = charged(measured, weights);
    Side spent_before = predicted, spent_after = measured;
    for (auto* side : {&spent_before, &spent_after})
        for (auto& worker : side->workers) worker.waited_for.clear();
    Table plain_before = charged(spent_before, weights), plain_after = charged(spent_after, weights);
    // A worker of which one side has no gradient costs the other side what it contributes: idling, as seen from here.
    for (std::size_t w = 0; w < predicted.workers.size(); ++w) {
        const double lost_before = weights.of_lost(predicted.workers[w], measured.workers[w]);
        const double lost_after = weights.of_lost(measured.workers[w], predicted.workers[w]);
        for (Table* table : {&before, &plain_before}) table->cells[w][Cause::idle] += lost_before;
        for (Table* table : {&after, &plain_after}) table->cells[w][Cause::idle] += lost_after;
    }
    for (std::size_t c = 0; c < causes; ++c)
        for (auto& line : Division(static_cast<Cause>(c), before, after).lines()) out.lines.push_back(std::move(line));
    std::erase_if(out.lines, [](const GapLine& line) { return line.predicted == 0 && line.measured == 0; });
    std::stable_sort(out.lines.begin(), out.lines.end(), larger);
    out.by_cause = over_workers(plain_before, plain_after);
    set_shares(out.lines, out.gap());
    set_shares(out.by_cause, out.gap());
    out.by_worker = of_each_worker(predicted, measured, weights, out.gap());
    out.reading = reading_of(out, predicted, measured);
    return out;
}

}  // namespace rubato::cli
