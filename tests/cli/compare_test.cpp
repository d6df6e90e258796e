// What compare makes of the rows of a run: phases, whom waits were for, speeds, and how a gap is divided.
#include "cli/compare/attribution.hpp"
#include "cli/compare/explain.hpp"
#include "cli/compare/figures.hpp"
#include "cli/compare/limits.hpp"
#include "cli/error.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace rubato;
using namespace rubato::cli;

namespace {

/// Rows as hardsync leaves them. All times in ms.
class Rounds {
public:
    explicit Rounds(int lambda) { run_.workers.resize(static_cast<std::size_t>(lambda)); }

    /// A round: the weights arrive `pull` after the round begins, the update is done `apply` after the last push.
    void add(double pull, const std::vector<double>& compute, double push, double apply) {
        double last = 0;
        for (std::size_t w = 0; w < compute.size(); ++w) {
            GradientRow row;
            row.worker = static_cast<WorkerId>(w);
            row.worker_seq = version_;
            row.read_version = row.apply_version = version_;
            row.pull_ns = version_ == 0 ? 0 : taken_[w];
            row.begin_ns = now_ + ns(pull);
            row.end_ns = row.push_ns = row.begin_ns + ns(compute[w]);
            last = std::max(last, pull + compute[w] + push);
            run_.gradients.push_back(row);
        }
        const Time applied = now_ + ns(last + apply);
        taken_.clear();
        for (std::size_t w = 0; w < compute.size(); ++w) {
            auto& row = run_.gradients[run_.gradients.size() - compute.size() + w];
            row.applied_ns = applied;
            taken_.push_back(row.push_ns + ns(push));
            auto& books = run_.workers[w];
            ++books.applied;
            books.ended = true;
            books.compute_s += compute[w] * 1e-3;
            books.push_moving_s += push * 1e-3;
            books.pull_moving_s += pull * 1e-3;
            books.policy_wait_s += (last - pull - compute[w] - push) * 1e-3;
            books.apply_wait_s += apply * 1e-3;
        }
        run_.updates.push_back({applied, ++version_, 0, static_cast<int>(compute.size()), 0, 8, 0, 0, 0});
        now_ = applied;
    }
    const RecordedRun& run() const { return run_; }

private:
    static Time ns(double ms) { return static_cast<Time>(std::llround(ms * 1e6)); }

    RecordedRun run_;
    Version version_ = 0;
    Time now_ = 0;
    std::vector<Time> taken_;
};

RecordedRun rounds(const std::vector<double>& compute, double push = 1, double pull = 1, double apply = 0.5) {
    Rounds all(static_cast<int>(compute.size()));
    for (int i = 0; i < 100; ++i) all.add(pull, compute, push, apply);
    return all.run();
}

Explanation explained(const RecordedRun& predicted, const RecordedRun& measured) {
    return explain(mean_side({predicted}, {phases_of(predicted)}), mean_side({measured}, {phases_of(measured)}), true,
                   true);
}

double sum_of_totals(const Explanation& explanation) {
    double sum = 0;
    for (const auto& line : explanation.lines) sum += line.total;
    return sum;
}

}  // namespace

TEST_CASE("phases of a round add up, and its waits are for the slowest") {
    const RecordedRun run = rounds({10, 10, 13});
    const RunPhases phases = phases_of(run);
    CHECK(phases.followed);
    REQUIRE(phases.workers.size() == 3);
    for (const auto& worker : phases.workers) CHECK(worker.spent.sum() == doctest::Approx(15.5e-3));
    const WorkerPhases& fast = phases.workers[0];
    CHECK(fast.spent[Cause::compute] == doctest::Approx(10e-3));
    CHECK(fast.spent[Cause::push_moving] == doctest::Approx(1e-3));
    CHECK(fast.spent[Cause::policy_wait] == doctest::Approx(3e-3).epsilon(0.02));
    REQUIRE(fast.waited_for.size() == 1);
    CHECK(fast.waited_for.at(2)[Cause::compute] == doctest::Approx(3e-3).epsilon(0.02));
    CHECK(fast.waited_for.at(2).sum() == doctest::Approx(fast.waited_for.at(2)[Cause::compute]));
    CHECK(phases.workers[2].waited_for.empty());
    CHECK(seconds_per_gradient(phases).sum() == doctest::Approx(15.5e-3));
}

TEST_CASE("without all rows phases come from the books") {
    RecordedRun run = rounds({10, 13});
    run.gradients.clear();
    const RunPhases phases = phases_of(run);
    CHECK_FALSE(phases.followed);
    CHECK_FALSE(phases.steady);
    CHECK(phases.workers[0].spent[Cause::policy_wait] == doctest::Approx(3e-3));
    CHECK(phases.workers[0].waited_for.empty());
}

TEST_CASE("a slower worker answers for the waits of the others") {
    const Explanation it = explained(rounds({10, 10, 10}), rounds({10, 10, 13}));
    CHECK(it.gap() == doctest::Approx(3e-3));
    REQUIRE_FALSE(it.lines.empty());
    CHECK(line_text(it.lines[0]) == "compute of worker 2");
    CHECK(it.lines[0].share == doctest::Approx(1).epsilon(0.01));
    CHECK(sum_of_totals(it) == doctest::Approx(it.gap()));
}

