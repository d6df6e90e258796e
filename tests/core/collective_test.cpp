// Allreduces as routes, on arrays: everybody has the sum, by as many messages as the algorithm is said to need, and
// nothing is changed that somebody may still read.
#include "core/collective/delay_choice.hpp"
#include "core/collective/plan.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>

using namespace rubato;

namespace {

constexpr AllreduceAlgorithm algorithms[] = {AllreduceAlgorithm::ordered, AllreduceAlgorithm::ring,
                                             AllreduceAlgorithm::recursive_doubling, AllreduceAlgorithm::rabenseifner,
                                             AllreduceAlgorithm::tree};
using Array = std::shared_ptr<std::vector<float>>;

/// A message reads what it is about when it is taken in, as late as can be: so whatever is changed too early shows.
struct Message {
    Array array;
    Range what;
};

struct Rank {
    Route route;
    Array own, sum;
    std::size_t outs = 0, ins = 0;
    bool done() const { return outs == route.outs.size() && ins == route.ins.size(); }
};

class Machine {
public:
    Machine(AllreduceAlgorithm algorithm, int size, std::int64_t count, std::uint64_t order, bool paced = false)
        : order_(order), ranks_(static_cast<std::size_t>(size)) {
        for (int r = 0; r < size; ++r) {
            Rank& it = rank(r);
            it.route = make_route(algorithm, r, size, {2, count}, paced);
            it.own = std::make_shared<std::vector<float>>(static_cast<std::size_t>(count) + 5);
            for (std::size_t i = 0; i < it.own->size(); ++i)
                (*it.own)[i] = std::sin(static_cast<float>(r * 97 + static_cast<int>(i) * 31 + 1));
            if (!it.route.begins_empty) it.sum = std::make_shared<std::vector<float>>(*it.own);
            if (it.route.begins_empty) it.sum = std::make_shared<std::vector<float>>(it.own->size(), 1e9f);
            empty_.push_back(it.route.begins_empty);
        }
    }
    /// Ranks take their turns in an order of the seed's. What may be sent is, before anything else is taken in.
    void run() {
        for (int idle = 0; idle < 4 * size();) {
            order_ = order_ * 6364136223846793005u + 1442695040888963407u;
            const int r = static_cast<int>((order_ >> 33) % static_cast<std::uint64_t>(size()));
            const bool moved = send_one(r) || take_one(r);
            idle = moved ? 0 : idle + 1;
            if (!moved) {
                bool any = false;
                for (int other = 0; other < size(); ++other) any = send_one(other) || take_one(other) || any;
                if (!any) break;
            }
        }
    }
    int size() const { return static_cast<int>(ranks_.size()); }
    Rank& rank(int r) { return ranks_[static_cast<std::size_t>(r)]; }
    std::int64_t messages = 0, elements = 0;

private:
    bool send_one(int r) {
        Rank& it = rank(r);
        if (it.outs == it.route.outs.size() || it.route.outs[it.outs].after > it.ins) return false;
        const Route::Out& out = it.route.outs[it.outs++];
        channels_[{r, out.to}].push_back({out.own ? it.own : it.sum, out.what});
        ++messages;
        elements += out.what.count;
        return true;
    }
    bool take_one(int r) {
        Rank& it = rank(r);
        if (it.ins == it.route.ins.size()) return false;
        const Route::In& in = it.route.ins[it.ins];
        Message message{it.own, in.what};
        if (in.from != r) {
            auto& channel = channels_[{in.from, r}];
            if (channel.empty()) return false;
            message = channel.front();
            channel.pop_front();
        }
        REQUIRE(message.what == in.what);
        if (in.work == Route::Work::renew) it.sum = std::make_shared<std::vector<float>>(*it.sum);
        for (auto i = static_cast<std::size_t>(in.what.first); i < static_cast<std::size_t>(in.what.end()); ++i) {
            float& mine = (*it.sum)[i];
            const float theirs = (*message.array)[i];
            mine = in.work == Route::Work::place || empty_[static_cast<std::size_t>(r)] ? theirs : mine + theirs;
        }
        empty_[static_cast<std::size_t>(r)] = false;
        ++it.ins;
        return true;
    }

    std::uint64_t order_;
    std::vector<Rank> ranks_;
    std::vector<bool> empty_;
    std::map<std::pair<int, int>, std::deque<Message>> channels_;
};

}  // namespace

