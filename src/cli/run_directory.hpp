// Where a run leaves its files, and what lies there already.
#pragma once

#include "cli/load.hpp"

#include <optional>
#include <string>

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
std::optional<EarlierRun> look_into(const std::string& directory, const Loaded& loaded, const std::string& backend,
                                    bool force);

/// The status in the text of a summary.
std::string status_of(const std::string& summary_json);

}  // namespace rubato::cli
