// Where a run leaves its files, and what lies there already.
#pragma once

#include "cli/load.hpp"

#include <optional>
#include <string>
#include <vector>

namespace rubato::cli {

/// runs/NAME-HASH8. Backends other than sim have a hash of their own: their runs stand beside the simulated ones.
std::string default_directory(const Loaded& loaded, const std::string& backend);

/// A run of the same scenario on the same backend that lies in the directory already.
struct EarlierRun {
    std::string summary_json;
    std::string status;
};

/// Nothing where the directory is free for a run (missing or empty, or force). An earlier identical run that came to
/// its own end otherwise. Throws InputError where something else is there.
/// resume: an unfinished run is none of them.
std::optional<EarlierRun> look_into(const std::string& directory, const Loaded& loaded, const std::string& backend,
                                    bool force, bool resume = false);

/// A folder that this process alone writes a run into, for as long as it lives; the folder is made where it is missing,
/// and taken away again where nothing came of it. Where folders cannot be locked (some network file systems) or made,
/// it does nothing: what is wrong is told by whoever writes there.
class DirectoryLock {
public:
    /// Throws InputError where another run is writing there.
    explicit DirectoryLock(const std::string& directory);
    ~DirectoryLock();
    DirectoryLock(const DirectoryLock&) = delete;
    DirectoryLock& operator=(const DirectoryLock&) = delete;

private:
    std::vector<std::string> made_;  ///< folders that were missing, the innermost first
    int descriptor_ = -1;
};

/// The status in the text of a summary.
std::string status_of(const std::string& summary_json);

}  // namespace rubato::cli
