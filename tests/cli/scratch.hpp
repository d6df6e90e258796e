// Scenario files of a test, in a folder that goes when the test ends.
#pragma once

#include "cli/load.hpp"

#include <unistd.h>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace rubato::cli {

class Scratch {
public:
    Scratch() {
        static std::atomic<int> count{0};
        folder = std::filesystem::temp_directory_path() /
                 ("rubato_cli_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
        std::filesystem::create_directories(folder);
    }
    ~Scratch() {
        std::error_code error;
        std::filesystem::remove_all(folder, error);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(folder / name, std::ios::binary) << text;
        return (folder / name).string();
    }
    static std::string read(const std::filesystem::path& path) {
        std::ostringstream text;
        text << std::ifstream(path, std::ios::binary).rdbuf();
        return text.str();
    }

    std::filesystem::path folder;
};

/// Reads `text` as the file scenario.json.
inline Loaded read_text(const std::string& text, const std::vector<std::string>& sets = {}) {
    const Scratch scratch;
    return read_scenario(scratch.write("scenario.json", text), sets);
}

/// The message about `text`, from "scenario.json" on; empty when it is accepted.
inline std::string error_of(const std::string& text, const std::vector<std::string>& sets = {}) {
    const Scratch scratch;
    try {
        read_scenario(scratch.write("scenario.json", text), sets);
    } catch (const InputError& error) {
        std::string what = error.what();
        if (const auto at = what.find(scratch.folder.string() + "/"); at == 0)
            what.erase(0, scratch.folder.string().size() + 1);
        return what;
    }
    return {};
}

/// A small valid scenario with `more` among its top-level keys.
inline std::string small(const std::string& more = "") {
    return "{\n\"cost\": {\"model\": \"resnet50\"},\n\"workers\": {\"count\": 8},\n\"protocol\": {\"name\": "
           "\"async\"}" +
           (more.empty() ? "" : ",\n" + more) + "\n}\n";
}

/// The same with a model that learns.
inline std::string learning(const std::string& more = "") {
    return "{\n\"model\": {\"name\": \"softmax\"},\n\"workers\": {\"count\": 8},\n\"protocol\": {\"name\": \"async\"}" +
           (more.empty() ? "" : ",\n" + more) + "\n}\n";
}

}  // namespace rubato::cli
