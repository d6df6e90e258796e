// A cluster for fixtures: no network, no arithmetic, and no time but what the fixture tells. Messages travel at once,
// the apply lane takes no time, and a computation ends when the fixture says so; so does a worker that is to crash.
// What happens is told one line at a time.
#pragma once

#include "core/role.hpp"

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace rubato::test {

class ToyCluster {
public:
    ToyCluster(const Scenario& scenario, std::int64_t samples);

    /// Runs until nothing moves without a computation's end; returns the story so far and forgets it.
    std::string settle();
    /// Ends the computation of a worker with this loss.
    void compute(WorkerId worker, double loss);
    /// The worker is gone with what it computes. on_its_way: with a gradient that has just left it, too.
    void crash(WorkerId worker, bool on_its_way);
    void come_back(WorkerId worker);
    void fire_timer();
    /// The time from now on.
    void set_time(Time now) { now_ = now; }
    bool computing(WorkerId worker) const { return computing_.count(worker + 1) > 0; }
    bool finished() const { return finished_ + down_.size() == roles_.size(); }
    std::string waiting(RoleId role) const { return rubato::waiting(roles_[static_cast<std::size_t>(role)]); }
    /// References that nobody ended; 0 when all have finished.
    std::int64_t references() const;

private:
    struct Mail {
        RoleId to = 0;
        Event event;
    };
    void hand(const Mail& mail);
    void act(RoleId role, const Action& action, const Actions& actions);
    void send(RoleId role, const Send& send);
    std::string name_of(RoleId role) const { return role_name(role, lambda_); }
    void tell(const std::string& line) { story_ += line + "\n"; }
    BufferId allocate() { return references_[++buffers_] = 1, buffers_; }
    void release(BufferId buffer);

    std::vector<Role> roles_;
    int lambda_;
    std::deque<Mail> mail_;
    std::map<RoleId, Compute> computing_;
    std::set<RoleId> down_;
    std::map<BufferId, int> references_;
    BufferId buffers_ = 0;
    Time now_ = 0;
    std::vector<std::pair<RoleId, ActionId>> timers_;
    std::size_t finished_ = 0;
    std::string story_;
};

}  // namespace rubato::test
