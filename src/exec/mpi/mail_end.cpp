#include "exec/mpi/mail_end.hpp"

#include <algorithm>
#include <chrono>

namespace rubato::exec {
namespace {

Time now_ns() {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

MailEnd::MailEnd(Fabric& fabric, int peer, std::int64_t count)
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

void MailEnd::send(bool last) {
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

void MailEnd::await_delivery() {
    while (delivered_ <= awaited_) turn();
    ++awaited_;
}

void MailEnd::await_taken() {
    while (taken_ < id_ || mail_.sending() > 0) turn();
}

void MailEnd::turn() {
    mail_.progress(now_ns());
    for (std::size_t i = 0; i < freed_.size(); ++i) mail_.slot_freed(freed_[i], now_ns());
    freed_.clear();
}

void MailEnd::came(const Event& event) {
    if (const auto* delivered = std::get_if<Delivered>(&event)) {
        ++delivered_;
        if (const auto* weights = std::get_if<Weights>(&delivered->message)) last_ = weights->version > 0;
        office_.release(delivered->payload.buffer, 0);
    } else {
        ++taken_;
    }
}

}  // namespace rubato::exec
