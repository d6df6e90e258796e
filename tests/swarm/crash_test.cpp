// Policies over random clusters in which workers crash and return. Invariants by the names of docs/protocols.md.
#include "swarm/policy_checker.hpp"
#include "swarm/policy_draw.hpp"
#include "swarm/property.hpp"

using namespace rubato;
using namespace rubato::test;

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
        const bool warm = *rc::gen::inRange(0, 4) == 0;
        if (warm) {
            protocol.warm_epochs = 0.25 * *rc::gen::inRange(1, 4);
            it.scenario.workers.communication = {};
        }
        draw_faults(it);
        const auto task = draw_pause(it);
        log(it);
        const auto done = simulate(it.scenario, it.samples, it.network, task.get());
        demand_same(done, simulate(it.scenario, it.samples, it.network, task.get()));
        const auto& report = done.report;
        RC_LOG() << name(report.status) << ": " << report.detail << "\n";
        if (report.status != Status::finished) it.scenario.stop = {};
        check_books(it.scenario, it.samples, done.ledger, done.started);
        check_staleness(it.scenario, done.ledger);
        demand(static_cast<int>(done.ledger.workers.size()) == it.scenario.lambda(), "a worker kept no books");
        const bool rounds = traits(make_policy(protocol, it.scenario.lambda())).rounds;
        const auto says = [&](const char* text) { return report.detail.find(text) != std::string::npos; };
        demand(report.status == Status::finished ||
                   ((rounds || warm) && says(" crashed, and a barrier does not go on ")) ||
                   (!rounds && says(" is down since ")),
               "the run ended as " + std::string(name(report.status)) + ": " + report.detail);
        ++(report.status == Status::finished ? ended : report.status == Status::peer_lost ? lost : dead);
    });
    // Each of the endings was seen; of fewer runs than usual in proportion.
    const double part = static_cast<double>(ended + lost + dead) / usual_runs;
    CHECK(ended > 100 * part);
    CHECK(lost > 10 * part);
    CHECK(dead > 10 * part);
}

TEST_CASE("policies: whoever crashes and returns, leads of ssp and dssp keep to their bounds (D2, D5, D7)") {
    int waited = 0, runs = 0;
    hold("leads with crashes", [&] {
        ++runs;
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
    CHECK(waited > 50.0 * runs / usual_runs);  // came back further ahead than the bound
}
