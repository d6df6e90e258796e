#include "cli/sweep/plan.hpp"

#include "cli/complete_collective.hpp"
#include "cli/sweep/condition.hpp"

#include <optional>
#include <set>
#include <unordered_set>

namespace rubato::cli {
namespace {

/// Figures to tune by must come of every run.
void check_tuned_figure(const SweepFile& sweep, const Setting& setting, const std::string& which) {
    const std::string& by = sweep.tuning->by;
    const Scenario& scenario = setting.loaded.scenario;
    const auto refuse = [&](const std::string& why) {
        throw InputError(sweep.tuning->by_where, "tune.by", why + " (" + which + ")");
    };
    if (!scenario.model.gradients) refuse("a timing-only run has no " + by);
    if (!scenario.evaluate.at_end) refuse(by + " needs an evaluation of the final weights: evaluate.at_end");
    if (!by.starts_with("valid_")) return;
    if (scenario.data.validation <= 0) refuse(by + " needs validation samples: set data.validation, such as 0.1");
    const auto& model = scenario.model.name;
    if (model == "constant" || model == "tagged" || model == "quadratic")
        refuse("model \"" + model + "\" has no " + by + "; tune by train_loss");
}

class Planner {
public:
    Planner(const SweepFile& sweep, Resolver& resolver) : sweep_(sweep), resolver_(resolver) {
        plan_.sweep = &sweep;
        plan_.settings_of_variant.resize(sweep.variants.size());
        if (!sweep.where.empty()) condition_.emplace(sweep.where, sweep.where_place);
    }

    Plan make() {
        const std::uint32_t count = resolver_.settings();
        for (std::uint32_t setting = 0; setting < count; ++setting) add(setting);
        if (condition_) condition_->check_keys();
        if (plan_.settings.empty())
            throw InputError(sweep_.where_place, "where", "\"" + sweep_.where + "\" leaves no point");
        return std::move(plan_);
    }

private:
    void add(std::uint32_t number) {
        PlannedSetting planned{number, static_cast<std::uint32_t>(plan_.choices.size()), 0};
        const std::size_t variant = resolver_.variant_of(number);
        if (variant != variant_) seen_.clear();
        variant_ = variant;
        bool kept = false;
        std::unordered_set<std::uint64_t> own;
        std::set<std::string> remarks;
        const std::int32_t choices = sweep_.tuning ? resolver_.choices() : 1;
        for (std::int32_t choice = 0; choice < choices; ++choice) {
            const SettingId id{number, sweep_.tuning ? choice : -1};
            const Setting& setting = resolver_.at(id);
            if (condition_ && !condition_->holds(setting.loaded.tree)) continue;
            kept = true;
            // A key that does not go with the variant was dropped, and its values make no difference.
            if (seen_.contains(setting.content) || !own.insert(setting.content).second) continue;
            take(setting, id);
            remarks.insert(setting.loaded.notes.begin(), setting.loaded.notes.end());
        }
        for (const auto& text : remarks) ++plan_.remarks[text];
        planned.count = static_cast<std::uint32_t>(plan_.choices.size()) - planned.first;
        seen_.insert(own.begin(), own.end());
        if (planned.count == 0) {
            ++(kept ? plan_.merged : plan_.left_out);
            return;
        }
        plan_.settings.push_back(planned);
        ++plan_.settings_of_variant[variant];
    }

    void take(const Setting& setting, SettingId id) {
        if (sweep_.tuning) check_tuned_figure(sweep_, setting, resolver_.describe(id));
        require_sums(setting.loaded, "sim");
        plan_.simgrid |= setting.forks;
        plan_.choices.push_back({id.choice, setting.forks, setting.apart, setting.content, setting.platform});
        const Scenario& scenario = setting.loaded.scenario;
        if (checked_.insert(scenario.cluster.platform + "\n" + scenario.data.path).second)
            require_files(setting.loaded);
    }

    const SweepFile& sweep_;
    Resolver& resolver_;
    Plan plan_;
    std::optional<Condition> condition_;
    std::size_t variant_ = 0;
    std::unordered_set<std::uint64_t> seen_;   ///< contents of this variant's settings
    std::unordered_set<std::string> checked_;  ///< files that are known to be there
};

}  // namespace

const std::string& Plan::label(const PlannedSetting& setting) const {
    std::size_t combinations = 1;
    for (const Dimension& dimension : sweep->dimensions) combinations *= dimension.size;
    return sweep->variants[setting.setting / combinations].label;
}

std::size_t Plan::tune_points() const {
    return sweep->tuning ? choices.size() * sweep->tuning->seeds.size() : 0;
}

Plan make_plan(const SweepFile& sweep, Resolver& resolver) {
    return Planner(sweep, resolver).make();
}

}  // namespace rubato::cli
