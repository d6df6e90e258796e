// One run of the local backend: a reactor thread for each role, a thread for each lane, one post office.
#pragma once

#include "exec/execution.hpp"
#include "exec/local.hpp"

#include <condition_variable>

namespace rubato::exec {

class LocalRun final : Execution {
public:
    explicit LocalRun(const RunInput& input);
    ~LocalRun() override;
    trace::DriverReport go();

private:
    struct Mailbox {
        std::mutex mutex;
        std::condition_variable wake;
        std::deque<Event> events;
        std::thread reactor;
    };

    void mail(RoleId role, const Event& event) override;
    void transmit(Seat& seat, const Send& action, Time sent_ns) override { office_.send(seat.id, action, sent_ns); }
    void later(Seat&, std::function<void()> what) override { what(); }
    bool others_finished() const override { return finished_ >= static_cast<int>(seats_.size()) - 1; }
    void gather_books(Time now, std::function<void(Gathered)> then) override;
    void wake_all() override;

    void reactor(Seat& seat);
    std::optional<Event> next_event(Seat& seat);
    void watch();
    void abandon_all();
    std::string waiting_text();
    Mailbox& mailbox(RoleId role) { return *mailboxes_[static_cast<std::size_t>(role)]; }

    std::vector<std::unique_ptr<Mailbox>> mailboxes_;
    std::atomic<int> finished_{0};
};

}  // namespace rubato::exec
