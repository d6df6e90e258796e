// One end of an exchange of messages without roles, for measurements: what is delivered is let go of, and counted.
#pragma once

#include "exec/mpi/mail.hpp"

namespace rubato::exec {

/// Ranks bear the numbers of roles: rank 0 sends weights, another one gradients, all of `count` elements. Nothing of an
/// end before it may be under way any more when this one is made.
class MailEnd {
public:
    MailEnd(Fabric& fabric, int peer, std::int64_t count);
    ~MailEnd() { mail_.close(); }
    MailEnd(const MailEnd&) = delete;
    MailEnd& operator=(const MailEnd&) = delete;

    /// last: the peer is told so by last(), where rank 0 sends.
    void send(bool last = false);
    /// Returns when one message more has come.
    void await_delivery();
    /// Returns when all that was sent is taken.
    void await_taken();
    bool last() const { return last_; }

private:
    void turn();
    void came(const Event& event);

    RoleId mine_, peer_;
    std::int64_t count_;
    std::vector<std::int32_t> freed_;
    PostOffice office_;
    Mail mail_;
    BufferId own_;
    std::int64_t id_ = 0, delivered_ = 0, taken_ = 0, awaited_ = 0;
    bool last_ = false;
};

}  // namespace rubato::exec
