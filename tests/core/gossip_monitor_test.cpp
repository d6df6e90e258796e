// What the monitor of gossip makes of messages that come in another order than they were sent in: those of workers,
// and those of different channels, may overtake each other.
#include "core/averaging/gossip_monitor.hpp"

#include <doctest/doctest.h>
#include <cmath>

using namespace rubato;

namespace {

class Gossips {
public:
    explicit Gossips(int lambda) : monitor_(config(lambda)) { see(Start{0}); }
    template <class Event>
    void see(const Event& event) {
        actions.clear();
        monitor_.step(++now_, event, actions);
    }
    template <class Message>
    void hear(WorkerId worker, const Message& message, const Slice& payload = {}) {
        const auto channel = payload.buffer == no_buffer ? Channel::control : Channel::gradient;
        see(Delivered{worker + 1, channel, message, payload, now_, now_});
    }
    /// A step of the worker's.
    void push(WorkerId worker, std::int64_t seq) {
        Push push;
        push.worker_seq = seq;
        push.batch.count = 1;
        hear(worker, push);
    }
    void hand_in(WorkerId worker, int group) {
        Exchanged said;
        said.steps = 1;
        said.group = group;
        hear(worker, said);
    }
    void share(int workers, int group) { hear(0, Share{0, workers, 1, 1, group, 0}, Slice{9, 0, 4}); }
    template <class Action>
    int count() const {
        int found = 0;
        for (const auto& action : actions.list) found += std::holds_alternative<Action>(action);
        return found;
    }
    Actions actions;

private:
    static AverageConfig config(int lambda) {
        AverageConfig config;
        config.run.lambda = lambda;
        config.run.samples = config.data.samples = 100;
        config.run.parameters = 4;
        config.run.evaluate_every_epochs = 0.01 * lambda;
        config.data.lambda = lambda;
        config.data.sampling = Sampling::strided;
        config.data.own = true;
        return config;
    }
    GossipMonitor monitor_;
    Time now_ = 0;
};

}  // namespace

TEST_CASE("gossip: a mean whose sum is there is made when a worker crashes whose last word on it is still under way") {
    Gossips it(3);
    for (const WorkerId worker : {0, 1, 2}) it.push(worker, 0);
    CHECK(it.count<Send>() == 3);  // the third step makes an evaluation due
    it.hand_in(0, 0);
    it.share(3, 0);
    it.see(PeerDown{2, 1});
    CHECK(it.count<Mix>() == 0);
    it.hand_in(2, 0);
    CHECK(it.count<Mix>() == 1);
}

TEST_CASE("gossip: a mean whose sum is not there begins anew among those who are left") {
    Gossips it(3);
    for (const WorkerId worker : {0, 1, 2}) it.push(worker, 0);
    it.hand_in(0, 0);
    it.hand_in(2, 0);
    it.see(PeerDown{2, 1});
    CHECK(it.actions.gradients.size() == 1);  // dropped: its step is in no mean
    it.share(3, 0);                           // of before: let go
    CHECK(it.count<Release>() == 1);
    it.hand_in(0, 1);
    it.share(2, 1);
    CHECK(it.count<Mix>() == 0);
    it.hand_in(2, 0);  // of before
    CHECK(it.count<Mix>() == 0);
    it.hand_in(2, 1);
    CHECK(it.count<Mix>() == 1);
}
