// A policy of one's own: a file that is compiled by itself and loaded when the scenario is read
// (docs/write-a-protocol.md). Here it is a value like the others; what it decides is asked of the file.
#pragma once

#include "core/policies/decision.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rubato {

/// What a plugin makes of its class: the members of a policy as virtual functions, and its fields as one text.
class ForeignPolicy {
public:
    ForeignPolicy() = default;
    virtual ~ForeignPolicy() = default;
    virtual std::unique_ptr<ForeignPolicy> clone() const = 0;
    virtual std::string_view name() const = 0;
    virtual PolicyTraits traits() const = 0;
    virtual Decision on_arrival(const Arrival& arrival, Orders& orders) = 0;
    virtual void on_applied(Time now, Orders& orders) = 0;
    virtual Ready on_ready(WorkerId worker) = 0;
    virtual void on_idle(WorkerId worker, Orders& orders) = 0;
    virtual void on_round(int workers) = 0;
    virtual void on_resume() = 0;
    virtual void on_lost(WorkerId worker, Orders& orders) = 0;
    virtual void on_back(WorkerId worker) = 0;
    virtual std::vector<Wait> waiting() const = 0;
    virtual std::string state() const = 0;
    /// Throws std::invalid_argument for a text that is no state of this policy.
    virtual void restore(std::string_view state) = 0;

protected:
    ForeignPolicy(const ForeignPolicy&) = default;
    ForeignPolicy& operator=(const ForeignPolicy&) = default;
};

class PluginPolicy : public PolicyDefaults {
public:
    static constexpr std::string_view name = "plugin", kind = name;
    PluginPolicy() = default;
    explicit PluginPolicy(std::unique_ptr<ForeignPolicy> policy) : policy_(std::move(policy)) {}
    PluginPolicy(const PluginPolicy& other)
        : policy_(other.policy_ ? other.policy_->clone() : nullptr), saved_(other.saved_) {}
    PluginPolicy(PluginPolicy&&) noexcept = default;
    PluginPolicy& operator=(const PluginPolicy& other) { return *this = PluginPolicy(other); }
    PluginPolicy& operator=(PluginPolicy&&) noexcept = default;
    ~PluginPolicy() = default;

    /// What a checkpoint holds is a text until the plugin is there that understands it.
    void restore(const PluginPolicy& saved) { theirs().restore(saved.state()); }
    std::string state() const { return policy_ ? policy_->state() : saved_; }
    std::string_view own_name() const { return policy_ ? policy_->name() : name; }

    PolicyTraits traits() const { return policy_ ? policy_->traits() : PolicyTraits{}; }
    Decision on_arrival(const Arrival& arrival, Orders& orders) { return theirs().on_arrival(arrival, orders); }
    void on_applied(Time now, Orders& orders) { theirs().on_applied(now, orders); }
    Ready on_ready(WorkerId worker) { return theirs().on_ready(worker); }
    void on_idle(WorkerId worker, Orders& orders) { theirs().on_idle(worker, orders); }
    void on_round(int workers) { theirs().on_round(workers); }
    void on_resume() { theirs().on_resume(); }
    void on_lost(WorkerId worker, Orders& orders) { theirs().on_lost(worker, orders); }
    void on_back(WorkerId worker) { theirs().on_back(worker); }
    std::vector<Wait> waiting() const { return policy_ ? policy_->waiting() : std::vector<Wait>(); }
    bool operator==(const PluginPolicy& other) const { return state() == other.state(); }
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        if constexpr (std::is_const_v<Self>)
            field("state", self.state());
        else
            field("state", self.saved_);
    }

private:
    ForeignPolicy& theirs() {
        if (!policy_) throw std::logic_error("a policy of one's own was asked before it was loaded");
        return *policy_;
    }

    std::unique_ptr<ForeignPolicy> policy_;
    std::string saved_;
};

}  // namespace rubato
