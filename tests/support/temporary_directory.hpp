// A directory that goes with the test.
#pragma once

#include <unistd.h>
#include <filesystem>
#include <string>

namespace rubato::test {

class TemporaryDirectory {
public:
    TemporaryDirectory() {
        std::string name = (std::filesystem::temp_directory_path() / "rubato-XXXXXX").string();
        path_ = mkdtemp(name.data());
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    std::filesystem::path path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace rubato::test
