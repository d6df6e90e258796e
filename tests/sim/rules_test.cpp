// Optimizers and rules in whole runs: simulated, by schedule, and computed again, all with the same bits; rules that
// look at weights find the very versions that gradients were computed on.
#include "core/learning_rate.hpp"
#include "sim/recorded_steps.hpp"
#include "sim/replay/retelling.hpp"
#include "sim/replay/verification.hpp"
#include "sim/schedule/schedule_run.hpp"
#include "support/optimizers.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace rubato;
using namespace rubato::test;

namespace {

/// Follows a trace of (worker, version read) on f(w) = w^2 / 2 from w = 1; the losses tell w at each version read.
struct Followed {
    std::uint64_t hash = 0;
    Ledger ledger;
};
using Rows = std::vector<std::pair<WorkerId, Version>>;

Followed follow(const Scenario& scenario, const sim::DelayTrace& trace, const learn::Task& task) {
    auto input = input_of(scenario, task);
    Followed result;
    sim::ScheduleRun run(input, trace,
                         [&](Time, RoleId, const Event&, const Actions& actions) { result.ledger.add(actions); });
    const auto report = run.go();
    REQUIRE(report.status == Status::finished);
    result.hash = *report.weights_hash;
    return result;
}

Scenario bowl(const OptimizerSpec& optimizer, int lambda, std::int64_t gradients, const char* protocol = "async") {
    Scenario scenario = learning_scenario(protocol, lambda, 1, "quadratic", 1000);
    scenario.optimizer = optimizer;
    scenario.stop.gradients = gradients;
    return scenario;
}

sim::DelayTrace fixed_delay(std::int64_t delay, std::int64_t count, int lambda) {
    sim::DelayTrace trace;
    trace.file = "delays.csv";
    for (std::int64_t k = 0; k < count; ++k)
        trace.gradients.push_back(
            {static_cast<WorkerId>(k % lambda), std::max<std::int64_t>(0, k - delay), k + 2, -1, -1});
    return trace;
}

/// Weights after each update of async on w^2 / 2 under a rule, in double precision.
std::vector<double> recursion(const OptimizerSpec& spec, const sim::DelayTrace& trace) {
    std::vector<double> w{1}, square(16);
    double velocity = 0, h = 0, m = 0, v = 0, steps = 0, trend = 0;
    const auto& rule = spec.staleness_rule;
    for (std::size_t k = 0; k < trace.gradients.size(); ++k) {
        const auto& row = trace.gradients[k];
        const auto number = static_cast<double>(k + 1);
        const double now = w.back(), then = w[static_cast<std::size_t>(row.read_version)];
        double g = then, rate = scheduled_rate(spec, static_cast<double>(k) / 1000), mu = spec.momentum;
        if (rule.kind == StalenessRule::Kind::delay_compensation) {
            double strength = rule.strength;
            if (rule.adaptive) {
                double& s = square[static_cast<std::size_t>(rule.mean_square_by_worker ? row.worker : 0)];
                s = rule.decay * s + (1 - rule.decay) * g * g;
                strength /= std::sqrt(s + 1e-7);
            }
            g += strength * g * g * (now - then);
        }
        if (rule.kind == StalenessRule::Kind::gap_aware && k > 0) {
            const double mean = std::sqrt(steps / (1 - std::pow(rule.decay, number - 1)));
            g /= 1 + std::abs(now - then) / (spec.learning_rate * (mean + 1e-8));
        }
        if (spec.decoupled_momentum) {
            const auto left = decoupled_momentum(mu, trend);
            mu = left.momentum;
            rate *= left.gain;
        }
        const double start = spec.decoupled_weight_decay ? now - rate * spec.weight_decay * now : now;
        if (!spec.decoupled_weight_decay) g += spec.weight_decay * now;
        double made = start - rate * g;
        if (spec.name == "momentum") made = start + (velocity = mu * velocity - rate * g);
        if (spec.name == "nesterov") {
            velocity = mu * velocity - rate * g;
            made = start + mu * velocity - rate * g;
        }
        if (spec.name == "adagrad") {
            h += g * g;
            made = start - rate * g / (std::sqrt(h) + spec.epsilon);
        }
        if (spec.name == "adam") {
            m = spec.beta1 * m + (1 - spec.beta1) * g;
            v = spec.beta2 * v + (1 - spec.beta2) * g * g;
            made = start - rate * (m / (1 - std::pow(spec.beta1, number))) /
                               (std::sqrt(v / (1 - std::pow(spec.beta2, number))) + spec.epsilon);
        }
        if (rate > 0) steps = rule.decay * steps + (1 - rule.decay) * std::pow((now - made) / rate, 2);
        const auto staleness = static_cast<double>(static_cast<std::int64_t>(k) - row.read_version);
        trend += (staleness - trend) / std::min(number, 10.0 * 4);
        w.push_back(made);
    }
    return w;
}

}  // namespace

