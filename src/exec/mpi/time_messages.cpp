#include "exec/mpi/time_messages.hpp"

#include "exec/mpi/mail.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

namespace rubato::exec {
namespace {

using Clock = std::chrono::steady_clock;

Time now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

/// Returns when the peer has called it as well.
void meet(Fabric& fabric, int peer) {
    constexpr int meeting_tag = 1;
    char mine = 0, other = 0;
    fabric.send(peer, meeting_tag, &mine, sizeof mine, false);
    fabric.receive(peer, meeting_tag, &other, sizeof other);
    std::vector<Completion> done;
    while (done.size() < 2) fabric.poll(done);
}

/// One end of an exchange, without a role of the engine: what is delivered is let go of. Ranks bear the numbers of
/// roles, the server's and one worker's.
class End {
public:
    End(Fabric& fabric, int peer, std::int64_t count)
        : mine_(fabric.rank()),
          peer_(peer),
          count_(count),
          office_(count, [](RoleId, const Event&) {}),
          mail_(
              fabric, office_, RankMap{1, fabric.size() - 1}, MailOptions{},
              [this](RoleId, const Event& event) { came(event); }, [](int, const Note&, std::string_view) {}),
          own_(office_.allocate()) {
        office_.when_freed([this](std::int32_t channel) { freed_.push_back(channel); });
        std::fill_n(office_.data(own_).data(), count, 1.0F);
    }
    ~End() { mail_.close(); }
    End(const End&) = delete;
    End& operator=(const End&) = delete;

    void send(bool last) {
        Send send;
        send.id = ++id_;
        send.to = peer_;
        send.channel = mine_ == 0 ? Channel::weights : Channel::gradient;
        if (mine_ == 0) {
            Weights weights;
            weights.version = last ? 1 : 0;
            send.message = weights;
        } else {
            send.message = Push{};
        }
        send.payload = {own_, 0, count_};
        mail_.send(mine_, send, now_ns());
    }
    void await_delivery() {
        while (delivered_ <= awaited_) turn();
        ++awaited_;
    }
    void await_taken() {
        while (taken_ < id_ || mail_.sending() > 0) turn();
    }
    bool last() const { return last_; }

private:
    void turn() {
        mail_.progress(now_ns());
        for (std::size_t i = 0; i < freed_.size(); ++i) mail_.slot_freed(freed_[i], now_ns());
        freed_.clear();
    }
    void came(const Event& event) {
        if (const auto* delivered = std::get_if<Delivered>(&event)) {
            ++delivered_;
            if (const auto* weights = std::get_if<Weights>(&delivered->message)) last_ = weights->version > 0;
            office_.release(delivered->payload.buffer, 0);
        } else {
            ++taken_;
        }
    }

    RoleId mine_, peer_;
    std::int64_t count_;
    std::vector<std::int32_t> freed_;
    PostOffice office_;
    Mail mail_;
    BufferId own_;
    std::int64_t id_ = 0, delivered_ = 0, taken_ = 0, awaited_ = 0;
    bool last_ = false;
};

}  // namespace

std::vector<std::pair<double, double>> time_messages(Fabric& fabric, int peer, const std::vector<double>& bytes,
                                                     double limit_s) {
    std::vector<std::pair<double, double>> times;
    const bool first = fabric.rank() == 0;
    for (const double size : bytes) {
        const auto count = std::max<std::int64_t>(1, std::llround(size / sizeof(float)));
        meet(fabric, peer);  // what is under way for the end before must not come to this one
        End end(fabric, peer, count);
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