TEST_CASE("allreduce: all ranks end with the sum, and with the same bits, whatever comes first") {
    for (const AllreduceAlgorithm algorithm : algorithms)
        for (int size = 1; size <= 9; ++size)
            for (const std::int64_t elements : {0, 1, 3, 8, 29})
                for (std::uint64_t order = 1; order <= 6; ++order) {
                    CAPTURE(static_cast<int>(algorithm));
                    CAPTURE(size);
                    CAPTURE(elements);
                    Machine machine(algorithm, size, elements, order, order % 2 == 0);
                    machine.run();
                    for (int r = 0; r < size; ++r) {
                        REQUIRE(machine.rank(r).done());
                        for (std::int64_t i = 2; i < 2 + elements; ++i) {
                            double sum = 0;
                            for (int other = 0; other < size; ++other)
                                sum += static_cast<double>((*machine.rank(other).own)[static_cast<std::size_t>(i)]);
                            const auto at = static_cast<std::size_t>(i);
                            REQUIRE(std::abs((*machine.rank(r).sum)[at] - sum) < 1e-5);
                            REQUIRE((*machine.rank(r).sum)[at] == (*machine.rank(0).sum)[at]);
                        }
                    }
                }
}

TEST_CASE("allreduce: ordered sums each element in the order of the ranks, whatever it is a part of") {
    for (int size = 2; size <= 7; ++size)
        for (const std::int64_t elements : {1, 5, 23}) {
            Machine machine(AllreduceAlgorithm::ordered, size, elements, 3);
            machine.run();
            for (std::int64_t i = 2; i < 2 + elements; ++i) {
                const auto at = static_cast<std::size_t>(i);
                float sum = (*machine.rank(0).own)[at];
                for (int other = 1; other < size; ++other) sum += (*machine.rank(other).own)[at];
                for (int r = 0; r < size; ++r) REQUIRE((*machine.rank(r).sum)[at] == sum);
            }
        }
}

TEST_CASE("allreduce: messages and elements are as many as the textbook says") {
    const std::int64_t elements = 840;  // divisible by all sizes
    for (const int size : {2, 4, 8}) {
        CAPTURE(size);
        const std::int64_t n = size, log = size == 2 ? 1 : size == 4 ? 2 : 3;
        const auto sent = [&](AllreduceAlgorithm algorithm) {
            Machine machine(algorithm, size, elements, 1);
            machine.run();
            return std::pair(machine.messages, machine.elements);
        };
        CHECK(sent(AllreduceAlgorithm::ring) == std::pair(n * 2 * (n - 1), n * 2 * (n - 1) * (elements / n)));
        CHECK(sent(AllreduceAlgorithm::ordered) == std::pair(n * 2 * (n - 1), n * 2 * (n - 1) * (elements / n)));
        CHECK(sent(AllreduceAlgorithm::recursive_doubling) == std::pair(n * log, n * log * elements));
        CHECK(sent(AllreduceAlgorithm::rabenseifner) == std::pair(n * 2 * log, n * 2 * (n - 1) * (elements / n)));
        CHECK(sent(AllreduceAlgorithm::tree) == std::pair(2 * (n - 1), 2 * (n - 1) * elements));
    }
}

