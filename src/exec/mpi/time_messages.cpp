#include "exec/mpi/time_messages.hpp"

#include "exec/mpi/mail_end.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

namespace rubato::exec {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns when the peer has called it as well.
void meet(Fabric& fabric, int peer) {
    constexpr int meeting_tag = 1;
    char mine = 0, other = 0;
    fabric.send(peer, meeting_tag, &mine, sizeof mine, false);
    fabric.receive(peer, meeting_tag, &other, sizeof other);
    std::vector<Completion> done;
    while (done.size() < 2) fabric.poll(done);
}

}  // namespace

std::vector<std::pair<double, double>> time_messages(Fabric& fabric, int peer, const std::vector<double>& bytes,
                                                     double limit_s) {
    std::vector<std::pair<double, double>> times;
    const bool first = fabric.rank() == 0;
    for (const double size : bytes) {
        const auto count = std::max<std::int64_t>(1, std::llround(size / sizeof(float)));
        meet(fabric, peer);  // what is under way for the end before must not come to this one
        MailEnd end(fabric, peer, count);
        const auto begin = Clock::now();
        constexpr int warm_up = 3, least = 10, most = 2000;
        for (int i = 0;; ++i) {
            const auto sent = Clock::now();
            const double spent = std::chrono::duration<double>(sent - begin).count();
            const bool last = i >= most || (i >= least && spent > limit_s / static_cast<double>(bytes.size()));
            if (first) end.send(last);
            end.await_delivery();
            if (!first) end.send(false);
            const double there_and_back = std::chrono::duration<double>(Clock::now() - sent).count();
            if (first && i >= warm_up)
                times.emplace_back(static_cast<double>(count) * sizeof(float), there_and_back / 2);
            if (first ? last : end.last()) break;
        }
        end.await_taken();
    }
    return times;
}

}  // namespace rubato::exec
