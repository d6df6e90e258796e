// Which roles a protocol is played by.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace rubato {

/// A server with a policy, which is pushed gradients; averaging of models in rounds of all workers, of fragments in
/// turn, of shards in phases, with one worker at a time, from worker to worker; or replicas, without a server.
enum class Family : std::uint8_t { policy, rounds, fragments, phases, alone, gossip, replicas };

/// By the canonical name of a protocol. All that are in no list are policies.
constexpr Family family_of(std::string_view name) {
    constexpr std::pair<std::string_view, Family> families[] = {{"sparknet", Family::rounds},
                                                                {"local-sgd", Family::rounds},
                                                                {"diloco", Family::rounds},
                                                                {"streaming-diloco", Family::fragments},
                                                                {"mpca", Family::phases},
                                                                {"easgd", Family::alone},
                                                                {"async-diloco", Family::alone},
                                                                {"gosgd", Family::gossip},
                                                                {"allreduce", Family::replicas},
                                                                {"no-comm", Family::replicas},
                                                                {"layer-wise", Family::replicas},
                                                                {"delayed", Family::replicas},
                                                                {"adaptive-delay", Family::replicas}};
    for (const auto& [known, family] : families)
        if (known == name) return family;
    return Family::policy;
}
constexpr bool averages(Family family) {
    return family != Family::policy && family != Family::replicas;
}

}  // namespace rubato
