// What several tests of src/learn need.
#pragma once

#include "learn/random.hpp"
#include "learn/task.hpp"

#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace rubato::learn {

/// Jobs one after another, last first: results must not depend on the order.
struct Backwards : Parallel {
    void run(int jobs, const std::function<void(int)>& job) override {
        for (int j = jobs; j-- > 0;) job(j);
    }
};

/// A thread for each job.
struct Threads : Parallel {
    void run(int jobs, const std::function<void(int)>& job) override {
        std::vector<std::thread> threads;
        for (int j = 0; j < jobs; j++) threads.emplace_back(job, j);
        for (auto& thread : threads) thread.join();
    }
};

/// A folder of its own, gone at the end.
class Folder {
public:
    Folder() : path(std::filesystem::temp_directory_path() / ("rubato-learn-" + std::to_string(getpid()))) {
        std::filesystem::remove_all(path);
        std::filesystem::create_directories(path);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    /// Puts a file of tests/learn/data here under the name that a dataset wants.
    void put(std::string_view file, std::string_view name) const {
        const std::filesystem::path from = std::filesystem::path(LEARN_TEST_DATA) / file;
        std::filesystem::copy_file(from, path / name, std::filesystem::copy_options::overwrite_existing);
    }

    std::filesystem::path path;
};

/// Standard normal values, [size], keyed by seed and index.
inline std::vector<float> noise(std::uint64_t seed, std::uint64_t index, std::size_t size) {
    Stream stream(seed, 0, Purpose::init, index);
    std::vector<float> values(size);
    for (float& value : values) value = static_cast<float>(stream.normal());
    return values;
}

/// The text of the InputError that f throws; empty if it throws none.
template <class F>
std::string error_of(F&& f) {
    try {
        f();
    } catch (const InputError& error) {
        return error.what();
    }
    return {};
}

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

inline bool one_line(std::string_view text) {
    return !text.empty() && !contains(text, "\n");
}

/// A small synthetic task.
inline Scenario small_scenario(std::string model) {
    Scenario scenario;
    scenario.data.dataset = "synthetic";
    scenario.data.samples = 400;
    scenario.data.test_samples = 200;
    scenario.data.shape = {10, 9, 2};
    scenario.data.classes = 5;
    scenario.model.name = std::move(model);
    scenario.workers.groups = {{4, "default", 0}};
    return scenario;
}

}  // namespace rubato::learn
