#include "cli/sweep/worker.hpp"

#include "cli/backends.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace rubato::cli {
namespace {

/// What stands before the text of a result.
struct Head {
    PointResult::Kind kind = PointResult::Kind::row;
    std::uint32_t bytes = 0;
};

/// False where the other end is gone.
bool send_all(int socket, const char* data, std::size_t size) {
    while (size > 0) {
        const ssize_t sent = ::send(socket, data, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        data += sent;
        size -= static_cast<std::size_t>(sent);
    }
    return true;
}

bool receive_task(int socket, Task& task) {
    auto* at = reinterpret_cast<char*>(&task);
    for (std::size_t got = 0; got < sizeof task;) {
        const ssize_t count = ::recv(socket, at + got, sizeof task - got, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        got += static_cast<std::size_t>(count);
    }
    return true;
}

bool send_result(int socket, const PointResult& result) {
    const Head head{result.kind, static_cast<std::uint32_t>(result.text.size())};
    std::string message(reinterpret_cast<const char*>(&head), sizeof head);
    message += result.text;
    return send_all(socket, message.data(), message.size());
}

std::string ending_of(int status) {
    if (WIFSIGNALED(status))
        return "its process was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
               ::strsignal(WTERMSIG(status)) + ")";
    return "its process ended with status " + std::to_string(WEXITSTATUS(status));
}

int wait_for(pid_t process) {
    int status = 0;
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/// A child must not outlive its parent, whose locks are what keeps others from its points; signals of the terminal are
/// the parent's, which then ends its children.
void become_child(pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
}

class Loop {
public:
    Loop(int socket, Resolver& resolver, const PointOptions& options)
        : socket_(socket), resolver_(resolver), options_(options) {}

    void run() {
        for (Task task; receive_task(socket_, task);) {
            const Setting& setting = resolver_.at(task.id);
            if (!(task.forks ? run_forked(setting, task) : send_result(socket_, run_point(setting, task, options_))))
                return;
        }
    }

private:
    bool run_forked(const Setting& setting, const Task& task) {
        prepare_platform(setting, task);
        const pid_t self = ::getpid();
        const pid_t child = ::fork();
        if (child == 0) {
            become_child(self);
            ::_exit(send_result(socket_, run_point(setting, task, options_)) ? 0 : 1);
        }
        if (child < 0) {
            const std::string why = std::string("no process could be started: ") + std::strerror(errno);
            return send_result(socket_, {PointResult::Kind::row, failed_row(setting, task, why)});
        }
        const int status = wait_for(child);
        if (status == 0) return true;
        return send_result(socket_, {PointResult::Kind::row, failed_row(setting, task, ending_of(status))});
    }

    /// The module keeps a platform that nothing ran on, and so each child finds it built.
    void prepare_platform(const Setting& setting, const Task& task) {
        if (task.platform == platform_) return;
        platform_ = task.platform;
        try {
            open_backend("sim", setting.loaded.scenario);
        } catch (const std::exception&) {
            // Each point meets the same error and states it.
        }
    }

    int socket_;
    Resolver& resolver_;
    const PointOptions& options_;
    std::uint64_t platform_ = 0;
};

}  // namespace

Worker::Worker(Resolver& resolver, const PointOptions& options) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw std::system_error(errno, std::generic_category(), "socketpair");
    std::fflush(nullptr);
    const pid_t self = ::getpid();
    process_ = ::fork();
    if (process_ < 0) {
        const int error = errno;
        ::close(ends[0]);
        ::close(ends[1]);
        throw std::system_error(error, std::generic_category(), "fork");
    }
    if (process_ == 0) {
        become_child(self);
        ::close(ends[0]);
        int status = 0;
        try {
            Loop(ends[1], resolver, options).run();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "rubato: internal error: %s\n", error.what());
            status = 1;
        }
        ::_exit(status);
    }
    ::close(ends[1]);
    socket_ = ends[0];
}

Worker::~Worker() {
    if (process_ > 0) {
        // The group of its own children goes with it: they are told by the system that it died.
        ::kill(process_, SIGKILL);
        wait_for(process_);
    }
    ::close(socket_);
}

bool Worker::suits(const Task& task) const {
    if (task.forks && had_own_runs_) return false;
    return platform_ == 0 || platform_ == task.platform || !(task.apart || had_apart_);
}

void Worker::give(const Task& task) {
    platform_ = task.platform;
    had_apart_ |= task.apart;
    had_own_runs_ |= !task.forks;
    outstanding_.push_back(task);
    // Where it is gone already, take() finds out.
    static_cast<void>(send_all(socket_, reinterpret_cast<const char*>(&task), sizeof task));
}

std::vector<std::pair<Task, PointResult>> Worker::take() {
    char block[65536];
    for (;;) {
        const ssize_t count = ::recv(socket_, block, sizeof block, MSG_DONTWAIT);
        if (count > 0) received_.append(block, static_cast<std::size_t>(count));
        if (count < 0 && errno == EINTR) continue;
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) gone_ = true;
        if (count < static_cast<ssize_t>(sizeof block)) break;
    }
    std::vector<std::pair<Task, PointResult>> results;
    std::size_t at = 0;
    Head head;
    while (received_.size() - at >= sizeof head && !outstanding_.empty()) {
        std::memcpy(&head, received_.data() + at, sizeof head);
        if (received_.size() - at < sizeof head + head.bytes) break;
        PointResult result{head.kind, received_.substr(at + sizeof head, head.bytes)};
        results.emplace_back(outstanding_.front(), std::move(result));
        outstanding_.pop_front();
        at += sizeof head + head.bytes;
    }
    received_.erase(0, at);
    return results;
}

std::string Worker::ending() {
    const int status = wait_for(process_);
    process_ = -1;
    return ending_of(status);
}

}  // namespace rubato::cli
