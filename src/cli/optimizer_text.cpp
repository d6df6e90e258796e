#include "cli/optimizer_text.hpp"

#include "cli/estimate.hpp"
#include "cli/protocol_text.hpp"
#include "learn/optimizer.hpp"

#include <fmt/format.h>

namespace rubato::cli {
namespace {

std::string rule_text(const StalenessRule& rule) {
    if (rule.expression) return std::string(rule.expression->text());
    std::string text(name(rule.kind));
    if (rule.kind == StalenessRule::Kind::delay_compensation)
        text += fmt::format(" of strength {:g}{}", rule.strength,
                            !rule.adaptive               ? ""
                            : rule.mean_square_by_worker ? " over the root mean square of its worker's gradients"
                                                         : " over the root mean square of all gradients");
    return text;
}

}  // namespace

std::string optimizer_text(const OptimizerSpec& optimizer) {
    std::string text = optimizer.name;
    if (optimizer.name == "momentum" || optimizer.name == "nesterov")
        text += fmt::format(" {:g}{}", optimizer.momentum,
                            optimizer.decoupled_momentum ? ", less what staleness adds by itself" : "");
    if (optimizer.name == "adam") text += fmt::format(", beta {:g} and {:g}", optimizer.beta1, optimizer.beta2);
    if (optimizer.weight_decay > 0)
        text += fmt::format(", weight decay {:g} {}", optimizer.weight_decay,
                            optimizer.decoupled_weight_decay ? "beside the step" : "in the direction");
    return text;
}

std::string rate_text(const OptimizerSpec& optimizer) {
    std::string text = fmt::format("learning rate {:.6g}", optimizer.learning_rate);
    const auto& warm_up = optimizer.warm_up;
    if (warm_up.epochs > 0)
        text += fmt::format(", from {:g} of it to the whole in {:g} epochs", warm_up.from, warm_up.epochs);
    if (optimizer.cosine)
        text += fmt::format(", by a cosine to {:g} of it after {:g} epochs", optimizer.cosine->final_factor,
                            optimizer.cosine->epochs);
    for (const auto& drop : optimizer.schedule)
        text += fmt::format(", times {:g} from epoch {:g}", drop.factor, drop.epoch);
    return text + ", staleness rule " + rule_text(optimizer.staleness_rule);
}

std::string optimizer_memory_text(const Scenario& scenario, std::int64_t parameters) {
    const OptimizerSpec& optimizer = scenario.optimizer;
    const auto arrays = learn::Optimizer(optimizer, parameters, scenario.lambda()).arrays();
    const auto bytes = [&](std::int64_t count) {
        return bytes_text(4.0 * static_cast<double>(parameters) * static_cast<double>(count));
    };
    std::string text;
    if (arrays > 0)
        text = fmt::format("{} array{} of state as long as the weights, {}", arrays, arrays == 1 ? "" : "s",
                           bytes(arrays));
    if (!optimizer.staleness_rule.looks_at_weights()) return text;
    // One for each gradient under way. Those of a round were all computed on the version that it began with: the one
    // that an update of all of them replaces.
    const PolicyTraits policy = traits_of(scenario);
    const int versions = !policy.rounds ? scenario.lambda() : policy.batch_order ? 0 : 1;
    if (!text.empty()) text += "; ";
    if (versions == 0) return text + "no gradient is stale, so no version is kept for the rule";
    return text + fmt::format("up to {} version{} of the weights kept for the rule, {}", versions,
                              versions == 1 ? "" : "s", bytes(versions));
}

}  // namespace rubato::cli
