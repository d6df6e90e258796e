// Policies over random clusters and keys: what each promises holds, and what is said to be equal is equal. Invariants
// by the names of docs/protocols.md.
#include "swarm/parts.hpp"
#include "swarm/policy_checker.hpp"
#include "swarm/policy_draw.hpp"

#include <cstdlib>

using namespace rubato;
using namespace rubato::test;

namespace {

/// Ten properties: more than 10,000 runs in all. RC_PARAMS asks for more, or repeats one.
template <class Property>
void hold(const char* what, Property&& property) {
    setenv("RC_PARAMS", "max_success=1600", 0);
    CHECK_MESSAGE(rc::check(what, property), what);
}

Simulated run(const Draw& it, const Watcher& watch = nullptr) {
    auto run = simulate(it.scenario, it.samples, it.network, nullptr, -1, watch);
    demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
    return run;
}

/// The same traces, but for what the controller says.
void demand_same(const Simulated& a, const Simulated& b) {
    demand(a.ledger.gradients == b.ledger.gradients, "gradients differ");
    demand(a.ledger.updates == b.ledger.updates, "updates differ");
    demand(a.ledger.workers == b.ledger.workers, "books of workers differ");
    demand(a.report.end_ns == b.report.end_ns && a.report.messages == b.report.messages, "reports differ");
}

/// How far ahead of the slowest worker an iteration may start.
std::int64_t lead_limit(const ProtocolSpec& protocol) {
    const auto& dssp = protocol.dssp;
    if (protocol.name == "bsp") return 0;
    if (protocol.name == "ssp") return *protocol.bound;
    if (protocol.name == "dssp" && dssp.mode == DsspSpec::Mode::strict) return dssp.lower_bound + dssp.r_max;
    return std::numeric_limits<std::int64_t>::max() - 1;
}

/// A draw that a failure can be repeated from.
void log(const Draw& it) {
    const auto& p = it.scenario.protocol;
    RC_LOG() << p.name << " lambda=" << it.scenario.lambda() << " seed=" << it.scenario.seed
             << " samples=" << it.samples << " batch=" << it.scenario.workers.batch_size
             << " bound=" << p.bound.value_or(-1) << " k=" << p.k << " backups=" << p.backups
             << " threshold=" << p.delay_threshold << " cancel=" << p.cancel << " admit=" << static_cast<int>(p.admit)
             << " c=" << p.gradients_per_update << " push_every=" << it.scenario.workers.communication.push_every
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

}  // namespace

TEST_CASE("policies: the books balance, nothing is stale beyond what is promised, and the run ends (D8, D9)") {
    hold("books", [] {
        Draw it = draw_cluster();
        draw_end(it);
        use(it, draw_protocol(it.scenario.lambda()));
        log(it);
        const auto done = run(it);
        check_books(it.scenario, it.samples, done.ledger, done.started);
        check_staleness(it.scenario, done.ledger);
        const auto policy = traits(make_policy(it.scenario.protocol, it.scenario.lambda()));
        // Elsewhere workers wait at the start, or an update takes what there is.
        if (policy.alone && !policy.drops && it.scenario.workers.communication.pull_every == 1 &&
            it.scenario.protocol.name != "bounded-delay" && it.scenario.protocol.name != "admission")
            check_conservation(it.scenario, done.ledger);
        for (const auto& row : done.ledger.workers) {
            demand(row.policy_wait_ns >= 0 && row.apply_wait_ns >= 0 && row.pull_request_ns >= 0,
                   "a negative wait of worker " + std::to_string(row.worker) + ": " +
                       std::to_string(row.policy_wait_ns) + ", " + std::to_string(row.apply_wait_ns) + ", " +
                       std::to_string(row.pull_request_ns));
            if (it.scenario.protocol.name == "asp") demand(row.policy_wait_ns == 0, "asp holds workers back");
        }
    });
}

TEST_CASE("policies: leads of bsp, ssp, dssp and bounded-delay (D1, D2, D5, D6, D7)") {
    hold("leads", [] {
        Draw it = draw_cluster();
        draw_interval(it);
        it.scenario.stop.gradients = *rc::gen::inRange(1, 80);
        it.samples *= it.scenario.workers.slice_size() * it.scenario.lambda();  // in rounds everybody gets a batch
        auto& protocol = it.scenario.protocol = draw_protocol(it.scenario.lambda());
        protocol.name = *rc::gen::element("bsp", "ssp", "ssp", "dssp", "dssp", "dssp", "bounded-delay");
        log(it);
        LeadChecker leads(it.scenario);
        run(it,
            [&](Time, RoleId role, const Event& event, const Actions& actions) { leads.see(role, event, actions); });
        const std::int64_t bound = lead_limit(protocol);
        demand(leads.start_gap <= bound, "an iteration started too far ahead");
        demand(leads.push_gap <= bound + 1, "a push came too far ahead");
    });
}

TEST_CASE("policies: ssp with bound 0 is bsp with an update for every gradient (D3)") {
    hold("ssp 0 = bsp", [] {
        Draw it = draw_cluster();
        draw_end(it);
        it.scenario.protocol.name = "bsp";
        it.scenario.protocol.per_gradient = true;
        const auto bsp = run(it);
        it.scenario.protocol = {};
        it.scenario.protocol.name = "ssp";
        it.scenario.protocol.bound = 0;
        demand_same(bsp, run(it));
    });
}

TEST_CASE("policies: ssp without a bound, or with one that is never reached, is asp (D3)") {
    hold("ssp = asp", [] {
        Draw it = draw_cluster();
        draw_end(it);
        it.scenario.protocol.name = "asp";
        const auto asp = run(it);
        it.scenario.protocol.name = "ssp";
        demand_same(asp, run(it));
        it.scenario.protocol.bound = 1'000'000'000;
        demand_same(asp, run(it));
    });
}

TEST_CASE("policies: dssp with r_max 0 is ssp; in mode literal_next for two workers (D4)") {
    hold("dssp = ssp", [] {
        Draw it = draw_cluster();
        draw_end(it);
        auto& protocol = it.scenario.protocol;
        protocol.name = "dssp";
        protocol.dssp = draw_dssp();
        protocol.dssp.r_max = 0;
        protocol.dssp.look_at_every_push = true;
        if (it.scenario.lambda() > 2 && protocol.dssp.mode == DsspSpec::Mode::literal_next)
            protocol.dssp.mode = DsspSpec::Mode::literal_full;
        log(it);
        const auto dssp = run(it);
        protocol.name = "ssp";
        protocol.bound = protocol.dssp.lower_bound;
        demand_same(dssp, run(it));
    });
}

TEST_CASE("policies: with fixed durations and nothing shared, a larger bound starts no iteration later (D10)") {
    hold("monotone", [] {
        Draw it = draw_cluster(true);
        draw_interval(it);
        it.scenario.stop.gradients = *rc::gen::inRange(1, 60);
        it.samples *= it.scenario.workers.slice_size();  // none is cut, which would take less time
        auto& protocol = it.scenario.protocol;
        protocol.name = "ssp";
        const auto bound = *rc::gen::inRange(1, 5);
        std::map<std::pair<WorkerId, std::int64_t>, Time> begins;
        protocol.bound = bound;
        const auto tight = run(it);
        for (const auto& row : tight.ledger.gradients) begins[{row.worker, row.worker_seq}] = row.begin_ns;
        protocol.bound = bound + *rc::gen::inRange(1, 4);
        const auto loose = run(it);
        for (const auto& row : loose.ledger.gradients) {
            const auto same = begins.find({row.worker, row.worker_seq});
            if (same != begins.end()) demand(row.begin_ns <= same->second, "a larger bound starts an iteration later");
        }
    });
}

TEST_CASE("policies: a run that goes on from a checkpoint keeps its books and its promises") {
    constexpr int enough = 150;  // checkpoints are forced to the disk, which takes its time
    int resumed = 0;
    hold("resume", [&] {
        if (resumed == enough) return;
        Draw it = draw_cluster();
        draw_end(it);
        use(it, draw_protocol(it.scenario.lambda()));
        it.scenario.checkpoint.every_updates = *rc::gen::inRange(1, 12);
        log(it);
        const TemporaryDirectory folder;
        const auto interrupt = *rc::gen::element<std::int64_t>(-1, -1, 20, 50, 110);
        const auto first = run_part(it, nullptr, folder.path(), nullptr, interrupt);
        const auto from = newest(folder.path());
        if (!from) return;
        ++resumed;
        const auto rest = run_part(it, nullptr, folder.path(), &*from);
        demand(rest.report.status == Status::finished, "the run did not end: " + rest.report.detail);
        const auto whole = joined(first.at_save.at(from->head.version()), rest.ledger);
        check_books(it.scenario, it.samples, whole, whole.told());
        check_staleness(it.scenario, whole);
    });
    CHECK(resumed == enough);
}

TEST_CASE("policies: a run that is stopped or loses a transfer ends in order, with every gradient in the books") {
    hold("faults", [] {
        Draw it = draw_cluster();
        draw_end(it);
        use(it, draw_protocol(it.scenario.lambda()));
        log(it);
        const bool signal = *rc::gen::arbitrary<bool>();
        const auto after = *rc::gen::inRange<std::int64_t>(1, 150);
        if (!signal) it.network.fails_after = after;
        const auto done = simulate(it.scenario, it.samples, it.network, nullptr, signal ? after : -1);
        it.scenario.stop = {};
        check_books(it.scenario, it.samples, done.ledger, done.started);
    });
}

TEST_CASE("policies: workers crash and return: the books balance, and the run ends or names who is down") {
    int ended = 0, lost = 0, dead = 0;
    hold("crashes", [&] {
        Draw it = draw_cluster();
        draw_end(it);
        auto& protocol = it.scenario.protocol = draw_protocol(it.scenario.lambda());
        const int plain = *rc::gen::inRange(0, 12);
        if (plain < 3) protocol.name = std::vector{"hardsync", "async", "n-softsync"}[static_cast<std::size_t>(plain)];
        if (protocol.name == "n-softsync") protocol.gradients_per_update = std::max(1, protocol.gradients_per_update);
        use(it, ProtocolSpec(protocol));
        draw_faults(it);
        log(it);
        const auto done = simulate(it.scenario, it.samples, it.network);
        demand_same(done, simulate(it.scenario, it.samples, it.network));
        const auto& report = done.report;
        RC_LOG() << name(report.status) << ": " << report.detail << "\n";
        if (report.status != Status::finished) it.scenario.stop = {};
        check_books(it.scenario, it.samples, done.ledger, done.started);
        check_staleness(it.scenario, done.ledger);
        demand(static_cast<int>(done.ledger.workers.size()) == it.scenario.lambda(), "a worker kept no books");
        const bool rounds = traits(make_policy(protocol, it.scenario.lambda())).rounds;
        demand(report.status == Status::finished ||
                   report.detail.find(rounds ? " crashed, and no round of " : " is down since ") != std::string::npos,
               "the run ended as " + std::string(name(report.status)) + ": " + report.detail);
        ++(report.status == Status::finished ? ended : report.status == Status::peer_lost ? lost : dead);
    });
    // Each of the endings was seen.
    CHECK(ended > 100);
    CHECK(lost > 10);
    CHECK(dead > 10);
}

TEST_CASE("policies: whoever crashes and returns, leads of ssp and dssp keep to their bounds (D2, D5, D7)") {
    int waited = 0;
    hold("leads with crashes", [&] {
        Draw it = draw_cluster();
        draw_interval(it);
        it.scenario.stop.gradients = *rc::gen::inRange(20, 200);
        it.samples *= it.scenario.workers.slice_size() * it.scenario.lambda();
        auto& protocol = it.scenario.protocol = draw_protocol(it.scenario.lambda());
        protocol.name = *rc::gen::element("ssp", "dssp");
        if (traits(make_policy(protocol, it.scenario.lambda())).rounds) protocol.bound = protocol.dssp.r_max = 1;
        draw_faults(it);
        // Each is away for a while as well, so that those who come back differ by more than the bound.
        const auto ms = [](int least, int most) { return 1e-3 * *rc::gen::inRange(least, most); };
        for (int worker = 0; worker < it.scenario.lambda(); ++worker) {
            auto& fault = it.scenario.faults.emplace_back();
            fault.workers = {worker};
            fault.at_s = ms(1, 200);
            fault.until_s = fault.at_s + ms(1, 200);
        }
        log(it);
        LeadChecker leads(it.scenario);
        const auto done = simulate(
            it.scenario, it.samples, it.network, nullptr, -1,
            [&](Time, RoleId role, const Event& event, const Actions& actions) { leads.see(role, event, actions); });
        const auto bound = lead_limit(protocol);
        RC_LOG() << "start gap " << leads.start_gap << ", push gap " << leads.push_gap << ", bound " << bound << "\n";
        demand(leads.start_gap <= bound, "an iteration started too far ahead");
        demand(leads.push_gap <= bound + 1, "a push came too far ahead");
        waited += leads.return_gap > bound ? 1 : 0;
    });
    CHECK(waited > 50);  // came back further ahead than the bound
}
