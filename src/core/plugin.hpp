// What a file with a policy or a staleness rule of one's own includes, all of it inline, so that the file links
// nothing:
//
//     g++ -std=c++20 -O2 -fPIC -shared -I rubato/src quorum.cpp -o quorum.so
//
// docs/write-a-protocol.md and docs/write-a-rule.md go through one each, step by step.
#pragma once

#include "core/constants.hpp"
#include "core/field_text.hpp"
#include "core/policies/plugin.hpp"
#include "core/staleness_rule.hpp"

#include <functional>

namespace rubato {

/// Raised with every change of what plugins see; sizes tell what was forgotten.
inline constexpr std::int64_t plugin_version =
    ((((2 * 1000 + sizeof(PolicyTraits)) * 1000 + sizeof(Arrival)) * 1000 + sizeof(Orders)) * 1000) + sizeof(RuleInfo);

/// What a loaded file gives: one function, by the name rubato_policy or rubato_rule, returns a pointer to one of these.
struct PolicyPlugin {
    std::int64_t version;
    std::unique_ptr<ForeignPolicy> (*make)(int lambda, const Constants& constants);
};
struct RulePlugin {
    std::int64_t version;
    std::function<double(const RuleInfo&)> (*make)(const Constants& constants);
};

/// A class with the members that core/policy.hpp lists, and a constructor from (int lambda, const Constants&).
template <class Own>
class ForeignPolicyOf final : public ForeignPolicy {
public:
    explicit ForeignPolicyOf(Own own) : own_(std::move(own)) {}
    std::unique_ptr<ForeignPolicy> clone() const override { return std::make_unique<ForeignPolicyOf>(own_); }
    std::string_view name() const override { return Own::name; }
    PolicyTraits traits() const override { return own_.traits(); }
    Decision on_arrival(const Arrival& arrival, Orders& orders) override { return own_.on_arrival(arrival, orders); }
    void on_applied(Time now, Orders& orders) override { own_.on_applied(now, orders); }
    Ready on_ready(WorkerId worker) override { return own_.on_ready(worker); }
    void on_idle(WorkerId worker, Orders& orders) override { own_.on_idle(worker, orders); }
    void on_round(int workers) override { own_.on_round(workers); }
    void on_resume() override { own_.on_resume(); }
    void on_lost(WorkerId worker, Orders& orders) override { own_.on_lost(worker, orders); }
    void on_back(WorkerId worker) override { own_.on_back(worker); }
    std::vector<Wait> waiting() const override { return own_.waiting(); }
    std::string state() const override {
        FieldWriter writer;
        Own::each(own_, writer);
        return writer.text();
    }
    void restore(std::string_view state) override {
        FieldReader reader(state);
        Own::each(own_, reader);
        reader.end();
    }

private:
    Own own_;
};

}  // namespace rubato

/// Makes the class `Own` the policy of this file.
#define RUBATO_POLICY(Own)                                                                          \
    extern "C" __attribute__((visibility("default"))) const rubato::PolicyPlugin* rubato_policy() { \
        static const rubato::PolicyPlugin plugin{                                                   \
            rubato::plugin_version, [](int lambda, const rubato::Constants& constants) {            \
                return std::unique_ptr<rubato::ForeignPolicy>(                                      \
                    std::make_unique<rubato::ForeignPolicyOf<Own>>(Own(lambda, constants)));        \
            }};                                                                                     \
        return &plugin;                                                                             \
    }

/// Makes the class `Own`, with a constructor from const Constants& and double operator()(const RuleInfo&) const, the
/// staleness rule of this file: a factor on each gradient.
#define RUBATO_RULE(Own)                                                                        \
    extern "C" __attribute__((visibility("default"))) const rubato::RulePlugin* rubato_rule() { \
        static const rubato::RulePlugin plugin{                                                 \
            rubato::plugin_version, [](const rubato::Constants& constants) {                    \
                return std::function<double(const rubato::RuleInfo&)>(Own(constants));          \
            }};                                                                                 \
        return &plugin;                                                                         \
    }
