// From where the time went to what made it go there.
#pragma once

#include "cli/compare/side.hpp"

#include <vector>

namespace rubato::cli {

/// Seconds of a worker per gradient of the run, by worker and cause; they add up to H (side.hpp).
using CauseTable = std::vector<Seconds>;

/// As spent; with `followed`, waits that the policy imposes stand with those whom they were for.
CauseTable cause_table(const Side& side, const Side& other, const Weights& weights, bool followed);

/// What the difference of two tables comes from.
struct Attribution {
    CauseTable predicted, measured;
    /// The part of the difference that is the cause's own: a part of the cluster was faster or slower by itself.
    CauseTable own;
    /// The difference that each answers for: its own, and what follows from it elsewhere. Adds up to the gap.
    CauseTable total;
    /// Standard error of the compute time of each worker, where that is not known to differ; else 0.
    std::vector<double> noise;
};

/// Much of a difference follows from another one: a slower worker lets others meet less on the network; a dearer update
/// makes workers ask at the same time, so that their weights share the link. So differences of single parts are looked
/// for first:
///
/// - compute of a worker, where its mean differs by more than 0.5 % and 4 standard errors;
/// - a network that is slower or faster by itself, by 5 % (speeds.hpp): of push moving and pull moving this share;
/// - the server, where an operation of it differs by 5 %: apply wait, up to the limit below.
///
/// Where there are some, all other differences are theirs, in the ratio of their size, but of each at most 2 lambda
/// times its size: what is more stays where it was spent. Where there are none, every cause answers for its difference.
Attribution attribute(const Side& predicted, const Side& measured, const Weights& weights);

}  // namespace rubato::cli