TEST_CASE("of two slower workers the one that all wait for answers for the waits") {
    const Explanation it = explained(rounds({10, 10, 10}), rounds({10, 12, 13}));
    CHECK(line_text(it.lines[0]) == "compute of worker 2");
    CHECK(it.lines[0].share > 0.6);
    CHECK(sum_of_totals(it) == doctest::Approx(it.gap()));
}

TEST_CASE("what all have in common is nobody's own") {
    CHECK(line_text(explained(rounds({10, 10, 10}), rounds({12, 12, 12})).lines[0]) == "compute of all workers");
    CHECK(line_text(explained(rounds({10, 10, 10}), rounds({10, 10, 10}, 3)).lines[0]) == "push moving of all workers");
    CHECK(line_text(explained(rounds({10, 10, 10}), rounds({10, 10, 10}, 1, 3)).lines[0]) ==
          "pull moving of all workers");
}

TEST_CASE("swapped sides change signs and nothing else") {
    const RecordedRun a = rounds({10, 11, 10, 10}), b = rounds({10, 10, 10, 14}, 2);
    const Explanation there = explained(a, b), back = explained(b, a);
    REQUIRE(there.lines.size() == back.lines.size());
    for (std::size_t i = 0; i < there.lines.size(); ++i) {
        CHECK(line_text(there.lines[i]) == line_text(back.lines[i]));
        CHECK(there.lines[i].total == doctest::Approx(-back.lines[i].total));
    }
    CHECK(there.gap() == doctest::Approx(-back.gap()));
}

TEST_CASE("a worker without gradients on one side costs what it made on the other") {
    RecordedRun lost = rounds({10, 10});
    std::erase_if(lost.gradients, [](const GradientRow& row) { return row.worker == 1; });
    lost.workers[1].applied = 0;
    const Explanation it = explained(rounds({10, 10}), lost);
    CHECK(it.measured > 1.9 * it.predicted);
    CHECK(line_text(it.lines[0]) == "idle of worker 1");
    CHECK(sum_of_totals(it) == doctest::Approx(it.gap()));
}

TEST_CASE("sharing a link leaves its speed alone, and a slower link does not") {
    // Three pushes at once over one link that moves one in 1 ms: each takes 3 ms.
    const auto together = speeds_of(rounds({10, 10, 10}, 3));
    CHECK(together[0].push.alone_s == doctest::Approx(1e-3));
    CHECK(together[0].push.shortest_s == doctest::Approx(3e-3));
    // One after the other.
    const auto apart = speeds_of(rounds({10, 12, 14}, 1));
    CHECK(apart[0].push.alone_s == doctest::Approx(1e-3));
    CHECK(speed_ratio(together[0].push, apart[0].push) == doctest::Approx(1));
    const auto slower = speeds_of(rounds({10, 10, 10}, 6));
    CHECK(speed_ratio(together[0].push, slower[0].push) == doctest::Approx(2));
    CHECK(speed_ratio(slower[0].push, together[0].push) == doctest::Approx(0.5));
}

TEST_CASE("distance of distributions") {
    CHECK(kolmogorov_smirnov({0.5, 0.5}, {0.5, 0.5}) == 0);
    CHECK(kolmogorov_smirnov({1}, {0, 0, 1}) == 1);
    CHECK(kolmogorov_smirnov({0.25, 0.75}, {0.5, 0.25, 0.25}) == doctest::Approx(0.25));
}

TEST_CASE("limits are on the size of the relative error") {
    const auto values = [](double throughput) {
        std::vector<std::optional<double>> all(figure_kinds().size());
        all[0] = throughput;
        return all;
    };
    const auto figures = compare_figures({values(90), values(70)}, {values(100)});
    REQUIRE(figures.size() == 1);
    CHECK(figures[0].predicted->mean == 80);
    CHECK(*figures[0].error == doctest::Approx(-0.2));
    const auto judged = judge(parse_limits({"throughput=0.2000001", "ks=0.05"}), figures, 0.06);
    CHECK(judged[0].kept);
    CHECK_FALSE(judged[1].kept);
    CHECK_FALSE(compare_figures({values(1)}, {values(0)})[0].error);
    CHECK(*compare_figures({values(0)}, {values(0)})[0].error == 0);
    for (const char* wrong : {"throughput", "throughput=", "throughput=a", "throughput=-1", "throughput=inf", "x=1"})
        CHECK_THROWS_AS(parse_limits({wrong}), InputError);
    CHECK_THROWS_AS(judge(parse_limits({"staleness=1"}), figures, 0), InputError);
}

TEST_CASE("names of lines") {
    GapLine line;
    line.who = GapLine::Who::some;
    line.cause = Cause::push_queued;
    line.workers = {0, 1, 2, 5};
    CHECK(line_text(line) == "push queued of workers 0-2 and 5");
    line.workers = {3, 4};
    CHECK(line_text(line) == "push queued of workers 3 and 4");
    line.workers = {0, 2, 4, 6, 8, 10, 12};
    CHECK(line_text(line) == "push queued of workers 0 and 6 more");
    CHECK(duration_text(0.0123) == "12.3 ms");
    CHECK(duration_text(-2e-6, true) == "-2 us");
    CHECK(duration_text(0) == "0 s");
}
