#include "cli/run_directory.hpp"

#include "cli/json_reader.hpp"
#include "cli/resume.hpp"
#include "trace/checkpoint.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace rubato::cli {
namespace {

namespace fs = std::filesystem;

/// The tree in a file, or null where there is none that can be read.
Node read_or_null(const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return {};
    try {
        return read_json(path.string());
    } catch (const InputError&) {
        return {};
    }
}

}  // namespace

std::string default_directory(const Loaded& loaded, const std::string& backend) {
    return "runs/" + loaded.scenario.name + "-" + hash8(loaded, backend == "sim" ? "" : backend);
}

std::optional<EarlierRun> look_into(const std::string& directory, const Loaded& loaded, const std::string& backend,
                                    bool force, bool resume) {
    std::error_code error;
    const fs::path folder(directory);
    if (!fs::exists(folder, error)) return std::nullopt;
    if (!fs::is_directory(folder, error)) throw InputError(directory + ": is a file, expected a folder for the run");
    if (fs::is_empty(folder, error) || force) return std::nullopt;
    const Node scenario = read_or_null(folder / "scenario.json");
    const bool same = scenario.is(Node::Kind::object) && to_json(scenario, false) == to_json(loaded.tree, false);
    const bool alike = same || (resume && scenario.is(Node::Kind::object) && ends_alike(loaded, scenario));
    const Node summary = read_or_null(folder / "summary.json");
    const std::string status = text_at(summary, "status");
    if (alike && text_at(summary, "backend") == backend && (status == "finished" || status == "diverged")) {
        return EarlierRun{read_file((folder / "summary.json").string()), status};
    }
    if (resume) return std::nullopt;
    const std::string what = !scenario.is(Node::Kind::object) ? "is not empty"
                             : !same                          ? "holds a run of another scenario"
                             : status.empty()                 ? "holds an unfinished run of this scenario"
                             : text_at(summary, "backend") != backend
                                 ? "holds a run of this scenario on backend " + text_at(summary, "backend")
                                 : "holds a run of this scenario that ended as " + status;
    const bool saved = same && !trace::checkpoint_versions(directory).empty();
    throw InputError(directory + ": " + what + "; " + (saved ? "--resume goes on from its checkpoint, " : "") +
                     "--force replaces its files, --out names another folder");
}

DirectoryLock::DirectoryLock(const std::string& directory) {
    std::error_code error;
    for (fs::path folder(directory); !folder.empty() && !fs::exists(folder, error); folder = folder.parent_path())
        made_.push_back(folder.string());
    fs::create_directories(directory, error);
    descriptor_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    ::close(descriptor_);
    throw InputError(directory + ": another run is writing there; --out names another folder");
}

DirectoryLock::~DirectoryLock() {
    std::error_code error;
    for (const auto& folder : made_) {
        if (!fs::is_empty(folder, error) || error) break;
        fs::remove(folder, error);
    }
    if (descriptor_ >= 0) ::close(descriptor_);
}

std::string status_of(const std::string& summary_json) {
    return text_at(parse_json(summary_json, {std::make_shared<const std::string>("summary.json"), 1, 0}), "status");
}

}  // namespace rubato::cli