TEST_CASE("collective: all workers begin an epoch together, and use each sample once") {
    for (const Sampling sampling : {Sampling::strided, Sampling::sharded})
        for (const int lambda : {1, 2, 3, 5, 8})
            for (const std::int64_t samples : {1, 7, 24, 100}) {
                DealerConfig data;
                data.sampling = sampling;
                data.samples = samples;
                data.batch_size = 4;
                data.lambda = lambda;
                std::int64_t taken = 0, iteration = 0;
                std::map<std::pair<int, std::int64_t>, int> times;
                while (taken < 3 * samples) {
                    for (WorkerId worker = 0; worker < lambda; ++worker) {
                        const Batch batch = batch_of(data, worker, iteration);
                        CHECK(batch.count <= 4);
                        if (batch.count > 0) CHECK(batch.epoch == taken / samples);
                        std::int64_t before = 0;
                        for (WorkerId w = 0; w < worker && sampling == Sampling::sharded; ++w)
                            before += shard_samples(samples, lambda, w);
                        for (int i = 0; i < batch.count; ++i) ++times[{batch.epoch, before + batch.first + i}];
                    }
                    taken += samples_of(data, iteration++);
                }
                CHECK(static_cast<std::int64_t>(times.size()) == 3 * samples);
                for (const auto& [sample, count] : times) CHECK(count == 1);
                StopSpec stop;
                stop.epochs = 3;
                CHECK(last_iteration(data, stop) == iteration);
                stop.updates = 2;
                CHECK(last_iteration(data, stop) == std::min<std::int64_t>(2, iteration));
                stop = {};
                for (const std::int64_t gradients : {1, 2, 5, 37, 100}) {
                    std::int64_t computed = 0, last = 0;
                    while (computed < gradients) computed += computing_in(data, last++);
                    stop.gradients = gradients;
                    CHECK(last_iteration(data, stop) == last);
                }
                // However far it is, at once.
                stop = {};
                stop.epochs = 1;
                const std::int64_t an_epoch = last_iteration(data, stop).value();
                stop.epochs = 1e9;
                CHECK(last_iteration(data, stop) == 1'000'000'000 * an_epoch);
            }
}

TEST_CASE("buckets: layers from the last to the first, fused up to a size, with their parts of the time") {
    Scenario scenario;
    scenario.protocol.name = "layer-wise";
    scenario.protocol.collective.mode = CollectiveMode::layer_wise;
    scenario.layers = {10, 30, 5, 5};
    scenario.layer_times = {{1, 2}, {2, 4}, {0.5, 1}, {0.5, 1}};
    scenario.cost.push_bytes = 200;
    auto buckets = make_buckets(scenario, 50);
    REQUIRE(buckets.size() == 4);
    CHECK(buckets[0].range == Range{45, 5});
    CHECK(buckets[3].range == Range{0, 10});
    CHECK(buckets[0].begin == doctest::Approx(4.0 / 12));
    CHECK(buckets[0].end == doctest::Approx(5.0 / 12));
    CHECK(buckets[2].end == doctest::Approx(10.0 / 12));
    CHECK(buckets[3].end == 1);
    scenario.protocol.collective.bucket_bytes = 40;  // of 4 an element: 10 elements
    buckets = make_buckets(scenario, 50);
    REQUIRE(buckets.size() == 3);
    CHECK(buckets[0].range == Range{40, 10});
    CHECK(buckets[0].end == doctest::Approx(6.0 / 12));
    scenario.protocol.name = "allreduce";
    scenario.protocol.collective.mode = CollectiveMode::sync;
    CHECK(make_buckets(scenario, 50) == std::vector<Bucket>{{{0, 50}, 0, 1}});
}

TEST_CASE("delay: grows while there is waiting, and is the smallest of those that are as fast") {
    // An iteration takes 10, and half of what communication takes more than the delay hides.
    const auto settle = [](double communication, int most) {
        DelayChoice choice(most, 5);
        int delay = 0;
        for (int proposal = 0; proposal < 8; ++proposal) {
            const double waits = std::max(0.0, communication - 10.0 * choice.delay());
            for (int i = 0; i < 5; ++i)
                choice.note(static_cast<Time>(1e6 * (10 + waits)), static_cast<Time>(1e6 * waits));
            choice.take(delay = choice.propose());
        }
        return delay;
    };
    CHECK(settle(0, 3) == 0);
    CHECK(settle(8, 3) == 1);
    CHECK(settle(15, 3) == 2);
    CHECK(settle(80, 3) == 3);
    // Where links are full a larger delay hides no more.
    DelayChoice choice(4, 5);
    for (int proposal = 0; proposal < 8; ++proposal) {
        const double took = choice.delay() == 0 ? 30 : 20;
        for (int i = 0; i < 5; ++i) choice.note(static_cast<Time>(1e6 * took), static_cast<Time>(1e6 * (took - 10)));
        choice.take(choice.propose());
    }
    CHECK(choice.delay() == 1);
}

TEST_CASE("delay: follows what communication takes, down as well as up, and trying costs little") {
    constexpr int workers = 3, most = 5;
    std::vector<DelayChoice> all(workers, DelayChoice(most, 5));
    double spent = 0;
    // Workers differ in what they measure, and all take the largest proposal.
    const auto decide = [&](double communication) {
        std::int32_t agreed = 0;
        for (int worker = 0; worker < workers; ++worker) {
            DelayChoice& it = all[static_cast<std::size_t>(worker)];
            const double waits = std::max(0.0, communication - 10.0 * it.delay());
            for (int i = 0; i < 5; ++i)
                it.note(static_cast<Time>(1e6 * (10 + 0.02 * worker + waits)), static_cast<Time>(1e6 * waits));
            spent += worker == 0 ? 10 + waits : 0;
            agreed = std::max(agreed, it.propose());
        }
        for (DelayChoice& it : all) it.take(agreed);
        return agreed;
    };
    const auto settle = [&](double communication, int decisions) {
        int delay = 0;
        spent = 0;
        for (int i = 0; i < decisions; ++i) delay = decide(communication);
        return delay;
    };
    CHECK(settle(35, 12) == 4);
    CHECK(settle(8, 60) == 1);
    CHECK(settle(0, 60) == 0);
    CHECK(settle(25, 60) == 3);
    // A delay of 2 would take half as long again.
    settle(25, 2000);
    CHECK(spent < 1.01 * 10 * 2000);
    CHECK(spent > 10 * 2000);  // it has looked
    CHECK(settle(8, 1000) == 1);
}
