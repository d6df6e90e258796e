// Sums that a library takes for all ranks, with one in memory: what comes of them, and whole runs on them.
#include "exec/mpi/ranks.hpp"
#include "memory_fabric.hpp"
#include "support/simulate.hpp"

#include "exec/mpi/mail.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <thread>

using namespace rubato;
using namespace rubato::exec;
using namespace rubato::test;

namespace {

/// A rank whose roles are nobody; what would be told to them is kept.
struct Summing {
    MemoryFabric fabric;
    PostOffice office;
    std::vector<std::pair<RoleId, Summed>> summed;
    Mail mail;

    Summing(MemoryNet& net, int rank, std::int64_t elements, const MailOptions& options)
        : fabric(net, rank),
          office(elements, [](RoleId, const Event&) {}),
          mail(
              fabric, office, RankMap{1, 3, 0, false, true}, options,
              [this](RoleId role, const Event& event) { summed.emplace_back(role, std::get<Summed>(event)); },
              [](int, const Note&, std::string_view) {}) {}
    BufferId ask(const SumAll& what, float value) {
        SumAll action = what;
        action.sum = office.allocate();
        for (float& each : office.data(action.sum)) each = value;
        mail.sum(fabric.rank() + 1, action);
        return action.sum;
    }
};

/// A fabric in memory for threads, each of which has a rank of its own.
class SharedFabric final : public Fabric {
    template <class F>
    auto locked(F&& what) {
        std::lock_guard lock(mutex_);
        return what();
    }

public:
    SharedFabric(MemoryNet& net, int rank, std::mutex& mutex) : inner_(net, rank), mutex_(mutex) {}
    int rank() const override { return inner_.rank(); }
    int size() const override { return inner_.size(); }
    int ranks_on_host() const override { return inner_.size(); }
    std::string library() const override { return inner_.library(); }
    Ticket send(int to, int tag, const void* data, std::size_t bytes, bool synchronous) override {
        return locked([&] { return inner_.send(to, tag, data, bytes, synchronous); });
    }
    Ticket receive(int from, int tag, void* data, std::size_t bytes) override {
        return locked([&] { return inner_.receive(from, tag, data, bytes); });
    }
    void poll(std::vector<Completion>& done) override {
        locked([&] { inner_.poll(done); });
    }
    void cancel(Ticket ticket) override {
        locked([&] { inner_.cancel(ticket); });
    }
    Ticket sum(int group, float* data, std::size_t count) override {
        ++sums;
        return locked([&] { return inner_.sum(group, data, count); });
    }
    Ticket largest(int group, std::int32_t* number) override {
        return locked([&] { return inner_.largest(group, number); });
    }
    void open_groups(int groups) override {
        locked([&] { inner_.open_groups(groups); });
    }
    void broadcast(void*, std::size_t) override {}
    void barrier() override {}
    [[noreturn]] void abort(int status) override { inner_.abort(status); }
    int sums = 0;

private:
    MemoryFabric inner_;
    std::mutex& mutex_;
};

Scenario replicas(CollectiveMode mode, AllreduceAlgorithm algorithm) {
    const char* const names[] = {"allreduce", "no-comm", "layer-wise", "delayed"};
    Scenario scenario = learning_scenario(names[static_cast<int>(mode)], 3, 5, "mlp", 160);
    scenario.model.hidden = {9, 6};
    scenario.data.sampling = Sampling::strided;
    scenario.stop = {};
    scenario.stop.updates = 40;
    scenario.evaluate.every_epochs = 1;
    scenario.stall_timeout_s = 60;
    scenario.protocol.collective.mode = mode;
    scenario.protocol.collective.delay = 2;
    scenario.protocol.collective.algorithm = scenario.protocol.collective.small = algorithm;
    int inputs = 16;
    for (const int width : {9, 6, 3}) scenario.layers.push_back((std::exchange(inputs, width) + 1) * width);
    return scenario;
}

using Losses = std::map<std::pair<WorkerId, std::int64_t>, double>;

/// On ranks that are threads.
Losses run_in_memory(const Scenario& scenario, const learn::Task& task, Ledger& ledger, int& sums) {
    MemoryNet net(3);
    std::mutex mutex, ledger_mutex;
    std::vector<std::unique_ptr<SharedFabric>> fabrics;
    for (int rank = 0; rank < 3; ++rank) fabrics.push_back(std::make_unique<SharedFabric>(net, rank, mutex));
    std::vector<std::thread> threads;
    std::vector<RankResult> results(3);
    for (int rank = 0; rank < 3; ++rank)
        threads.emplace_back([&, rank] {
            trace::RunInput input;
            input.scenario = &scenario;
            input.task = &task;
            input.samples = task.samples();
            input.parameters = task.parameters();
            input.hosts = {"a", "a", "a"};
            if (rank == 0)
                input.observer = [&](Time, RoleId, const Event&, const Actions& actions) {
                    std::lock_guard lock(ledger_mutex);
                    ledger.add(actions);
                };
            results[static_cast<std::size_t>(rank)] = run_ranks(input, *fabrics[static_cast<std::size_t>(rank)]);
        });
    for (auto& thread : threads) thread.join();
    for (const auto& result : results) CHECK_FALSE(result.abandoned);
    CHECK(results.front().report.status == Status::finished);
    sums = fabrics.front()->sums;
    Losses losses;
    for (const auto& row : ledger.gradients) losses[{row.worker, row.worker_seq}] = row.loss;
    return losses;
}

}  // namespace

