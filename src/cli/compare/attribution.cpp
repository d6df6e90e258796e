#include "cli/compare/attribution.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::cli {
namespace {

constexpr double compute_change = 0.005, compute_errors = 4;
constexpr double speed_change = 0.05;

/// Something of the cluster that was faster or slower by itself.
struct Culprit {
    std::size_t worker;
    Cause cause;
    double size;  ///< seconds per gradient, without a sign
};

class Search {
public:
    Search(const Side& predicted, const Side& measured, const Weights& weights, Attribution& out)
        : before_(predicted), after_(measured), weights_(weights), out_(out) {}

    void compute() {
        for (std::size_t w = 0; w < out_.own.size(); ++w) {
            const WorkerSpeed &a = before_.speeds[w], &b = after_.speeds[w];
            const double own = weights_.of_worker[w] *
                               (after_.workers[w].spent[Cause::compute] - before_.workers[w].spent[Cause::compute]);
            out_.own[w][Cause::compute] = own;
            if (!a.known || !b.known) continue;
            const double change = std::fabs(b.compute_s - a.compute_s);
            const double error = std::hypot(a.compute_error_s, b.compute_error_s);
            out_.noise[w] = weights_.of_worker[w] * error;
            if (change < compute_change * std::max(a.compute_s, b.compute_s) || change < compute_errors * error)
                continue;
            out_.noise[w] = 0;
            // With what others waited for it.
            out_.own[w][Cause::compute] = out_.measured[w][Cause::compute] - out_.predicted[w][Cause::compute];
            found(w, Cause::compute, own);
        }
    }

    void transfers(Cause cause, TransferSpeed WorkerSpeed::*speed) {
        for (std::size_t w = 0; w < out_.own.size(); ++w) {
            const WorkerSpeed &a = before_.speeds[w], &b = after_.speeds[w];
            if (!a.known || !b.known) continue;
            const double ratio = speed_ratio(a.*speed, b.*speed);
            // The same but for the sign, whichever side is predicted.
            const double own = (out_.predicted[w][cause] * (ratio - 1) + out_.measured[w][cause] * (1 - 1 / ratio)) / 2;
            out_.own[w][cause] = own;
            if (std::fabs(ratio - 1) > speed_change) found(w, cause, own);
        }
    }

    void server() {
        double change = 0;
        bool changed = false;
        for (const auto cost : {&Side::push, &Side::update, &Side::pull}) {
            const ServerCost &a = before_.*cost, &b = after_.*cost;
            change += (b.seconds - a.seconds) * (a.per_gradient + b.per_gradient) / 2;
            changed = changed || std::fabs(b.seconds - a.seconds) > speed_change * std::max(a.seconds, b.seconds);
        }
        if (!changed) return;
        const auto difference = [this](std::size_t w) {
            return out_.measured[w][Cause::apply_wait] - out_.predicted[w][Cause::apply_wait];
        };
        double waits = 0;
        for (std::size_t w = 0; w < out_.own.size(); ++w) waits += difference(w);
        // Some microseconds are not why requests wait for milliseconds.
        const double share = followed(waits, std::fabs(change));
        for (std::size_t w = 0; w < out_.own.size(); ++w) {
            out_.own[w][Cause::apply_wait] = share * difference(w);
            found(w, Cause::apply_wait, change / static_cast<double>(out_.own.size()));
        }
    }

    /// Divides what is nobody's own among the culprits.
    void divide() {
        double size = 0;
        for (const auto& it : culprits_) size += it.size;
        const auto difference = [this](std::size_t w, std::size_t c) {
            return out_.measured[w].at(c) - out_.predicted[w].at(c);
        };
        double rest = 0;
        for (std::size_t w = 0; w < out_.own.size(); ++w) {
            out_.own[w][Cause::idle] = out_.measured[w][Cause::idle] - out_.predicted[w][Cause::idle];
            for (std::size_t c = 0; c < causes; ++c) rest += difference(w, c) - out_.own[w].at(c);
        }
        const double passed = followed(rest, size);
        for (std::size_t w = 0; w < out_.own.size(); ++w)
            for (std::size_t c = 0; c < causes; ++c)
                out_.total[w].at(c) = out_.own[w].at(c) + (1 - passed) * (difference(w, c) - out_.own[w].at(c));
        for (const auto& it : culprits_) out_.total[it.worker][it.cause] += passed * rest * it.size / size;
    }

private:
    /// The fraction of a difference that may follow from causes of this size.
    double followed(double difference, double size) const {
        const double most = 2 * static_cast<double>(out_.own.size()) * size;
        return size == 0 ? 0 : std::fabs(difference) > most ? most / std::fabs(difference) : 1;
    }
    void found(std::size_t worker, Cause cause, double size) {
        if (size != 0) culprits_.push_back({worker, cause, std::fabs(size)});
    }

    const Side& before_;
    const Side& after_;
    const Weights& weights_;
    Attribution& out_;
    std::vector<Culprit> culprits_;
};

}  // namespace

CauseTable cause_table(const Side& side, const Side& other, const Weights& weights, bool followed) {
    CauseTable out(side.workers.size());
    for (std::size_t w = 0; w < side.workers.size(); ++w) {
        const WorkerPhases& worker = side.workers[w];
        // A worker without a gradient costs what it makes on the other side: idling, as seen from here.
        out[w][Cause::idle] += weights.of_lost(worker, other.workers[w]);
        if (!worker.any) continue;
        Seconds own = worker.spent;
        if (followed) {
            for (const auto& [whom, parts] : worker.waited_for) {
                own[Cause::policy_wait] -= parts.sum();
                out[static_cast<std::size_t>(whom)].add(parts, weights.of_worker[w]);
            }
            own[Cause::policy_wait] = std::max(0.0, own[Cause::policy_wait]);
        }
        out[w].add(own, weights.of_worker[w]);
    }
    return out;
}

Attribution attribute(const Side& predicted, const Side& measured, const Weights& weights) {
    Attribution out;
    out.predicted = cause_table(predicted, measured, weights, true);
    out.measured = cause_table(measured, predicted, weights, true);
    out.own.resize(out.predicted.size());
    out.total.resize(out.predicted.size());
    out.noise.resize(out.predicted.size());
    Search search(predicted, measured, weights, out);
    search.compute();
    search.transfers(Cause::push_moving, &WorkerSpeed::push);
    search.transfers(Cause::pull_moving, &WorkerSpeed::pull);
    search.server();
    search.divide();
    return out;
}

}  // namespace rubato::cli
