#include "cli/calibrate/rank_session.hpp"

#include "exec/mpi/time_messages.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

namespace rubato::cli {
namespace {

/// What rank 0 asks of another rank.
struct Request {
    enum class Kind : std::uint8_t { gradients, messages, leave } kind = Kind::leave;
    int batch = 0;
    double limit_s = 0;
    int sizes = 0;
    std::array<double, 32> bytes{};
};
constexpr int request_tag = 2, answer_tag = 3;

/// Waits for a message without burning the core: who waits here has nothing to do with what is measured.
exec::Completion await(exec::Fabric& fabric, exec::Ticket ticket) {
    std::vector<exec::Completion> done;
    for (;;) {
        fabric.poll(done);
        for (const auto& it : done)
            if (it.ticket == ticket) return it;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void ask(exec::Fabric& fabric, int rank, const Request& request) {
    await(fabric, fabric.send(rank, request_tag, &request, sizeof request, false));
}

/// The last seconds of many say enough.
constexpr std::size_t answer_max = 4096;

}  // namespace

RankSession::~RankSession() {
    try {
        for (int rank = 1; rank < fabric_.size(); ++rank) ask(fabric_, rank, {});
    } catch (const exec::FabricError&) {
    }
}

std::vector<double> RankSession::gradients(int batch, int workers, double limit_s) {
    Request request;
    request.kind = Request::Kind::gradients;
    request.batch = batch;
    request.limit_s = limit_s;
    for (int rank = 1; rank <= workers; ++rank) ask(fabric_, rank, request);
    std::vector<double> seconds, answer(answer_max);
    for (int rank = 1; rank <= workers; ++rank) {
        const auto ticket = fabric_.receive(rank, answer_tag, answer.data(), answer.size() * sizeof(double));
        const auto count = await(fabric_, ticket).bytes / sizeof(double);
        seconds.insert(seconds.end(), answer.begin(), answer.begin() + static_cast<std::ptrdiff_t>(count));
    }
    if (interrupted_ != nullptr && *interrupted_) throw Interruption{};
    return seconds;
}

std::vector<RankTimes> RankSession::messages(const std::vector<double>& bytes, double limit_s) {
    constexpr int pairs_max = 4;
    Request request;
    request.kind = Request::Kind::messages;
    request.sizes = static_cast<int>(std::min(bytes.size(), request.bytes.size()));
    std::copy_n(bytes.begin(), request.sizes, request.bytes.begin());
    const std::vector<double> sizes(bytes.begin(), bytes.begin() + request.sizes);
    std::vector<RankTimes> times;
    const int pairs = std::min(pairs_max, fabric_.size() - 1);
    for (int rank = 1; rank <= pairs; ++rank) {
        request.limit_s = limit_s / pairs;
        ask(fabric_, rank, request);
        times.push_back({0, rank, exec::time_messages(fabric_, rank, sizes, request.limit_s)});
        if (interrupted_ != nullptr && *interrupted_) throw Interruption{};
    }
    return times;
}

void serve_calibration(exec::Fabric& fabric, const learn::Task& task) {
    for (;;) {
        Request request;
        await(fabric, fabric.receive(0, request_tag, &request, sizeof request));
        if (request.kind == Request::Kind::leave) return;
        if (request.kind == Request::Kind::messages) {
            exec::time_messages(fabric, 0, {request.bytes.begin(), request.bytes.begin() + request.sizes},
                                request.limit_s);
            continue;
        }
        auto seconds = time_gradients(task, request.batch, 1, request.limit_s, nullptr, true);
        if (seconds.size() > answer_max)
            seconds.erase(seconds.begin(), seconds.end() - static_cast<std::ptrdiff_t>(answer_max));
        await(fabric, fabric.send(0, answer_tag, seconds.data(), seconds.size() * sizeof(double), false));
    }
}

}  // namespace rubato::cli
