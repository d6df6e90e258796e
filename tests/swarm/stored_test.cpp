// A policy that no list knows, and that stores stale gradients until their update: what a rule looks at is still there.
#include "core/plugin.hpp"
#include "swarm/parts.hpp"

#include <algorithm>
#include <set>

using namespace rubato;
using namespace rubato::test;

namespace {

/// An update for the first two workers, in the order of the workers, whatever versions they read.
struct Pairs : PolicyDefaults {
    static constexpr std::string_view name = "pairs";
    Pairs(int lambda, const Constants&) : busy(lambda) {}
    PolicyTraits traits() const { return {.word = Word::broadcast, .batch_order = true, .gradients = 2}; }
    Decision on_arrival(const Arrival& arrival, Orders&) {
        arrived.push_back(arrival.worker);
        --busy;
        return {.fire = arrived.size() == 2 || busy == 0};
    }
    void on_applied(Time, Orders& orders) {
        busy += static_cast<int>(arrived.size());
        orders.release.swap(arrived);
        arrived.clear();
    }
    void on_idle(WorkerId, Orders&) { --busy; }
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("busy", self.busy);
        field("arrived", self.arrived);
    }
    int busy;
    std::vector<WorkerId> arrived;
};

}  // namespace

TEST_CASE("stored gradients: the versions that they were computed on are kept until they are applied") {
    Scenario scenario = learning_scenario("plugin", 5, 8);
    scenario.protocol.plugin = [](int lambda) {
        return std::make_unique<ForeignPolicyOf<Pairs>>(Pairs(lambda, Constants()));
    };
    scenario.optimizer.staleness_rule.kind = StalenessRule::Kind::delay_compensation;
    scenario.stop.epochs = 6;
    const auto task = learn::make_task(scenario);
    std::set<Version> kept;
    std::size_t most = 0;
    std::int64_t stale = 0;
    const auto run = simulate(scenario, task->samples(), {1e-5, 1e6, 0.5, 3}, task.get(), -1,
                              [&](Time, RoleId, const Event&, const Actions& actions) {
                                  for (const auto& action : actions.list) {
                                      if (const auto* it = std::get_if<Keep>(&action)) kept.insert(it->version);
                                      if (const auto* it = std::get_if<Forget>(&action)) kept.erase(it->version);
                                      const auto* update = std::get_if<Update>(&action);
                                      if (update == nullptr) continue;
                                      for (const auto& part : actions.parts) {
                                          if (part.read_version == update->from) continue;
                                          ++stale;
                                          REQUIRE(kept.contains(part.read_version));
                                      }
                                  }
                                  most = std::max(most, kept.size());
                              });
    CHECK(run.report.status == Status::finished);
    CHECK(stale > 20);
    CHECK(most <= 6);  // five under way, and one stored
}
