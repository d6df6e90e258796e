#include "sim/transport.hpp"

namespace rubato::sim {

Transport::Transport(Network& network, const std::vector<HostId>& host_of_role, int cap, OnStart on_start, void* driver)
    : network_(network),
      host_of_role_(host_of_role),
      cap_(cap),
      on_start_(on_start),
      driver_(driver),
      pairs_(host_of_role.size()) {
    const auto hosts = static_cast<std::size_t>(*std::max_element(host_of_role.begin(), host_of_role.end())) + 1;
    ports_.resize(hosts);
}

Transport::Pair& Transport::pair_of(Pairs& pairs, RoleId lower) {
    if (pairs.first.lower < 0) return pairs.first = new_pair(lower);
    auto found = std::lower_bound(pairs.others.begin(), pairs.others.end(), lower,
                                  [](const Pair& pair, RoleId role) { return pair.lower < role; });
    if (found == pairs.others.end() || found->lower != lower) found = pairs.others.insert(found, new_pair(lower));
    return *found;
}

Transport::Pair Transport::new_pair(RoleId lower) {
    const auto first = static_cast<std::int32_t>(channels_.size());
    channels_.resize(channels_.size() + 6);
    for (const int direction : {0, 3})
        channels_[static_cast<std::size_t>(first + direction + static_cast<int>(Channel::weights))].slots = 2;
    return {lower, first};
}

}  // namespace rubato::sim
