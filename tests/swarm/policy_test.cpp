// Policies over random clusters and keys: what each promises holds, and what is said to be equal is equal. Invariants
// by the names of docs/protocols.md.
#include "swarm/parts.hpp"
#include "swarm/policy_checker.hpp"
#include "swarm/policy_draw.hpp"
#include "swarm/property.hpp"

using namespace rubato;
using namespace rubato::test;

namespace {

Simulated run(const Draw& it, const Watcher& watch = nullptr) {
    auto run = simulate(it.scenario, it.samples, it.network, nullptr, -1, watch);
    demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
    return run;
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
