#include "core/policy.hpp"

#include <stdexcept>

namespace rubato {
namespace {

/// std::visit that compilers turn into a jump, also with more alternatives than they do by themselves: what most
/// policies do at a question is a few instructions, less than a call through a table of functions.
template <std::size_t index = 0, class AnyPolicy, class Visitor>
auto visit(AnyPolicy& policy, Visitor&& visitor) {
    if constexpr (index + 1 < std::variant_size_v<Policy>)
        if (policy.index() != index) return visit<index + 1>(policy, visitor);
    return visitor(*std::get_if<index>(&policy));
}

}  // namespace

PolicyTraits traits(const Policy& policy) {
    return visit(policy, [](const auto& member) { return member.traits(); });
}

Decision on_arrival(Policy& policy, const Arrival& arrival, Orders& orders) {
    return visit(policy, [&](auto& member) { return member.on_arrival(arrival, orders); });
}

void on_applied(Policy& policy, Time now, Orders& orders) {
    visit(policy, [&](auto& member) { member.on_applied(now, orders); });
}

Ready on_ready(Policy& policy, WorkerId worker) {
    return visit(policy, [=](auto& member) { return member.on_ready(worker); });
}

void on_idle(Policy& policy, WorkerId worker, Orders& orders) {
    visit(policy, [&](auto& member) { member.on_idle(worker, orders); });
}

void on_lost(Policy& policy, WorkerId worker, Orders& orders) {
    visit(policy, [&](auto& member) { member.on_lost(worker, orders); });
}

void on_back(Policy& policy, WorkerId worker) {
    visit(policy, [=](auto& member) { member.on_back(worker); });
}

void on_round(Policy& policy, int workers) {
    visit(policy, [=](auto& member) { member.on_round(workers); });
}

void on_resume(Policy& policy) {
    visit(policy, [](auto& member) { member.on_resume(); });
}

std::vector<Wait> waiting(const Policy& policy) {
    return visit(policy, [](const auto& member) { return member.waiting(); });
}

std::string_view name(const Policy& policy) {
    if (const auto* plugin = std::get_if<PluginPolicy>(&policy)) return plugin->own_name();
    return visit(policy, [](const auto& member) { return member.name; });
}

Policy make_policy(const ProtocolSpec& protocol, int lambda) {
    const int count = protocol.gradients_per_update;
    if (protocol.name == Hardsync::name) return Hardsync(lambda);
    if (protocol.name == NSoftsync::name) return NSoftsync(gradients_per_update(protocol, lambda));
    if (protocol.name == Async::name) return Async();
    if (protocol.name == Bsp::name) return Bsp(lambda, protocol.per_gradient);
    if (protocol.name == Asp::name) return Asp();
    if (protocol.name == Ssp::name) return Ssp(lambda, protocol.bound);
    if (protocol.name == Dssp::name) return Dssp(lambda, protocol.dssp);
    if (protocol.name == BoundedDelay::name) return BoundedDelay(lambda, protocol.k, protocol.single_dependency);
    if (protocol.name == BackupWorkers::name) return BackupWorkers(lambda, protocol.backups);
    if (protocol.name == Rennala::name) return Rennala(count > 0 ? count : lambda);
    if (protocol.name == Ringmaster::name) return Ringmaster(lambda, protocol.delay_threshold, protocol.cancel);
    if (protocol.name == Admission::name)
        return Admission(lambda, protocol.admit, protocol.bound.value_or(0), count > 0 ? count : 1);
    if (protocol.name == PluginPolicy::name)
        return protocol.plugin ? PluginPolicy(protocol.plugin(lambda)) : PluginPolicy();
    throw std::invalid_argument("no such protocol: " + protocol.name);
}

PolicyTraits traits(const ProtocolSpec& protocol, int lambda) {
    if (protocol.reduces()) {
        PolicyTraits replicas;
        replicas.word = Word::broadcast;
        replicas.rounds = true;
        replicas.batch_order = true;
        replicas.gradients = lambda;
        return replicas;
    }
    if (!protocol.averages()) return traits(make_policy(protocol, lambda));
    PolicyTraits averages;
    averages.gradients = protocol.averages_in_parts() ? lambda : protocol.averaging.tau;
    if (!protocol.averages_in_rounds()) return averages;
    averages.word = Word::broadcast;
    averages.batch_order = true;
    averages.gradients = protocol.averaging.gradients ? lambda : lambda * protocol.averaging.tau;
    if (protocol.streams()) averages.gradients /= protocol.averaging.stream.fragments;
    return averages;
}

Policy restored(const Policy& saved, const Policy& fresh) {
    const auto* state = std::get_if<PluginPolicy>(&saved);
    if (state == nullptr) return saved;
    auto policy = std::get<PluginPolicy>(fresh);
    policy.restore(*state);
    return policy;
}

double rule_n(const ProtocolSpec& protocol, int lambda) {
    if (protocol.name == NSoftsync::name && protocol.gradients_per_update == 0) return protocol.n;
    return static_cast<double>(lambda) / traits(protocol, lambda).gradients;
}

}  // namespace rubato
