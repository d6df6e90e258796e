// Every optimizer, every schedule of its rate, and every staleness rule that looks at weights.
#pragma once

#include "core/scenario.hpp"

#include <string>
#include <vector>

namespace rubato::test {

inline OptimizerSpec optimizer_named(const std::string& name, double rate) {
    OptimizerSpec out;
    out.name = name;
    out.momentum = name == "momentum" || name == "nesterov" ? 0.9 : 0;
    out.learning_rate = rate;
    return out;
}

inline std::vector<StalenessRule> rules_on_weights() {
    std::vector<StalenessRule> out(4);
    for (auto& rule : out) rule.kind = StalenessRule::Kind::delay_compensation;
    out[0].strength = 0.5;
    out[1].strength = out[2].strength = 0.5;
    out[1].adaptive = out[2].adaptive = true;
    out[2].mean_square_by_worker = false;
    out[3].kind = StalenessRule::Kind::gap_aware;
    out[3].decay = 0.999;
    return out;
}

/// Each with weight decay of one kind or the other.
inline std::vector<OptimizerSpec> all_optimizers() {
    std::vector<OptimizerSpec> out;
    for (const auto& [name, rate] :
         {std::pair("sgd", 0.1), {"momentum", 0.02}, {"nesterov", 0.02}, {"adagrad", 0.02}, {"adam", 0.005}}) {
        out.push_back(optimizer_named(name, rate));
        out.push_back(optimizer_named(name, rate));
        out.back().weight_decay = 1e-3;
        out.push_back(out.back());
        out.back().decoupled_weight_decay = true;
        out.back().cosine = OptimizerSpec::Cosine{2, 0.1};
        out.back().warm_up = {0.5, 0.2};
    }
    for (const auto& rule : rules_on_weights())
        for (const char* name : {"sgd", "momentum", "adam"}) {
            out.push_back(optimizer_named(name, 0.02));
            out.back().staleness_rule = rule;
        }
    out.push_back(optimizer_named("momentum", 0.02));
    out.back().decoupled_momentum = true;
    out.push_back(optimizer_named("nesterov", 0.02));
    out.back().decoupled_momentum = true;
    return out;
}

inline std::string label(const OptimizerSpec& optimizer) {
    const auto& rule = optimizer.staleness_rule;
    return optimizer.name + (optimizer.weight_decay > 0 ? " decay" : "") +
           (optimizer.decoupled_weight_decay ? " decoupled" : "") +
           (optimizer.decoupled_momentum ? " less momentum" : "") + " " + std::string(name(rule.kind)) +
           (rule.adaptive ? rule.mean_square_by_worker ? " by worker" : " by all" : "");
}

}  // namespace rubato::test
