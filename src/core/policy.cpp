#include "core/policy.hpp"

#include <stdexcept>

namespace rubato {

PolicyTraits traits(const Policy& policy) {
    return std::visit([](const auto& member) { return member.traits(); }, policy);
}

Decision on_arrival(Policy& policy, const Arrival& arrival, Orders& orders) {
    return std::visit([&](auto& member) { return member.on_arrival(arrival, orders); }, policy);
}

void on_applied(Policy& policy, Time now, Orders& orders) {
    std::visit([&](auto& member) { member.on_applied(now, orders); }, policy);
}

Ready on_ready(Policy& policy, WorkerId worker) {
    return std::visit([=](auto& member) { return member.on_ready(worker); }, policy);
}

void on_idle(Policy& policy, WorkerId worker, Orders& orders) {
    std::visit([&](auto& member) { member.on_idle(worker, orders); }, policy);
}

void on_round(Policy& policy, int workers) {
    std::visit([=](auto& member) { member.on_round(workers); }, policy);
}

void on_resume(Policy& policy) {
    std::visit([](auto& member) { member.on_resume(); }, policy);
}

std::vector<Wait> waiting(const Policy& policy) {
    return std::visit([](const auto& member) { return member.waiting(); }, policy);
}

std::string_view name(const Policy& policy) {
    return std::visit([](const auto& member) { return member.name; }, policy);
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
    throw std::invalid_argument("no such protocol: " + protocol.name);
}

double rule_n(const ProtocolSpec& protocol, int lambda) {
    if (protocol.name == NSoftsync::name && protocol.gradients_per_update == 0) return protocol.n;
    return static_cast<double>(lambda) / traits(make_policy(protocol, lambda)).gradients;
}

}  // namespace rubato