TEST_CASE("sums: each has what all ranks gave, in its elements alone, and the largest wish") {
    for (const std::size_t chunk_bytes : {std::size_t{16}, std::size_t{1} << 30}) {
        MemoryNet net(3);
        MailOptions options;
        options.chunk_bytes = chunk_bytes;
        options.flow_bytes = 8;
        std::vector<std::unique_ptr<Summing>> ranks;
        for (int rank = 0; rank < 3; ++rank) ranks.push_back(std::make_unique<Summing>(net, rank, 20, options));
        for (auto& it : ranks) it->fabric.open_groups(2);
        std::vector<BufferId> first, second;
        const auto turn = [&] {
            for (auto& it : ranks) it->mail.progress(0);
        };
        // The last rank joins in later, and in the other order of the two groups.
        for (int rank = 0; rank < 2; ++rank) {
            first.push_back(ranks[static_cast<std::size_t>(rank)]->ask({7, 0, 0, no_buffer, 3, 10, rank}, 1));
            second.push_back(ranks[static_cast<std::size_t>(rank)]->ask({8, 1, 1, no_buffer, 0, 20, 0}, 2));
        }
        turn();
        for (auto& it : ranks) {
            CHECK(it->summed.empty());
            CHECK_FALSE(it->mail.flowing());
        }
        second.push_back(ranks[2]->ask({5, 1, 1, no_buffer, 0, 20, 0}, 3));
        turn();
        turn();
        for (auto& it : ranks) {
            REQUIRE(it->summed.size() == 1);
            CHECK(it->summed.front().second.wish == 0);
        }
        CHECK(ranks[0]->summed.front().second == Summed{8, second[0], 0});
        CHECK(ranks[2]->summed.front().second == Summed{5, second[2], 0});
        first.push_back(ranks[2]->ask({6, 0, 0, no_buffer, 3, 10, 9}, 4));
        turn();
        turn();
        for (int rank = 0; rank < 3; ++rank) {
            auto& it = *ranks[static_cast<std::size_t>(rank)];
            REQUIRE(it.summed.size() == 2);
            CHECK(it.summed.back().first == rank + 1);
            CHECK(it.summed.back().second.wish == 9);
            CHECK_FALSE(it.mail.flowing());
            const float own = rank == 2 ? 4 : 1;
            const auto sum = it.office.data(it.summed.back().second.sum);
            for (std::size_t i = 0; i < sum.size(); ++i) CHECK(sum[i] == (i < 3 || i >= 13 ? own : 6.0F));
            for (const float each : it.office.data(it.summed.front().second.sum)) CHECK(each == 7.0F);
            it.office.release(first[static_cast<std::size_t>(rank)], 0);
            it.office.release(second[static_cast<std::size_t>(rank)], 0);
            it.mail.close();
            CHECK(it.office.outstanding() == 0);
        }
    }
}

TEST_CASE("sums: runs on ranks have the losses of ordered sums, whatever they do beside them") {
    for (const auto mode : {CollectiveMode::sync, CollectiveMode::layer_wise, CollectiveMode::delayed}) {
        CAPTURE(static_cast<int>(mode));
        const Scenario native = replicas(mode, AllreduceAlgorithm::native);
        const Scenario ordered = replicas(mode, AllreduceAlgorithm::ordered);
        const auto task = learn::make_task(native);
        Ledger ledger, expected;
        int sums = 0, none = 0;
        const Losses mine = run_in_memory(native, *task, ledger, sums);
        const Losses other = run_in_memory(ordered, *task, expected, none);
        CHECK(none == 0);
        CHECK(sums == (mode == CollectiveMode::layer_wise ? 120 : 40));
        CHECK(ledger.updates.size() == 40);
        REQUIRE(mine.size() == other.size());
        CHECK(mine.size() > 3 * 36);  // an epoch's last iteration has too few samples for all
        for (const auto& [key, loss] : mine) CHECK(std::abs(loss - other.at(key)) < 1e-5 * other.at(key));
        for (const auto& row : ledger.gradients) CHECK(row.outcome == Outcome::applied);
    }
}
