// What a message would take alone, from messages that shared the server's link.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rubato::cli {

/// Equal messages over one link that those under way share evenly, after a latency in which they take no share.
struct SharedLink {
    double latency_s = 0;
    int transfers_max = 0;  ///< at once; the rest waits and does not move; 0: no limit
};

/// Mean seconds that a message moves where each takes `alone_s` alone (latency included). starts: s, ascending.
double mean_moving(const std::vector<double>& starts, const SharedLink& link, double alone_s);

/// The alone_s that makes mean_moving as long as it was.
double alone_seconds(const std::vector<double>& starts, const SharedLink& link, double mean_s);

/// A message on its way in one direction of the server's link.
struct Transfer {
    double begin_s = 0, end_s = 0;
    double bytes = 0;
    std::int32_t host = 0;  ///< of the worker: messages of one host share its link, too
};

/// What messages would have taken alone. After the latency those of a host share its link evenly, and all of them the
/// server's link, which bears `capacity` times as much as a host's; what one cannot use the others get (max-min).
struct Unshared {
    std::vector<double> seconds;  ///< [transfers]
    /// The capacity that makes times of equal messages most alike; 1: the server's link is full with one message.
    double capacity = 1;
    bool saturated = false;  ///< whether the server's link was full with several hosts at some time
};
/// latency_s: 0 where it is not known. transfers: at least one.
Unshared unshared(std::vector<Transfer> transfers, double latency_s);

}  // namespace rubato::cli
