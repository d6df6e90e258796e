// Workers that compute more slowly for a while (cluster.stragglers).
#pragma once

#include "core/scenario.hpp"
#include "sim/spell.hpp"

#include <limits>
#include <vector>

namespace rubato::sim {

/// When gradients end that are begun at some time. Spells are a pure function of seeds.timing, the straggler's place in
/// the list and the worker: the same in every backend and under every protocol. What is under way when a spell begins
/// or ends is slowed for that part alone. Roles may be asked for from several threads, each role from one.
class Pace {
public:
    /// The scenario must outlive it.
    explicit Pace(const Scenario& scenario);
    /// Seconds that a gradient takes which would take `seconds` without stragglers. A worker's gradients are asked for
    /// in the order of their beginnings.
    double seconds(RoleId role, std::int64_t worker_seq, Time begin_ns, double seconds) {
        return slowed_.empty() || slowed_[static_cast<std::size_t>(role)].empty()
                   ? seconds
                   : slowed(role, worker_seq, static_cast<double>(begin_ns) * 1e-9, seconds);
    }

    /// The work of such a gradient, in seconds without spells.
    double work(RoleId role, std::int64_t worker_seq, double seconds) const {
        return slowed_.empty() ? seconds : single(role, worker_seq, seconds);
    }
    /// What is done of a gradient from one time to another, in seconds without spells.
    double done(RoleId role, Time from_ns, Time to_ns) const {
        const double from_s = static_cast<double>(from_ns) * 1e-9, to_s = static_cast<double>(to_ns) * 1e-9;
        return slowed_.empty() ? to_s - from_s : along(role, from_s, never, to_s);
    }
    /// Seconds that so much of it takes from a time on.
    double rest(RoleId role, Time from_ns, double work) const {
        return slowed_.empty() ? work : along(role, static_cast<double>(from_ns) * 1e-9, work, never);
    }

private:
    static constexpr double never = std::numeric_limits<double>::infinity();
    /// One straggler of the list, as a worker feels it.
    struct Slowed : Spell {
        const StragglerSpec* spec = nullptr;
    };

    double slowed(RoleId role, std::int64_t worker_seq, double begin_s, double seconds);
    double single(RoleId role, std::int64_t worker_seq, double seconds) const;
    /// Follows spells from a time on until so much work is done, or another time has come: seconds until then, or,
    /// where the time is what ends it, the work that is done by then.
    double along(RoleId role, double from_s, double work, double until_s) const;
    void draw(RoleId role, Slowed& slowed, double after_s) const;
    /// Goes on to the first spell that ends after that time.
    void advance(RoleId role, Slowed& slowed, double to_s) const;

    const Scenario& scenario_;
    std::vector<std::vector<Slowed>> slowed_;         ///< by role; empty: nobody is
    mutable std::vector<std::vector<Slowed>> ahead_;  ///< scratch, by role
};

}  // namespace rubato::sim
