// rubato run --resume: the checkpoint that a run goes on from.
#pragma once

#include "cli/commands.hpp"
#include "cli/load.hpp"
#include "trace/checkpoint_writer.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rubato::cli {

/// What a run depends on, as JSON: the scenario without comments, and without where it stops, what it writes and when
/// it saves.
std::string identity_json(const Loaded& loaded);

/// Paths of keys in which the scenario differs from that JSON, such as "protocol.n".
std::vector<std::string> differing_keys(const Loaded& loaded, const std::string& identity);

/// Whether a run of the earlier scenario that has ended leaves this one nothing to do: what it depends on, where it
/// stops and its tables are the same.
bool ends_alike(const Loaded& loaded, const Node& earlier);

/// The newest valid checkpoint of the folder; nothing where the run is to begin: the folder holds none yet, or an
/// unfinished one of this scenario that was killed before its first checkpoint. Tells of each that is not valid. Throws
/// InputError where none is left, where it is of another scenario or backend, beyond the stop, or was recorded into
/// other tables.
std::optional<trace::Checkpoint> checkpoint_to_resume(const std::string& directory, const Loaded& loaded,
                                                      const std::string& backend);

/// What a recorder goes on from.
trace::RecorderResume recorder_resume(const trace::Checkpoint& checkpoint);

/// Writes what the scenario asks to be saved; null where it asks for nothing.
std::unique_ptr<trace::CheckpointWriter> checkpoint_writer(const std::string& directory, const Loaded& loaded,
                                                           const std::string& backend,
                                                           const trace::Checkpoint* resumed);

/// "exact" or "legal", and why: what a resumed run has in common with one that nothing disturbed.
std::string resume_sentence(const Scenario& scenario);

}  // namespace rubato::cli
