// What trees of servers promise, watched from outside.
#pragma once

#include "core/tree.hpp"
#include "support/simulate.hpp"

#include <map>
#include <utility>
#include <vector>

namespace rubato::test {

/// INV-A2: of the gradients that workers have pushed, those that are not at the root are in relays or on their way; and
/// what goes down: a version that the root has made, never an older one than before.
class TreeChecker {
public:
    explicit TreeChecker(const Scenario& scenario)
        : lambda_(scenario.lambda()),
          held_(1 + static_cast<std::size_t>(lambda_) + make_tree(scenario).relays().size()) {}
    void see(RoleId role, const Event& event, const Actions& actions) {
        if (const auto* delivered = std::get_if<Delivered>(&event)) {
            if (std::holds_alternative<Push>(delivered->message)) {
                if (delivered->from <= lambda_)
                    ++from_workers;
                else
                    --on_way_;
                if (role == 0)
                    ++at_root;
                else
                    ++buffered_;
            }
            if (const auto* weights = std::get_if<Weights>(&delivered->message)) {
                demand(weights->version <= version_, "weights of a version that was never made");
                auto& held = held_[static_cast<std::size_t>(role)];
                demand(held < weights->version, "weights that were there already");
                held = weights->version;
            }
        }
        if (role == 0 && std::holds_alternative<Applied>(event)) ++version_;
        if (const auto* taken = std::get_if<Taken>(&event)) unasked_.erase({role, taken->id});
        for (const auto& action : actions.list) {
            const auto* send = std::get_if<Send>(&action);
            if (send == nullptr) continue;
            const auto* weights = std::get_if<Weights>(&send->message);
            if (weights != nullptr && weights->worker < 0 && (role == 0 || role <= lambda_ || send->to > lambda_)) {
                for (const auto& [one, to] : unasked_)
                    demand(one.first != role || to != send->to, "two versions at once on their way to one receiver");
                unasked_.emplace(std::pair(role, send->id), send->to);
            }
            if (!std::holds_alternative<Push>(send->message) || role <= lambda_) continue;
            --buffered_;
            ++on_way_;
        }
        demand(from_workers == at_root + buffered_ + on_way_ && buffered_ >= 0 && on_way_ >= 0,
               "gradients got lost between workers and root");
    }
    void at_end() const { demand(buffered_ == 0 && on_way_ == 0, "gradients were left in the tree"); }
    std::int64_t from_workers = 0, at_root = 0;

private:
    int lambda_;
    std::vector<Version> held_;
    std::map<std::pair<RoleId, ActionId>, RoleId> unasked_;  ///< weights on their way, and to whom
    Version version_ = 0;
    std::int64_t buffered_ = 0, on_way_ = 0;
};

}  // namespace rubato::test
