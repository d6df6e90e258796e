// What properties of random runs have in common.
#pragma once

#include "support/simulate.hpp"
#include "swarm/draw.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <limits>
#include <string>

namespace rubato::test {

/// Runs of a property, unless RC_PARAMS asks for another number: more than 10,000 in all.
constexpr int usual_runs = 1600;

/// Tries the property, or, with RC_PARAMS, repeats one run of it.
template <class Property>
void hold(const char* what, Property&& property) {
    setenv("RC_PARAMS", ("max_success=" + std::to_string(usual_runs)).c_str(), 0);
    CHECK_MESSAGE(rc::check(what, property), what);
}

/// The same traces, but for what the controller says.
inline void demand_same(const Simulated& a, const Simulated& b) {
    demand(a.ledger.gradients == b.ledger.gradients, "gradients differ");
    demand(a.ledger.updates == b.ledger.updates, "updates differ");
    demand(a.ledger.workers == b.ledger.workers, "books of workers differ");
    demand(a.report.end_ns == b.report.end_ns && a.report.messages == b.report.messages, "reports differ");
}

/// How far ahead of the slowest worker an iteration may start.
inline std::int64_t lead_limit(const ProtocolSpec& protocol) {
    const auto& dssp = protocol.dssp;
    if (protocol.name == "bsp") return 0;
    if (protocol.name == "ssp") return *protocol.bound;
    if (protocol.name == "dssp" && dssp.mode == DsspSpec::Mode::strict) return dssp.lower_bound + dssp.r_max;
    return std::numeric_limits<std::int64_t>::max() - 1;
}

/// A draw that a failure can be repeated from.
inline void log(const Draw& it) {
    const auto& p = it.scenario.protocol;
    RC_LOG() << p.name << " lambda=" << it.scenario.lambda() << " seed=" << it.scenario.seed
             << " samples=" << it.samples << " batch=" << it.scenario.workers.batch_size
             << " bound=" << p.bound.value_or(-1) << " k=" << p.k << " backups=" << p.backups
             << " threshold=" << p.delay_threshold << " cancel=" << p.cancel << " admit=" << static_cast<int>(p.admit)
             << " c=" << p.gradients_per_update << " warm=" << p.warm_epochs << " pause every "
             << it.scenario.evaluate.every_epochs.value_or(0)
             << " push_every=" << it.scenario.workers.communication.push_every
             << " pull_every=" << it.scenario.workers.communication.pull_every << "\n"
             << "sampling=" << static_cast<int>(it.scenario.data.sampling) << " lower=" << p.dssp.lower_bound
             << " mode=" << static_cast<int>(p.dssp.mode) << " slowest=" << static_cast<int>(p.dssp.slowest) << "\n";
    for (const auto& fault : it.scenario.faults) {
        RC_LOG() << "fault of";
        for (const WorkerId worker : fault.workers) RC_LOG() << " worker " << worker;
        for (const auto& name : fault.hosts) RC_LOG() << " host " << name;
        for (const auto& name : fault.links) RC_LOG() << " links of " << name << " times " << fault.bandwidth_factor;
        RC_LOG() << ": at " << fault.at_s << " until " << fault.until_s << ", or every " << fault.every_s << " for "
                 << fault.for_s << "\n";
    }
}

}  // namespace rubato::test