TEST_CASE("rules: with a fixed delay every optimizer under every rule is its recursion by hand") {
    constexpr int lambda = 4;
    for (const auto& optimizer : all_optimizers())
        for (const std::int64_t delay : {0, 1, 3}) {
            const auto trace = fixed_delay(delay, 40, lambda);
            const auto scenario = bowl(optimizer, lambda, 40);
            const auto task = learn::make_task(scenario);
            const auto run = follow(scenario, trace, *task);
            const auto wanted = recursion(optimizer, trace);
            CAPTURE(label(optimizer));
            CAPTURE(delay);
            REQUIRE(run.ledger.gradients.size() == 40);
            for (std::size_t k = 0; k < 40; ++k) {
                const double w = std::sqrt(2 * run.ledger.gradients[k].loss);
                const double read = wanted[static_cast<std::size_t>(trace.gradients[k].read_version)];
                CHECK(w == doctest::Approx(std::abs(read)).epsilon(1e-4).scale(0.1));
            }
        }
}

TEST_CASE("rules: a compensation is there where a gradient is stale, and not at staleness 0") {
    for (const auto& rule : rules_on_weights()) {
        auto ruled = optimizer_named("sgd", 0.1);
        const auto plain = ruled;
        ruled.staleness_rule = rule;
        CAPTURE(label(ruled));
        for (const std::int64_t delay : {0, 1, 2}) {
            const auto trace = fixed_delay(delay, 30, 3);
            const auto task = learn::make_task(bowl(plain, 3, 30));
            const auto with = follow(bowl(ruled, 3, 30), trace, *task);
            const auto without = follow(bowl(plain, 3, 30), trace, *task);
            CHECK((with.hash == without.hash) == (delay == 0));
        }
    }
}

TEST_CASE("rules: simulated, by the schedule that is left, and computed again, all give the same weights") {
    for (const auto& optimizer : all_optimizers())
        for (const char* protocol : {"hardsync", "n-softsync", "async"}) {
            CAPTURE(label(optimizer));
            CAPTURE(protocol);
            const auto run = record(protocol, 5, -1, -1, optimizer);
            REQUIRE(run.report.status == Status::finished);
            sim::Verification verification;
            sim::Recomputation recomputation(run.scenario, *run.task, {2, true}, verification);
            for (const auto& step : merged_anyhow(Renamed()(run.steps), 1))
                recomputation.take(step.now, step.role, step.event, step.actions);
            recomputation.end();
            CHECK(verification.loss_difference() == "");
            CHECK(recomputation.weights_hash() == run.report.weights_hash);
            CHECK(recomputation.outstanding() == 0);

            Ledger ledger;
            for (const auto& step : run.steps) ledger.add(step.actions);
            std::map<std::int64_t, GradientRow> accepted;
            sim::DelayTrace trace;
            trace.has_positions = true;
            for (const auto& row : ledger.gradients)
                if (row.seq >= 0) accepted[row.seq] = row;
            for (const auto& [seq, row] : accepted)
                trace.gradients.push_back({row.worker, row.read_version, 0, row.batch.epoch, row.batch.first});
            CHECK(follow(run.scenario, trace, *run.task).hash == *run.report.weights_hash);
        }
}

TEST_CASE("rules: a recorded run under another optimizer or rule is the run that it would have been") {
    const auto others = all_optimizers();
    for (const char* protocol : {"hardsync", "n-softsync", "async"})
        for (std::size_t i = 0; i < others.size(); ++i) {
            // From plain to ruled, and from ruled to another rule.
            const auto run = record(protocol, 5, -1, -1, i % 2 ? others[(i + 7) % others.size()] : momentum());
            const auto wanted = record(protocol, 5, -1, -1, others[i]);
            CAPTURE(protocol);
            CAPTURE(label(run.scenario.optimizer));
            CAPTURE(label(others[i]));
            Scenario changed = run.scenario;
            changed.optimizer = others[i];
            trace::RecorderOptions options;
            options.samples = run.task->samples();
            options.one_thread = true;
            trace::Recorder recorder(changed, options);
            sim::Retelling retelling(make_roles(changed, run.task->samples(), run.task->parameters()), true,
                                     {1000, 1000, 64}, recorder, nullptr);
            sim::Recomputation recomputation(changed, *run.task, {2, true}, retelling);
            for (const auto& step : merged_anyhow(Renamed()(run.steps), i))
                recomputation.take(step.now, step.role, step.event, step.actions);
            recomputation.end();
            CHECK(recomputation.weights_hash() == wanted.report.weights_hash);
        }
}

