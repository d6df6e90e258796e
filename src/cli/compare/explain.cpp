#include "cli/compare/explain.hpp"

#include "cli/compare/attribution.hpp"
#include "cli/compare/reading.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::cli {
namespace {

/// Workers get lines of their own where these answer for this fraction of the seconds per gradient.
constexpr double worth_a_line = 0.01;

/// The lines of one cause: the workers that stand out, others that do, and the rest.
class Division {
public:
    Division(Cause cause, const Attribution& attribution, double least)
        : cause_(cause), attribution_(attribution), least_(least) {}

    std::vector<GapLine> lines() const {
        std::vector<WorkerId> left;
        for (std::size_t w = 0; w < attribution_.total.size(); ++w) left.push_back(static_cast<WorkerId>(w));
        std::vector<GapLine> out;
        // Whoever waits there, it is the one server that keeps them waiting.
        const int rounds = cause_ == Cause::apply_wait ? 0 : 2;
        // Twice: some may be slower and some faster than was predicted.
        for (int round = 0; round < rounds && left.size() > 1; ++round) {
            const auto apart = line(standing_out(left), GapLine::Who::some);
            // What most have in common is nobody's own.
            if (4 * apart.workers.size() > 3 * left.size() || weight(apart) < least_) break;
            out.push_back(apart);
            std::erase_if(left, [&](WorkerId w) {
                return std::find(apart.workers.begin(), apart.workers.end(), w) != apart.workers.end();
            });
        }
        const bool all = left.size() == attribution_.total.size();
        out.push_back(line(left, left.size() < 2 ? GapLine::Who::some
                                 : all           ? GapLine::Who::all
                                                 : GapLine::Who::others));
        return out;
    }

    /// How much of the gap is surely there.
    static double weight(const GapLine& line) {
        return std::max(0.0, std::max(std::fabs(line.total), std::fabs(line.own)) - errors * line.noise);
    }

private:
    static constexpr double errors = 3;

    /// What a worker answers for; where that cancels, what is its own.
    double of(WorkerId w) const {
        const auto index = static_cast<std::size_t>(w);
        const double total = attribution_.total[index][cause_], own = attribution_.own[index][cause_];
        return std::fabs(own) > std::fabs(total) ? own : total;
    }
    /// Those with at least half of the largest, in its direction.
    std::vector<WorkerId> standing_out(const std::vector<WorkerId>& among) const {
        double largest = 0;
        for (const WorkerId w : among)
            if (std::fabs(of(w)) > std::fabs(largest)) largest = of(w);
        std::vector<WorkerId> out;
        for (const WorkerId w : among)
            if (of(w) * largest >= largest * largest / 2) out.push_back(w);
        return out;
    }
    GapLine line(const std::vector<WorkerId>& workers, GapLine::Who who) const {
        GapLine out;
        out.cause = cause_;
        out.workers = workers;
        out.who = who;
        for (const WorkerId w : workers) {
            const auto index = static_cast<std::size_t>(w);
            out.predicted += attribution_.predicted[index][cause_];
            out.measured += attribution_.measured[index][cause_];
            out.own += attribution_.own[index][cause_];
            out.total += attribution_.total[index][cause_];
            if (cause_ == Cause::compute) out.noise = std::hypot(out.noise, attribution_.noise[index]);
        }
        return out;
    }

    Cause cause_;
    const Attribution& attribution_;
    double least_;
};

void set_share(GapLine& line, double weight, double gap) {
    line.share = gap != 0 ? weight * line.total / gap : 0;
}

std::vector<GapLine> over_workers(const CauseTable& predicted, const CauseTable& measured, double gap) {
    std::vector<GapLine> out(causes);
    for (std::size_t c = 0; c < causes; ++c) {
        GapLine& line = out[c];
        line.cause = static_cast<Cause>(c);
        for (std::size_t w = 0; w < predicted.size(); ++w) {
            line.workers.push_back(static_cast<WorkerId>(w));
            line.predicted += predicted[w].at(c);
            line.measured += measured[w].at(c);
        }
        line.own = line.total = line.difference();
        set_share(line, 1, gap);
    }
    return out;
}

std::vector<GapLine> of_each_worker(const Side& predicted, const Side& measured, const Weights& weights, double gap) {
    std::vector<GapLine> out;
    for (std::size_t w = 0; w < predicted.workers.size(); ++w) {
        const WorkerPhases &a = predicted.workers[w], &b = measured.workers[w];
        for (std::size_t c = 0; c < causes; ++c) {
            GapLine line;
            line.cause = static_cast<Cause>(c);
            line.workers = {static_cast<WorkerId>(w)};
            line.who = GapLine::Who::some;
            line.predicted = a.any ? a.spent.at(c) : 0;
            line.measured = b.any ? b.spent.at(c) : 0;
            if (line.predicted == 0 && line.measured == 0) continue;
            line.own = line.total = line.difference();
            set_share(line, weights.of_worker[w], gap);
            out.push_back(std::move(line));
        }
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const GapLine& a, const GapLine& b) { return std::fabs(a.share) > std::fabs(b.share); });
    return out;
}

}  // namespace

Explanation explain(const Side& predicted, const Side& measured, bool followed, bool steady) {
    const Weights weights(predicted, measured);
    Explanation out;
    out.predicted = weights.predicted;
    out.measured = weights.measured;
    out.followed = followed;
    out.steady = steady;
    if (out.predicted > 0) {
        const Attribution attribution = attribute(predicted, measured, weights);
        for (std::size_t c = 0; c < causes; ++c) {
            const Division division(static_cast<Cause>(c), attribution, worth_a_line * out.predicted);
            for (auto& line : division.lines()) out.lines.push_back(std::move(line));
        }
        std::erase_if(out.lines, [](const GapLine& line) { return line.predicted == 0 && line.measured == 0; });
        for (auto& line : out.lines) set_share(line, 1, out.gap());
        std::stable_sort(out.lines.begin(), out.lines.end(),
                         [](const GapLine& a, const GapLine& b) { return Division::weight(a) > Division::weight(b); });
        out.by_cause = over_workers(cause_table(predicted, measured, weights, false),
                                    cause_table(measured, predicted, weights, false), out.gap());
        out.by_worker = of_each_worker(predicted, measured, weights, out.gap());
    }
    out.reading = reading_of(out, predicted, measured);
    return out;
}

}  // namespace rubato::cli
