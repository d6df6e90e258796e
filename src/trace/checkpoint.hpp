// DIR/checkpoints: the state of a run, from which `rubato run --resume` goes on. docs/checkpoints.md describes it.
#pragma once

#include "core/run_state.hpp"
#include "trace/recorder.hpp"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace rubato::trace {

/// What drivers count apart from the roles.
struct DriverTotals {
    std::int64_t messages = 0, control_messages = 0, bytes = 0;
    ServerRow server;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("messages", self.messages);
        field("control_messages", self.control_messages);
        field("bytes", self.bytes);
        field("server", self.server);
    }
};

/// All but the arrays.
struct CheckpointHead {
    std::string program;   ///< version of rubato
    std::string backend;   ///< sim | local | mpi
    std::string scenario;  ///< JSON of all that the run depends on
    RunState roles;
    DriverTotals totals;
    RecorderMark recorder;
    Version version() const { return roles.server.version; }
};

struct Checkpoint {
    CheckpointHead head;
    std::vector<float> weights;   ///< [parameters]; empty in timing-only runs
    std::vector<float> velocity;  ///< of momentum; empty where there is none
    std::vector<float> trend;     ///< of a driver that keeps one: see Save
    /// Weights of pending evaluations of other versions.
    std::map<Version, std::vector<float>> evaluated;

    /// Of a version that is evaluated.
    const std::vector<float>& weights_of(Version version) const {
        return version == head.version() ? weights : evaluated.at(version);
    }
};

/// The same with arrays that somebody else keeps.
struct CheckpointView {
    CheckpointHead head;
    std::span<const float> weights, velocity, trend;
    std::vector<std::pair<Version, std::span<const float>>> evaluated;
    /// Of all that is in it, roughly.
    std::int64_t bytes() const;
};

/// The folder of the checkpoints of a run directory.
std::string checkpoint_folder(const std::string& run_directory);

/// Writes VERSION.ckpt: under another name, checksummed, forced to the disk, renamed; `tables` are forced before. The
/// weights of pending evaluations lie beside it, each written once. Throws OutputError.
void write_checkpoint(const std::string& run_directory, const CheckpointView& view);

/// Versions of the checkpoints that are there, valid or not, the newest first.
std::vector<Version> checkpoint_versions(const std::string& run_directory);

/// Throws std::invalid_argument (one line: file and what is wrong) where it is cut off, altered or none.
Checkpoint read_checkpoint(const std::string& run_directory, Version version);

/// The newest that is valid; calls refused(line) for each newer one that is not. Nothing where there is none.
std::optional<Checkpoint> newest_checkpoint(const std::string& run_directory,
                                            const std::function<void(const std::string&)>& refused);

/// Keeps the newest two checkpoints, that of version `also` where there is one, and the weights that `needed` names.
void prune_checkpoints(const std::string& run_directory, const std::vector<Version>& needed,
                       std::optional<Version> also = {});

/// Before a run goes on from `version`: what is newer was refused, and takes another name; what a kill left goes, newer
/// weights too.
void begin_after(const std::string& run_directory, Version version);

/// Text of the roles, one line, and its inverse, which throws std::invalid_argument.
std::string to_text(const RunState& state);
RunState run_state_from_text(const std::string& text);

}  // namespace rubato::trace
