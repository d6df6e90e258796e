#include "sim/replay/same_schedule.hpp"

#include "sim/replay/recomputation.hpp"

#include <algorithm>

namespace rubato::sim {
namespace {

template <class A>
bool same(const A& a, const A& b) {
    return a == b;
}

bool same(const Fold& a, Fold b) {
    b.factor = a.factor;
    b.weights = a.weights;
    b.version = a.version;
    b.read_version = a.read_version;
    b.worker = a.worker;
    return a == b;
}

bool same(const Step& a, Step b) {
    b.learning_rate = a.learning_rate;
    b.momentum = a.momentum;
    return a == b;
}

bool same(const Part& a, Part b) {
    b.factor = a.factor;
    return a == b;
}

bool same(const Send& a, const Send& b) {
    return a.id == b.id && a.to == b.to && a.channel == b.channel && a.payload == b.payload &&
           same_message(a.message, b.message);
}

bool same(const Action& a, const Action& b) {
    return std::visit(
        [&](const auto& first) {
            const auto* second = std::get_if<std::remove_cvref_t<decltype(first)>>(&b);
            return second != nullptr && same(first, *second);
        },
        a);
}

template <class Item>
bool all_same(const std::vector<Item>& a, const std::vector<Item>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Item& one, const Item& other) { return same(one, other); });
}

bool for_the_rule(const Action& action) {
    return std::holds_alternative<Keep>(action) || std::holds_alternative<Forget>(action);
}

/// The same, but for what only the rule asks for.
bool same_lists(const std::vector<Action>& a, const std::vector<Action>& b) {
    auto one = a.begin(), other = b.begin();
    while (true) {
        one = std::find_if_not(one, a.end(), for_the_rule);
        other = std::find_if_not(other, b.end(), for_the_rule);
        if (one == a.end() || other == b.end()) return one == a.end() && other == b.end();
        if (!same(*one++, *other++)) return false;
    }
}

}  // namespace

bool same_schedule(const Actions& a, const Actions& b) {
    return same_lists(a.list, b.list) && all_same(a.steps, b.steps) && all_same(a.parts, b.parts) &&
           a.gradients.size() == b.gradients.size() && a.updates.size() == b.updates.size() &&
           a.evals.size() == b.evals.size() && a.workers.size() == b.workers.size();
}

void require_same_schedule(Time now, RoleId role, const Actions& recorded, const Actions& actions) {
    if (same_schedule(recorded, actions)) return;
    throw ScheduleChanged("at " + std::to_string(now) + " ns " + role_name(role) +
                          " does something else than recorded: this update rule makes a schedule of its own, which "
                          "only a run of its own can show");
}

}  // namespace rubato::sim
