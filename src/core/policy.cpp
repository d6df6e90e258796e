#include "core/policy.hpp"

#include <stdexcept>

namespace rubato {

PolicyTraits traits(const Policy& policy) {
    return std::visit([](const auto& member) { return member.traits(); }, policy);
}

void on_round(Policy& policy, int workers) {
    std::visit([=](auto& member) { member.on_round(workers); }, policy);
}

Ready on_ready(Policy& policy, WorkerId worker) {
    return std::visit([=](auto& member) { return member.on_ready(worker); }, policy);
}

Decision on_arrival(Policy& policy, const Arrival& arrival) {
    return std::visit([&](auto& member) { return member.on_arrival(arrival); }, policy);
}

void on_applied(Policy& policy) {
    std::visit([](auto& member) { member.on_applied(); }, policy);
}

std::string_view name(const Policy& policy) {
    return std::visit([](const auto& member) { return member.name; }, policy);
}

Policy make_policy(const ProtocolSpec& protocol, int lambda) {
    if (protocol.name == Hardsync::name) return Hardsync{};
    if (protocol.name == NSoftsync::name) return NSoftsync{gradients_per_update(protocol, lambda)};
    if (protocol.name == Async::name) return Async{};
    throw std::invalid_argument("no such protocol: " + protocol.name);
}

}  // namespace rubato
