// What a server is told of its run.
#pragma once

#include "core/shards.hpp"
#include "core/tree.hpp"

namespace rubato {

struct ServerConfig {
    int lambda = 1;
    std::int64_t samples = 1;     ///< N, of one epoch
    std::int64_t parameters = 0;  ///< elements of the weights that it owns,
    std::int64_t first = 0;       ///< from this one on
    int batch_size = 1;
    double n = 1;             ///< lambda / gradients per update, or the n of n-softsync: what staleness rules see
    OptimizerSpec optimizer;  ///< its rates and its momentum
    CommunicationSpec communication;
    bool overlaps = false;         ///< workers ask before they have pushed what they were dealt
    bool draw_themselves = false;  ///< and the dealer only keeps account of what they compute on
    StalenessRule rule;
    std::int64_t warm_samples = 0;  ///< applied under hardsync before the policy begins
    std::optional<std::int64_t> stop_updates, stop_gradients, stop_samples;
    std::optional<Time> stop_ns;
    std::optional<Target> target;
    bool learns = true;  ///< losses and evaluations mean something
    bool stop_on_divergence = true;
    std::optional<double> evaluate_every_epochs;
    bool evaluate_at_end = true;
    bool pause_to_evaluate = false;  ///< evaluations wait until nothing is in flight, and hold the workers
    CheckpointSpec checkpoint;
    Tree tree;               ///< of relays between it and the workers
    bool broadcast = false;  ///< which are given each new version unasked
    bool unasked = false;    ///< workers begin and go on without a word of it: weights come down a tree of workers, or
                             ///< leaves answer by themselves
    Shards shards;
    int shard = 0;            ///< which of them it is
    bool hands_over = false;  ///< shards: at the end the first one wants the whole model
    bool operator==(const ServerConfig&) const = default;
};

}  // namespace rubato
