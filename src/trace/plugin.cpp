#include "trace/plugin.hpp"

#include "core/plugin.hpp"
#include "trace/load_module.hpp"

namespace rubato::trace {
namespace {

/// What a plugin's function of this name gives.
template <class Plugin>
const Plugin& plugin_in(const std::string& path, const char* function, const char* macro) {
    void* entry = load_file(path, function);
    if (entry == nullptr) throw ModuleError(path + " has no " + macro);
    const Plugin& plugin = *reinterpret_cast<const Plugin* (*)()>(entry)();
    if (plugin.version != plugin_version)
        throw ModuleError(path + " was compiled for another version of rubato: compile it again");
    return plugin;
}

[[noreturn]] void blame(const std::string& path, const std::string& what) {
    throw PluginError("plugin " + path + " " + what);
}

/// What the plugin's code throws names the plugin.
template <class Call>
auto asked(const std::string& path, const char* member, Call&& call) -> decltype(call()) {
    try {
        return call();
    } catch (const std::exception& error) {
        blame(path, std::string("throws in ") + member + ": " + error.what());
    } catch (...) {
        blame(path, std::string("throws in ") + member);
    }
}

/// The same for a constructor, which may refuse its constants.
template <class Call>
auto made(const std::string& path, Call&& call) -> decltype(call()) {
    try {
        return call();
    } catch (const std::invalid_argument&) {
        throw;
    } catch (const std::exception& error) {
        blame(path, std::string("throws in its constructor: ") + error.what());
    } catch (...) {
        blame(path, "throws in its constructor");
    }
}

/// The policy of a file, with what it says looked through: nothing that it orders may be impossible for any server.
class Guarded final : public ForeignPolicy {
public:
    Guarded(std::string path, int lambda, std::unique_ptr<ForeignPolicy> policy)
        : path_(std::move(path)), lambda_(lambda), policy_(std::move(policy)) {}
    std::unique_ptr<ForeignPolicy> clone() const override {
        return std::make_unique<Guarded>(path_, lambda_, ask("its copy", [this] { return policy_->clone(); }));
    }
    std::string_view name() const override { return policy_->name(); }
    PolicyTraits traits() const override {
        return ask("traits", [this] { return policy_->traits(); });
    }
    Decision on_arrival(const Arrival& arrival, Orders& orders) override {
        const Decision decision = ordered("on_arrival", orders, [&] { return policy_->on_arrival(arrival, orders); });
        if (decision.fire && decision.discard) blame(path_, "says both fire and discard in on_arrival");
        return decision;
    }
    void on_applied(Time now, Orders& orders) override {
        ordered("on_applied", orders, [&] { policy_->on_applied(now, orders); });
    }
    Ready on_ready(WorkerId worker) override {
        return ask("on_ready", [&] { return policy_->on_ready(worker); });
    }
    void on_idle(WorkerId worker, Orders& orders) override {
        ordered("on_idle", orders, [&] { policy_->on_idle(worker, orders); });
    }
    void on_round(int workers) override {
        ask("on_round", [&] { policy_->on_round(workers); });
    }
    void on_resume() override {
        ask("on_resume", [this] { policy_->on_resume(); });
    }
    void on_lost(WorkerId worker, Orders& orders) override {
        ordered("on_lost", orders, [&] { policy_->on_lost(worker, orders); });
    }
    void on_back(WorkerId worker) override {
        ask("on_back", [&] { policy_->on_back(worker); });
    }
    std::vector<Wait> waiting() const override {
        return ask("waiting", [this] { return policy_->waiting(); });
    }
    std::string state() const override {
        return ask("each", [this] { return policy_->state(); });
    }
    void restore(std::string_view state) override { policy_->restore(state); }

private:
    template <class Call>
    auto ask(const char* member, Call&& call) const -> decltype(call()) {
        return asked(path_, member, std::forward<Call>(call));
    }
    template <class Call>
    auto ordered(const char* member, const Orders& orders, Call&& call) const -> decltype(call()) {
        if constexpr (std::is_void_v<decltype(call())>) {
            ask(member, call);
            look(member, orders);
        } else {
            const auto answer = ask(member, call);
            look(member, orders);
            return answer;
        }
    }
    void look(const char* member, const Orders& orders) const {
        look(member, "releases", orders.release);
        look(member, "cancels", orders.cancel);
        if (orders.round && !traits().rounds)
            blame(path_, std::string("ends a round in ") + member + ", and its traits have none");
    }
    void look(const char* member, const char* what, const std::vector<WorkerId>& workers) const {
        for (const WorkerId worker : workers)
            if (worker < 0 || worker >= lambda_)
                blame(path_, std::string(what) + " worker " + std::to_string(worker) + " in " + member +
                                 ": workers are 0 to " + std::to_string(lambda_ - 1));
    }

    std::string path_;
    int lambda_;
    std::unique_ptr<ForeignPolicy> policy_;
};

}  // namespace

PolicyMaker load_policy(const std::string& path, const Constants& constants) {
    const auto& plugin = plugin_in<PolicyPlugin>(path, "rubato_policy", "RUBATO_POLICY");
    return [&plugin, constants, path](int lambda) -> std::unique_ptr<ForeignPolicy> {
        Constants given = constants;
        auto policy = made(path, [&] { return plugin.make(lambda, given); });
        given.require_all_known();
        return std::make_unique<Guarded>(path, lambda, std::move(policy));
    };
}

std::function<double(const RuleInfo&)> load_rule(const std::string& path, const Constants& constants) {
    const auto& plugin = plugin_in<RulePlugin>(path, "rubato_rule", "RUBATO_RULE");
    auto rule = made(path, [&] { return plugin.make(constants); });
    constants.require_all_known();
    return [path, rule](const RuleInfo& info) { return asked(path, "operator()", [&] { return rule(info); }); };
}

}  // namespace rubato::trace
