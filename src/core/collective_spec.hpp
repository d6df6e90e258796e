// What a scenario says of protocols without a server. A part of core/scenario.hpp.
#pragma once

#include <cstdint>

namespace rubato {

/// How an allreduce is made of messages: core/collective/route.hpp. native: not by messages of the roles, but by the
/// library of the driver (core/sum_all.hpp).
enum class AllreduceAlgorithm : std::uint8_t { ordered, ring, recursive_doubling, rabenseifner, tree, native };

/// What a worker without a server does with its gradients.
enum class CollectiveMode : std::uint8_t { sync, no_comm, layer_wise, delayed };
/// When buckets of layers are applied: when all are there; in the order of the backward pass; as they come.
enum class ApplyOrder : std::uint8_t { wait_all, backprop, completion };

/// Protocols without a server, whose workers add their gradients up among themselves.
struct CollectiveSpec {
    CollectiveMode mode = CollectiveMode::sync;
    AllreduceAlgorithm algorithm = AllreduceAlgorithm::ring;
    AllreduceAlgorithm small = AllreduceAlgorithm::ring;  ///< for messages
    std::int64_t small_bytes = -1;                        ///< of so many bytes at most
    ApplyOrder order = ApplyOrder::wait_all;              ///< layer-wise
    std::int64_t bucket_bytes = 0;                        ///< layer-wise: layers are fused up to that
    int delay = 1;                                        ///< delayed
    bool adaptive = false;                                ///< the delay is chosen anew
    int max_delay = 3;                                    ///< within that,
    int adapt_every = 20;                                 ///< after so many iterations
    bool native() const { return algorithm == AllreduceAlgorithm::native; }
    bool operator==(const CollectiveSpec&) const = default;
};

}  // namespace rubato
