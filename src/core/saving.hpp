// When the state of a run is saved, and what is saved: a part of whoever owns the version.
#pragma once

#include "core/action.hpp"
#include "core/run_state.hpp"
#include "core/scenario.hpp"

#include <cmath>
#include <optional>
#include <utility>

namespace rubato {

/// How far a run has come.
struct Progress {
    Time now_ns = 0;
    Version version = 0;
    double epoch = 0;
};

class Saving {
public:
    Saving() = default;
    explicit Saving(const CheckpointSpec& spec) : spec_(spec) {}

    bool any() const { return spec_.any(); }
    /// version: that the run goes on from, which need not be saved again.
    void resume_from(Version version) { version_ = version; }
    /// The run begins, or goes on.
    void start(const Progress& at) { next_ = next(at); }
    /// One at a time: where the one before is not yet written, the next one waits for a later update.
    bool under_way() const { return id_ != 0; }
    bool due(const Progress& at) const { return any() && !under_way() && done(at) >= next_; }
    /// There is something that the last one does not have.
    bool news(Version version) const { return version > version_; }
    /// Rows of this step that were stated until now belong to it.
    void begin(const Progress& at, ActionId id, ServerState state, BufferId weights, BufferId trend, Actions& actions) {
        next_ = next(at);
        id_ = id;
        version_ = at.version;
        state_ = std::move(state);
        actions.add<Save>(id, weights, at.version, static_cast<std::int64_t>(actions.gradients.size()), trend);
    }
    void on(const Saved& event) {
        if (event.id != id_) return;
        id_ = 0;
        state_.reset();
    }
    /// What is under way; null: nothing is.
    const ServerState* state() const { return state_ ? &*state_ : nullptr; }
    bool operator==(const Saving&) const = default;

private:
    double done(const Progress& at) const {
        if (spec_.every_epochs) return at.epoch;
        if (spec_.every_updates) return static_cast<double>(at.version);
        return static_cast<double>(at.now_ns) * 1e-9;
    }
    double next(const Progress& at) const {
        if (!any()) return 0;
        const double every = spec_.every_epochs    ? *spec_.every_epochs
                             : spec_.every_updates ? static_cast<double>(*spec_.every_updates)
                                                   : *spec_.every_s;
        const double reached = done(at);
        const double next = (std::floor(reached / every) + 1) * every;
        return next > reached ? next : next + every;  // rounding
    }

    CheckpointSpec spec_;
    double next_ = 0;      ///< in the unit of spec_
    Version version_ = 0;  ///< of the last one
    ActionId id_ = 0;      ///< 0: none is under way
    std::optional<ServerState> state_;
};

}  // namespace rubato
