#include "trace/support.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace rubato::trace_test {

TemporaryDirectory::TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "rubato-trace-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
    path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
}

std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

bool exists(const std::string& path) {
    return std::filesystem::exists(path);
}

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
}

Scenario small_scenario() {
    Scenario scenario;
    scenario.name = "small";
    scenario.seed = 7;
    scenario.workers.groups = {{2, "cpu", 1}};
    scenario.workers.batch_size = 10;
    scenario.protocol.name = "async";
    return scenario;
}

void Randomizer::fill(double& value) {
    do {
        const std::uint64_t raw = bits();
        std::memcpy(&value, &raw, sizeof value);
    } while (!std::isfinite(value));
    if (bits() % 4 == 0) value = static_cast<double>(bits() % 3);
}

void step(Echo& role, Time now, const Event& event, Actions& actions) {
    ++role.count;
    if (const auto* delivered = std::get_if<Delivered>(&event)) {
        actions.list.push_back(Update{role.count, delivered->payload.buffer, role.count, 0, 1});
        actions.steps.push_back({0, 1, 0.1});
        actions.parts.push_back({delivered->payload.buffer, 1.0 / 3, role.count, 1});
        GradientRow row;
        row.seq = role.count;
        row.applied_ns = now;
        row.apply_version = 0;
        row.loss = 0.1;
        actions.gradients.push_back(row);
        actions.updates.push_back({now, role.count, 0, 1, 0.5, 10, 0.1, 0.1, 0.1});
        EvalRow eval;
        eval.time_ns = now;
        eval.metrics.valid_error = 0.25;
        actions.evals.push_back(eval);
    } else if (std::holds_alternative<TimerFired>(event)) {
        WorkerRow row;
        row.worker = role.self;
        actions.workers.push_back(row);
        actions.list.push_back(Finish{});
    } else {
        actions.list.push_back(Release{role.self});
        actions.list.push_back(SetTimer{role.count, now + 5});
    }
}

}  // namespace rubato::trace_test
