// What a policy is asked and what it answers.
#pragma once

#include "core/types.hpp"

namespace rubato {

/// What the server has to arrange for a policy.
struct PolicyTraits {
    /// Batches are dealt to all workers at once and the new weights are broadcast after each update; otherwise each
    /// worker asks for itself.
    bool barrier = false;
    /// Gradients are held back and summed in the order of their batches; otherwise they are folded as they arrive.
    bool batch_order = false;
    bool operator==(const PolicyTraits&) const = default;
};

/// A gradient that has arrived.
struct Arrival {
    WorkerId worker = 0;
    Version read_version = 0;
    std::int32_t samples = 0;
};

enum class Ready : std::uint8_t { start, hold };

/// fire: the gradients taken in so far, this one included, make an update now.
struct Decision {
    bool fire = false;
};

}  // namespace rubato
