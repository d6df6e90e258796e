#include "learn/pool.hpp"
#include "learn/buffers.hpp"
#include "learn/cores.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace rubato;
using namespace rubato::learn;

namespace {

/// Gradient: the worker's number in every element. Worker 99 cannot do it.
struct Numbers : Task {
    std::int64_t parameters() const override { return 4; }
    std::int64_t samples() const override { return 1; }
    std::unique_ptr<Workspace> workspace() const override { return std::make_unique<Workspace>(); }
    void initialize(std::span<float>) const override {}
    double gradient(std::span<const float>, WorkerId worker, std::int64_t, const Batch&, std::span<float> gradient,
                    Workspace&) const override {
        if (worker == 99) throw std::runtime_error("worker 99");
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        for (float& it : gradient) it = static_cast<float>(worker);
        return worker;
    }
    Metrics evaluate(std::span<const float>, Parallel&) const override { return {}; }
    std::vector<std::int32_t> sample_ids(WorkerId, const Batch&) const override { return {}; }
};

/// Jobs that are due in turn; memory is given when they are opened, and counted.
struct Bench {
    Numbers task;
    BufferPool buffers{4};
    std::vector<WorkerId> opened;
    Pool pool;
    std::vector<GradientJob> jobs;

    Bench(int threads, int count)
        : pool(task, threads,
               [this](GradientJob& job) {
                   job.gradient = buffers.data(job.gradient_buffer);
                   opened.push_back(job.worker);
               }),
          jobs(static_cast<std::size_t>(count)) {
        for (int i = count; i-- > 0;) {
            auto& job = jobs[static_cast<std::size_t>(i)];
            job.worker = i;
            job.due = i;
            job.gradient_buffer = buffers.allocate();
            pool.submit(job);
        }
    }
};

/// Jobs are held up until so much is released, so that it is known which thread has which.
struct Held : Numbers {
    std::atomic<int> begun{0}, release{0};
    double gradient(std::span<const float>, WorkerId worker, std::int64_t waits_for, const Batch&, std::span<float>,
                    Workspace&) const override {
        ++const_cast<Held*>(this)->begun;
        while (release < waits_for) std::this_thread::yield();
        return worker;
    }
};

}  // namespace

TEST_CASE("pool: every job is computed once, whatever the number of threads, and few are open at a time") {
    for (const int threads : {1, 2, 4}) {
        CAPTURE(threads);
        Bench it(threads, 40);
        std::size_t waited = 0;
        for (auto& job : it.jobs) {
            it.pool.wait(job);
            ++waited;
            CHECK(job.loss == job.worker);
            for (const float element : job.gradient) CHECK(element == static_cast<float>(job.worker));
            CHECK(it.opened.size() <= waited + 4 * static_cast<std::size_t>(threads));
            it.buffers.release(job.gradient_buffer);
        }
        CHECK(it.opened.size() == 40);
        CHECK(std::set(it.opened.begin(), it.opened.end()).size() == 40);
        CHECK(it.buffers.outstanding() == 0);
        if (threads == 1) CHECK(std::ranges::is_sorted(it.opened));
    }
}

TEST_CASE("pool: jobs that are waited for again, or given up, leave room for others") {
    Bench it(2, 40);
    for (std::size_t i = 0; i < 20; ++i) {
        it.pool.wait(it.jobs[i]);
        it.pool.wait(it.jobs[i]);
        if (i % 2 == 0) it.pool.cancel(it.jobs[39 - i / 2]);
    }
    const auto opened = it.opened.size();
    CHECK(opened > 20);
    for (std::size_t i = 20; i < opened; ++i) it.pool.cancel(it.jobs[i]);  // those that are open: the next ones are
    CHECK(it.opened.size() > opened);
}

