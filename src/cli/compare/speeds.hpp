// How fast the parts of a run were by themselves, apart from how they got into each other's way.
#pragma once

#include "cli/compare/cycles.hpp"

#include <vector>

namespace rubato::cli {

/// Two views of the transfers of a worker. Sharing a link makes a transfer longer, but leaves both alone where the link
/// is the receiver's: the shortest had it for itself, and `alone_s` divides each instant by the transfers under way.
/// Where the sender's own link is the narrow one, the shortest is right and `alone_s` depends on what others do; where
/// no transfer is ever alone, the other way round. So a change is one of the network where both show it; but where
/// transfers took the same time whatever else was under way, it is plain that links are the senders' own, and the
/// shortest decides.
struct TransferSpeed {
    double shortest_s = 0;  ///< 5 % quantile
    double alone_s = 0;     ///< mean of the integral of dt / (transfers under way)
    /// How unlike transfers of a run are, and those integrals: quartiles' distance over median.
    double length_spread = 0, alone_spread = 0;
};

struct WorkerSpeed {
    bool known = false;
    double compute_s = 0;        ///< mean of its gradients
    double compute_error_s = 0;  ///< standard error of that mean
    TransferSpeed push, pull;    ///< pull: from when the weights may have been sent until they were there
};

/// In the steady window, by worker.
std::vector<WorkerSpeed> speeds_of(const RecordedRun& run);

/// measured / predicted: of the shortest, where links are the senders' own on both sides; else, where both views agree
/// in the direction, the one nearer to 1; else 1.
double speed_ratio(const TransferSpeed& predicted, const TransferSpeed& measured);

}  // namespace rubato::cli
