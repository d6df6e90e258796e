// What follows from a scenario of a collective protocol alone, so that every rank and every driver knows it: how its
// model is cut into buckets, and which iteration is the last.
#pragma once

#include "core/collective/route.hpp"
#include "core/dealer.hpp"
#include "core/scenario.hpp"

#include <optional>
#include <vector>

namespace rubato {

/// Neighbouring layers whose gradients are reduced together.
struct Bucket {
    Range range;       ///< of the parameters
    double begin = 0;  ///< its backward pass begins after this part of a gradient's seconds, between 0 and 1,
    double end = 1;    ///< and its gradient is there after this one
    bool operator==(const Bucket&) const = default;
};

/// In the order of the backward pass, from the last layer to the first. Layers are fused until a bucket has
/// protocol.collective.bucket_bytes of a gradient message; a layer is never cut. Protocols that reduce whole gradients
/// have one bucket. parameters: elements of a gradient; 0: of timing-only runs without a model, where a range counts
/// bytes of a gradient message. Without times of layers (Scenario::layer_times) the forward pass takes a third of a
/// gradient, and layers in proportion to their parameters.
std::vector<Bucket> make_buckets(const Scenario& scenario, std::int64_t parameters);

/// Inbox slots of a channel of gradients. Sums that go on at once share a channel, in which the next message may be of
/// one whose turn comes later: there is room for all of them, two of each (core/collective/route.hpp), so that none
/// keeps another one waiting.
int gradient_slots(const ProtocolSpec& protocol);

/// How many gradients may be under way to their sums at once. Sums of the driver's library go by groups, one for each.
int sums_at_once(const CollectiveSpec& spec);

/// Bytes of an element in a gradient message: of cost.push_bytes, or, where that says nothing, of the gradient itself.
double bytes_of_element(const Scenario& scenario, std::int64_t parameters);

/// Messages of more bytes are long: what they take is more than the latency of a word that keeps their links free.
constexpr std::int64_t long_bytes = 65536;

/// The algorithm for a message of so many bytes.
AllreduceAlgorithm algorithm_for(const CollectiveSpec& spec, std::int64_t bytes);

/// What `worker` computes on in an iteration. All begin an epoch together, so that each of its samples is used once:
/// strided: slice b of the epoch goes to worker b mod lambda; sharded: the worker's own part; in the last iterations of
/// an epoch some may have an empty batch. random: as own_batch.
Batch batch_of(const DealerConfig& data, WorkerId worker, std::int64_t iteration);

/// Samples of all workers' batches in an iteration.
std::int64_t samples_of(const DealerConfig& data, std::int64_t iteration);
/// Workers that have a batch in an iteration.
int computing_in(const DealerConfig& data, std::int64_t iteration);

/// Iterations until the run has as many updates, gradients or samples as it is to have; none: it has no such end.
std::optional<std::int64_t> last_iteration(const DealerConfig& data, const StopSpec& stop);

}  // namespace rubato
