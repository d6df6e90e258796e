#include "sim/pace.hpp"

#include <algorithm>

namespace rubato::sim {
namespace {

bool applies(const StragglerSpec& spec, WorkerId worker) {
    return spec.workers.empty() || std::binary_search(spec.workers.begin(), spec.workers.end(), worker);
}

}  // namespace

Pace::Pace(const Scenario& scenario) : scenario_(scenario) {
    const auto& stragglers = scenario.cluster.stragglers;
    if (stragglers.empty()) return;
    const auto roles = static_cast<std::size_t>(scenario.lambda()) + 1;
    slowed_.resize(roles);
    ahead_.resize(roles);
    for (std::size_t role = 1; role < roles; ++role) {
        for (std::size_t place = 0; place < stragglers.size(); ++place) {
            const StragglerSpec& spec = stragglers[place];
            if (!applies(spec, static_cast<WorkerId>(role - 1))) continue;
            Slowed slowed{{place, 0, spec.from_s, spec.until_s}, &spec};
            if (spec.every_s > 0) draw(static_cast<RoleId>(role), slowed, 0);
            slowed_[role].push_back(slowed);
        }
    }
}

void Pace::draw(RoleId role, Slowed& slowed, double after_s) const {
    slowed.draw(scenario_.seeds.timing, static_cast<std::uint32_t>(role), learn::Purpose::straggler,
                slowed.spec->every_s, slowed.spec->for_s, after_s);
}

void Pace::advance(RoleId role, Slowed& slowed, double to_s) const {
    if (slowed.spec->every_s <= 0) return;
    while (slowed.end_s <= to_s) {
        ++slowed.number;
        draw(role, slowed, slowed.end_s);
    }
}

double Pace::slowed(RoleId role, std::int64_t worker_seq, double begin_s, double seconds) {
    for (Slowed& slowed : slowed_[static_cast<std::size_t>(role)]) advance(role, slowed, begin_s);
    return along(role, begin_s, single(role, worker_seq, seconds), never);
}

double Pace::single(RoleId role, std::int64_t worker_seq, double seconds) const {
    double work = seconds;
    for (const Slowed& slowed : slowed_[static_cast<std::size_t>(role)]) {
        if (slowed.spec->probability == 0) continue;
        learn::Stream stream(scenario_.seeds.timing, static_cast<std::uint32_t>(role), learn::Purpose::straggler,
                             Spell::index(slowed.place, static_cast<std::uint64_t>(worker_seq)));
        if (stream.uniform() < slowed.spec->probability) work *= slowed.spec->slowdown;
    }
    return work;
}

// What lies ahead is looked at in a copy: a computation may be cancelled, and the next one then begins before its end.
double Pace::along(RoleId role, double from_s, double work, double until_s) const {
    auto& ahead = ahead_[static_cast<std::size_t>(role)];
    ahead = slowed_[static_cast<std::size_t>(role)];
    const double all = work;
    double done = 0, now = from_s;
    for (;;) {
        double factor = 1, change = until_s;
        for (Slowed& slowed : ahead) {
            if (slowed.spec->probability > 0) continue;
            advance(role, slowed, now);
            const bool within = slowed.begin_s <= now && now < slowed.end_s;
            if (within) factor *= slowed.spec->slowdown;
            if (now < slowed.end_s) change = std::min(change, within ? slowed.end_s : slowed.begin_s);
        }
        if (all < never && now + work * factor <= change) return now + work * factor - from_s;
        work -= (change - now) / factor;
        done += (change - now) / factor;
        now = change;
        if (now >= until_s) return done;
    }
}

}  // namespace rubato::sim