TEST_CASE("pool: run() may be called where a job is opened") {
    Numbers task;
    std::atomic<int> pieces{0};
    Pool* pool = nullptr;
    std::vector<GradientJob> jobs(20);
    std::vector<std::vector<float>> gradients(jobs.size(), std::vector<float>(4));
    Pool all(task, 3, [&](GradientJob& job) {
        job.gradient = gradients[static_cast<std::size_t>(job.worker)];
        pool->run(5, [&](int) { ++pieces; });
    });
    pool = &all;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        jobs[i].worker = static_cast<WorkerId>(i);
        jobs[i].due = static_cast<Time>((i * 7) % jobs.size());
        all.submit(jobs[i]);
    }
    for (auto& job : jobs) {
        all.wait(job);
        CHECK(job.loss == job.worker);
    }
    CHECK(pieces == 5 * static_cast<int>(jobs.size()));
}

TEST_CASE("pool: a cancelled job is not waited for, and one that fails says so to whoever waits") {
    for (const int threads : {1, 3}) {
        CAPTURE(threads);
        Bench it(threads, 20);
        for (std::size_t i = 0; i < 20; i += 2) it.pool.cancel(it.jobs[i]);
        for (std::size_t i = 1; i < 20; i += 2) {
            it.pool.wait(it.jobs[i]);
            CHECK(it.jobs[i].loss == static_cast<double>(i));
        }
        auto& job = it.jobs[0];
        job.worker = 99;
        it.pool.submit(job);
        CHECK_THROWS_WITH(it.pool.wait(job), "worker 99");
        job.worker = 3;
        it.pool.submit(job);
        it.pool.wait(job);
        CHECK(job.loss == 3);
    }
}

TEST_CASE("pool: run() does each piece once while gradients wait, and hands on what a piece throws") {
    for (const int threads : {1, 3}) {
        CAPTURE(threads);
        Bench it(threads, 8);
        std::atomic<int> sum = 0;
        it.pool.run(100, [&](int piece) { sum += piece; });
        CHECK(sum == 4950);
        std::atomic<int> done = 0;
        CHECK_THROWS_WITH(it.pool.run(10,
                                      [&](int piece) {
                                          ++done;
                                          if (piece == 4) throw std::runtime_error("piece 4");
                                      }),
                          "piece 4");
        CHECK(done == 10);
        for (auto& job : it.jobs) it.pool.wait(job);
    }
}

TEST_CASE("pool: a job is begun by the thread that computes it, in the order in which they came") {
    Held task;
    std::mutex mutex;
    std::vector<WorkerId> begun;
    std::thread::id by[4];
    Pool pool(task, 2, {}, [&](const GradientJob& job) {
        const std::lock_guard lock(mutex);
        begun.push_back(job.worker);
        by[job.worker] = std::this_thread::get_id();
    });
    GradientJob jobs[4];
    const auto submit = [&](WorkerId worker, std::int64_t waits_for) {
        jobs[worker].worker = worker;
        jobs[worker].worker_seq = waits_for;
        pool.submit(jobs[worker]);
    };
    const auto owner = std::this_thread::get_id();
    submit(0, 1);
    while (task.begun < 1) std::this_thread::yield();  // the other thread has enough to do
    for (const WorkerId worker : {2, 1, 3}) submit(worker, 0);
    pool.wait(jobs[1]);  // not the first one
    CHECK(begun == std::vector<WorkerId>{0, 1});
    task.release = 1;
    for (GradientJob& job : jobs) pool.wait(job);
    CHECK(begun.size() == 4);
    CHECK(by[1] == owner);
    CHECK(by[0] != owner);

    begun.clear();
    task.begun = 0;
    task.release = 0;
    submit(0, 1);
    while (task.begun < 1) std::this_thread::yield();
    for (const WorkerId worker : {2, 1, 3}) submit(worker, 0);
    std::thread release([&] {
        while (task.begun < 4) std::this_thread::yield();
        task.release = 1;
    });
    pool.wait(jobs[0]);  // meanwhile the owner takes the others, the first one first
    release.join();
    CHECK(begun == std::vector<WorkerId>{0, 2, 1, 3});
    for (GradientJob& job : jobs) pool.wait(job);
}

TEST_CASE("pool: as many threads as the process may use cores, where none are named") {
    Numbers task;
    CHECK(Pool(task, 0).threads() == usable_cores());
    CHECK(Pool(task, 3).threads() == 3);
}
