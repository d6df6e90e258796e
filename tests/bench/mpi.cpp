// Messages of the mpi backend against bare calls of the library, between two ranks, in one run:
//     mpirun -n 2 bench_mpi
//
// Prints a JSON object a figure with its target. A push and a pull of one size, in turn, by MPI_Send and MPI_Recv and
// by the driver's mail, interleaved; then pushes under a computation that takes longer.
#include "exec/lane.hpp"
#include "exec/mpi/mail_end.hpp"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

extern "C" rubato::exec::Fabric* rubato_open_mpi();

using namespace rubato;
using namespace rubato::exec;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Seconds of a push and a pull.
double bare_pair(int rank, std::vector<float>& out, std::vector<float>& in) {
    const auto bytes = static_cast<int>(out.size() * sizeof(float));
    const auto begin = Clock::now();
    if (rank == 1) MPI_Send(out.data(), bytes, MPI_BYTE, 0, 99, MPI_COMM_WORLD);
    MPI_Recv(in.data(), bytes, MPI_BYTE, 1 - rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) MPI_Send(out.data(), bytes, MPI_BYTE, 1, 99, MPI_COMM_WORLD);
    return seconds_since(begin);
}

double mail_pair(int rank, MailEnd& end) {
    const auto begin = Clock::now();
    if (rank == 1) end.send();
    end.await_delivery();
    if (rank == 0) end.send();
    return seconds_since(begin);
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

void report(const char* what, std::size_t bytes, double value, const char* target, double bare_s, double own_s) {
    fmt::print(
        "{{\"figure\": \"{}\", \"bytes\": {}, \"value\": {:.3f}, \"target\": \"{}\", \"bare_us\": {:.2f}, "
        "\"driver_us\": {:.2f}}}\n",
        what, bytes, value, target, bare_s * 1e6, own_s * 1e6);
}

void compare(Fabric& fabric, std::size_t bytes, int repeats) {
    const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
    std::vector<float> out(bytes / sizeof(float), 1), in(out.size());
    std::vector<double> bare, own;
    {
        MailEnd end(fabric, 1 - fabric.rank(), count);
        for (int round = 0; round < 10; ++round) {
            // In blocks, so that each finds its caches as it left them.
            for (int i = 0; i < repeats; ++i) {
                const double s = bare_pair(fabric.rank(), out, in);
                if (i > repeats / 4) bare.push_back(s);
            }
            MPI_Barrier(MPI_COMM_WORLD);
            for (int i = 0; i < repeats; ++i) {
                const double s = mail_pair(fabric.rank(), end);
                if (i > repeats / 4) own.push_back(s);
            }
            end.await_taken();
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    // Nothing may come for what is gone.
    MPI_Barrier(MPI_COMM_WORLD);
    if (fabric.rank() != 1) return;
    const double bare_s = median(bare), own_s = median(own);
    if (bytes <= 4096)
        report("time of a message, driver over bare", bytes, own_s / bare_s, "<= 2", bare_s / 2, own_s / 2);
    else
        report("goodput of push and pull, driver over bare", bytes, bare_s / own_s, ">= 0.9", bare_s / 2, own_s / 2);
}

/// Work on a thread of its own, waited for as a reactor waits for its lanes.
class Beside {
public:
    template <class Work>
    void run(const Work& work) {
        std::atomic<bool> done = false;
        lane_.push([&] {
            work();
            done = true;
        });
        while (!done) {
        }
    }

private:
    Lane lane_;
};

/// Bare messages as runs send them: another core has just computed what goes out, and reads what has come in; two
/// buffers take turns on each side. Seconds of a message, from before its MPI_Send until after its MPI_Recv: ranks of
/// one host have one clock.
void bare_between(Fabric& fabric, std::size_t bytes, int repeats) {
    const int rank = fabric.rank();
    const std::size_t count = bytes / sizeof(float);
    std::vector<float> out[2] = {std::vector<float>(count, 1), std::vector<float>(count, 1)}, in[2] = {out[0], out[1]};
    Beside lane;
    std::vector<double> seconds;
    float sink = 0;
    const auto send = [&](int turn) {
        auto& buffer = out[turn % 2];
        lane.run([&] { std::fill(buffer.begin(), buffer.end(), sink + static_cast<float>(turn)); });
        const auto now = Clock::now().time_since_epoch().count();
        std::memcpy(buffer.data(), &now, sizeof now);
        MPI_Send(buffer.data(), static_cast<int>(bytes), MPI_BYTE, 1 - rank, 98, MPI_COMM_WORLD);
    };
    for (int turn = 0; turn < repeats; ++turn) {
        if (rank == 1) send(turn);
        auto& buffer = in[turn % 2];
        MPI_Recv(buffer.data(), static_cast<int>(bytes), MPI_BYTE, 1 - rank, 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        Clock::rep sent = 0;
        std::memcpy(&sent, buffer.data(), sizeof sent);
        if (turn > repeats / 4)
            seconds.push_back(
                std::chrono::duration<double>(Clock::now().time_since_epoch() - Clock::duration(sent)).count());
        lane.run([&] { sink = std::accumulate(buffer.begin() + 2, buffer.end(), 0.0F) * 1e-20F; });
        if (rank == 0) send(turn);
    }
    double push = median(seconds);
    if (rank == 0) MPI_Send(&push, 1, MPI_DOUBLE, 1, 97, MPI_COMM_WORLD);
    if (rank != 1) return;
    const double pull = push;
    MPI_Recv(&push, 1, MPI_DOUBLE, 0, 97, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    fmt::print(
        "{{\"name\": \"bare message of what another core has computed, {} bytes\", \"value\": {:.1f}, \"target\": "
        "\"\", "
        "\"detail\": \"us, with two buffers on each side\", \"bytes\": {}, \"between_us\": {:.2f}}}\n",
        bytes, (push + pull) / 2 * 1e6, bytes, (push + pull) / 2 * 1e6);
}

/// Pushes go out while a lane computes: how much of their time is hidden?
void hide(Fabric& fabric, std::size_t bytes) {
    const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
    MailEnd end(fabric, 1 - fabric.rank(), count);
    const auto push = [&] {
        if (fabric.rank() == 1) {
            end.send();
            end.await_taken();
        } else {
            end.await_delivery();
        }
    };
    const auto spin = [](double seconds) {
        const auto begin = Clock::now();
        volatile double sum = 0;
        while (seconds_since(begin) < seconds)
            for (int i = 0; i < 1000; ++i) sum = sum + std::sqrt(static_cast<double>(i));
    };
    std::vector<double> alone, both, computing;
    for (int i = 0; i < 20; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        auto begin = Clock::now();
        push();
        alone.push_back(seconds_since(begin));
    }
    const double communication = median(alone);
    double computation = 2 * communication;
    MPI_Bcast(&computation, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    for (int i = 0; i < 20; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        auto begin = Clock::now();
        std::thread lane([&] { spin(computation); });
        lane.join();
        computing.push_back(seconds_since(begin));
        MPI_Barrier(MPI_COMM_WORLD);
        begin = Clock::now();
        std::thread beside([&] { spin(computation); });
        push();
        beside.join();
        both.push_back(seconds_since(begin));
    }
    if (fabric.rank() != 1) return;
    const double exposed = std::max(0.0, median(both) - median(computing));
    report("communication hidden under computation", bytes, 1 - exposed / communication, ">= 0.95", communication,
           median(both));
}

}  // namespace

int main() {
    const std::unique_ptr<Fabric> fabric(rubato_open_mpi());
    if (fabric->size() != 2) {
        if (fabric->rank() == 0) fmt::print(stderr, "expected two ranks: mpirun -n 2 bench_mpi\n");
        return 2;
    }
    compare(*fabric, 4096, 2000);
    compare(*fabric, std::size_t{1} << 20, 200);
    compare(*fabric, 100'000'000, 8);
    bare_between(*fabric, std::size_t{1} << 20, 800);
    bare_between(*fabric, 100'000'000, 24);
    if (std::thread::hardware_concurrency() >= 4)
        hide(*fabric, 100'000'000);
    else if (fabric->rank() == 0)
        fmt::print(
            "{{\"figure\": \"communication hidden under computation\", \"value\": null, \"target\": \">= 0.95\", "
            "\"skipped\": \"needs 4 cores\"}}\n");
}
