#include "sim/network_fixture.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace rubato::tests {

namespace fs = std::filesystem;

std::string data_file(const std::string& name) {
    return std::string(RUBATO_TEST_DATA) + "/" + name;
}

std::optional<std::string> shared_file(const std::string& name) {
    std::vector<fs::path> roots;
    if (const char* given = std::getenv("RUBATO_SHARED"); given && *given) roots.emplace_back(given);
    for (fs::path folder = RUBATO_TEST_DATA; folder.has_relative_path(); folder = folder.parent_path())
        roots.push_back(folder / "shared");
    for (const auto& root : roots) {
        std::error_code error;
        if (const fs::path file = root / "cases" / name; fs::exists(file, error)) return file.string();
    }
    return std::nullopt;
}

Scenario scenario_on(const std::string& platform, const std::string& model) {
    Scenario scenario;
    scenario.cluster.platform = platform;
    if (model == "flow") {
        scenario.cluster.network.model = model;
        return scenario;
    }
    scenario.cluster.network.tcp_gamma = model.ends_with("+gamma");
    scenario.cluster.network.simgrid = model.substr(0, model.find('+'));
    return scenario;
}

std::string in_child(const std::function<std::string()>& call) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
        std::string result;
        try {
            result = call();
        } catch (const std::exception& error) {
            result = std::string("threw ") + error.what();
        }
        const auto written = write(ends[1], result.data(), result.size());
        _exit(written == static_cast<ssize_t>(result.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::string text;
    char part[4096];
    for (ssize_t size = 0; (size = read(ends[0], part, sizeof part)) > 0;)
        text.append(part, static_cast<std::size_t>(size));
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    return status == 0 ? text : "the child died; it said " + text;
}

std::string platform_error(const std::function<void()>& call) {
    try {
        call();
    } catch (const sim::PlatformError& error) {
        return error.what();
    }
    return "";
}

RecordingSink::RecordingSink(sim::Network& network, std::vector<Message> messages)
    : network_(network), messages_(std::move(messages)) {}

const std::vector<RecordingSink::Arrival>& RecordingSink::run() {
    start_due();
    network_.run(*this);
    return arrivals_;
}

std::string RecordingSink::text() const {
    std::string all;
    for (const Arrival& arrival : arrivals_)
        all += std::to_string(arrival.token) + (arrival.ok ? " " : " failed ") + std::to_string(arrival.time) + "\n";
    return all;
}

void RecordingSink::on_alarm() {
    start_due();
}

void RecordingSink::on_transfer(std::int64_t token, bool ok) {
    arrivals_.push_back({token, network_.now(), ok});
}

void RecordingSink::start_due() {
    for (; next_ < messages_.size() && messages_[next_].at <= network_.now(); ++next_) {
        const Message& message = messages_[next_];
        network_.transfer(message.from, message.to, message.bytes, static_cast<std::int64_t>(next_));
    }
    if (next_ < messages_.size()) network_.at(messages_[next_].at);
}

}  // namespace rubato::tests