TEST_CASE("rules: what is kept is what gradients under way were computed on, and nothing longer") {
    for (const char* protocol : {"hardsync", "n-softsync", "async"})
        for (const int lambda : {1, 2, 6}) {
            auto optimizer = optimizer_named("sgd", 0.05);
            optimizer.staleness_rule = rules_on_weights().front();
            if (std::string_view(protocol) == "n-softsync" && lambda == 1) continue;
            const auto run = record(protocol, lambda, -1, -1, optimizer);
            CAPTURE(protocol);
            CAPTURE(lambda);
            std::set<Version> kept;
            std::size_t most = 0;
            std::int64_t stale = 0;
            Version version = 0;
            for (const auto& step : run.steps) {
                version += static_cast<Version>(step.actions.updates.size());
                for (const auto& action : step.actions.list) {
                    if (const auto* it = std::get_if<Keep>(&action)) {
                        CHECK(it->version == version);
                        CHECK(kept.insert(it->version).second);
                    }
                    if (const auto* it = std::get_if<Forget>(&action)) CHECK(kept.erase(it->version) == 1);
                    if (const auto* it = std::get_if<Fold>(&action)) {
                        CHECK(it->version == version);
                        stale += it->read_version < version;
                        if (it->read_version < version) CHECK(kept.contains(it->read_version));
                    }
                    if (const auto* it = std::get_if<Update>(&action)) {
                        CHECK(it->from == version);
                        for (const auto& part : step.actions.parts)
                            if (part.worker >= 0 && part.read_version < version) {
                                ++stale;
                                CHECK(kept.contains(part.read_version));
                            }
                    }
                    most = std::max(most, kept.size());
                }
            }
            CHECK(most <= static_cast<std::size_t>(lambda));
            CHECK((stale > 0) == (lambda > 1 && std::string_view(protocol) != "hardsync"));
        }
    // Of timing alone nothing is kept.
    auto scenario = timing_scenario("async", 4, 8);
    scenario.optimizer.staleness_rule = rules_on_weights().back();
    scenario.stop.gradients = 50;
    IdealNetwork network(sim::star_hosts(scenario), 1e-5, 1e12, 0, 0);
    const auto placement = sim::place(scenario, network.hosts());
    sim::RunInput input;
    input.scenario = &scenario;
    input.samples = 100;
    input.parameters = 1;
    input.observer = [](Time, RoleId, const Event&, const Actions& actions) {
        for (const auto& action : actions.list) CHECK(!std::holds_alternative<Keep>(action));
    };
    CHECK(sim::Run(input, network, placement).go().status == Status::finished);
}

TEST_CASE("rules: the rate of a sample is the same for any number of workers") {
    auto optimizer = optimizer_named("momentum", 0.05);
    optimizer.warm_up = {0.7, 0.1};
    optimizer.cosine = OptimizerSpec::Cosine{3, 0.01};
    const auto rates = [&](const char* protocol, int lambda, int batch_size) {
        auto scenario = learning_scenario(protocol, lambda, batch_size, "mlp", 240);
        scenario.optimizer = optimizer;
        scenario.stop.epochs = 3;
        const auto task = learn::make_task(scenario);
        const auto run = simulate(scenario, task->samples(), {}, task.get());
        std::map<std::int64_t, double> out;  // by the samples that were applied before
        std::int64_t samples = 0;
        for (const auto& row : run.ledger.updates) {
            out[samples] = row.learning_rate;
            samples += row.samples;
        }
        return out;
    };
    const auto wanted = rates("hardsync", 1, 8);
    CHECK(wanted.size() == 90);
    for (const auto& [samples, rate] : wanted)
        CHECK(rate == scheduled_rate(optimizer, static_cast<double>(samples) / 240));
    CHECK(rates("async", 1, 8) == wanted);
    CHECK(rates("async", 5, 8) == wanted);
    const auto wide = rates("hardsync", 5, 8);
    CHECK(wide.size() == 18);
    for (const auto& [samples, rate] : wide) CHECK(wanted.at(samples) == rate);
}

TEST_CASE("rules: momentum less its staleness is momentum where nothing is stale, and less where much is") {
    auto optimizer = optimizer_named("momentum", 0.02);
    auto less = optimizer;
    less.decoupled_momentum = true;
    CHECK(record("hardsync", 5, -1, -1, less).report.weights_hash ==
          record("hardsync", 5, -1, -1, optimizer).report.weights_hash);
    const auto run = record("async", 5, -1, -1, less);
    CHECK(run.report.weights_hash != record("async", 5, -1, -1, optimizer).report.weights_hash);
    double last = 1;
    for (const auto& step : run.steps)
        for (const auto& it : step.actions.steps) {
            last = it.momentum;
            CHECK(last >= 0);
            CHECK(last <= 0.9);
        }
    // Staleness is near 4 with five workers, and lags add up: 9 - 4 = 5.
    CHECK(last == doctest::Approx(5.0 / 6).epsilon(0.03));
}
