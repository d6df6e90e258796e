// Messages of the mpi backend against bare calls of the library, between two ranks, in one run:
//     mpirun -n 2 bench_mpi
//
// Prints a JSON object a figure with its target. A push and a pull of one size, in turn, by MPI_Send and MPI_Recv and
// by the driver's mail, interleaved; then pushes under a computation that takes longer.
#include "exec/mpi/mail.hpp"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
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

Time now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

/// Rank 0 is the server, rank 1 a worker, without roles: what is delivered is let go of, and counted.
class Ends {
public:
    Ends(Fabric& fabric, std::int64_t count)
        : fabric_(fabric),
          count_(count),
          office_(count, [](RoleId, const Event&) {}),
          mail_(
              fabric, office_, RankMap{}, MailOptions{}, [this](RoleId, const Event& event) { came(event); },
              [](int, const Note&, std::string_view) {}),
          own_(office_.allocate()) {
        office_.when_freed([this](std::int32_t channel) { freed_.push_back(channel); });
        std::fill_n(office_.data(own_).data(), count, 1.0F);
    }

    void send() {
        const bool worker = fabric_.rank() == 1;
        Send send;
        send.id = ++id_;
        send.to = worker ? 0 : 1;
        send.channel = worker ? Channel::gradient : Channel::weights;
        if (worker)
            send.message = Push{};
        else
            send.message = Weights{};
        send.payload = {own_, 0, count_};
        mail_.send(worker ? 1 : 0, send, now_ns());
    }
    void turn() {
        mail_.progress(now_ns());
        for (std::size_t i = 0; i < freed_.size(); ++i) mail_.slot_freed(freed_[i], now_ns());
        freed_.clear();
    }
    template <class Done>
    void until(Done done) {
        while (!done()) turn();
    }
    void await_delivery() {
        until([&] { return delivered_ > awaited_; });
        ++awaited_;
    }
    void await_taken() {
        until([&] { return taken_ == id_; });
    }
    bool all_taken() const { return taken_ == id_; }

private:
    void came(const Event& event) {
        if (const auto* delivered = std::get_if<Delivered>(&event)) {
            ++delivered_;
            office_.release(delivered->payload.buffer, 0);
        } else {
            ++taken_;
        }
    }

    Fabric& fabric_;
    std::int64_t count_;
    std::vector<std::int32_t> freed_;
    PostOffice office_;
    Mail mail_;
    BufferId own_;
    std::int64_t id_ = 0, delivered_ = 0, taken_ = 0, awaited_ = 0;
};

/// Seconds of a push and a pull.
double bare_pair(int rank, std::vector<float>& out, std::vector<float>& in) {
    const auto bytes = static_cast<int>(out.size() * sizeof(float));
    const auto begin = Clock::now();
    if (rank == 1) MPI_Send(out.data(), bytes, MPI_BYTE, 0, 99, MPI_COMM_WORLD);
    MPI_Recv(in.data(), bytes, MPI_BYTE, 1 - rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) MPI_Send(out.data(), bytes, MPI_BYTE, 1, 99, MPI_COMM_WORLD);
    return seconds_since(begin);
}

double mail_pair(int rank, Ends& ends) {
    const auto begin = Clock::now();
    if (rank == 1) ends.send();
    ends.await_delivery();
    if (rank == 0) ends.send();
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
        Ends ends(fabric, count);
        for (int round = 0; round < 10; ++round) {
            // In blocks, so that each finds its caches as it left them.
            for (int i = 0; i < repeats; ++i) {
                const double s = bare_pair(fabric.rank(), out, in);
                if (i > repeats / 4) bare.push_back(s);
            }
            MPI_Barrier(MPI_COMM_WORLD);
            for (int i = 0; i < repeats; ++i) {
                const double s = mail_pair(fabric.rank(), ends);
                if (i > repeats / 4) own.push_back(s);
            }
            ends.await_taken();
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

/// Pushes go out while a lane computes: how much of their time is hidden?
void hide(Fabric& fabric, std::size_t bytes) {
    const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
    Ends ends(fabric, count);
    const auto push = [&] {
        if (fabric.rank() == 1) {
            ends.send();
            ends.await_taken();
        } else {
            ends.await_delivery();
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
    if (std::thread::hardware_concurrency() >= 4)
        hide(*fabric, 100'000'000);
    else if (fabric->rank() == 0)
        fmt::print(
            "{{\"figure\": \"communication hidden under computation\", \"value\": null, \"target\": \">= 0.95\", "
            "\"skipped\": \"needs 4 cores\"}}\n");
}
