// One writer for every backend: what the drivers report becomes the files of a run directory (docs/traces.md).
#pragma once

#include "core/action.hpp"
#include "core/scenario.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace rubato::trace {

/// Where a role runs; strings for people.
struct Place {
    std::string host;
    std::string device;
};

/// A stretch of time of one role; a row of timeline.csv.
struct Span {
    RoleId role = 0;
    const char* kind = "";  ///< compute | push | pull | inquiry | apply | evaluate | wait
    Time begin_ns = 0;
    Time end_ns = 0;
    RoleId peer = -1;
    std::int64_t bytes = 0;
};

/// What broke or was whole again; a row of faults.csv.
struct FaultRow {
    Time time_ns = 0;
    const char* event = "";  ///< crash | return | link
    RoleId role = -1;        ///< -1: of a link
    std::string host = {};
    std::string link = {};
    double bandwidth_factor = 1, latency_factor = 1;  ///< of a link, from now on
};

/// Totals of one server, from the driver's lanes; a row of servers.csv.
struct ServerRow {
    RoleId role = 0;
    std::int64_t pushes = 0;
    std::int64_t updates = 0;
    std::int64_t replies = 0;                      ///< weights messages sent
    Time push_ns = 0, update_ns = 0, pull_ns = 0;  ///< apply lane, by what it was busy with
    Time evaluate_ns = 0;
    std::int64_t bytes_in = 0, bytes_out = 0;
    Time receiving_ns = -1, sending_ns = -1;  ///< in which some payload was moving to it, or from it; -1: not known
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("pushes", self.pushes);
        field("updates", self.updates);
        field("replies", self.replies);
        field("push_ns", self.push_ns);
        field("update_ns", self.update_ns);
        field("pull_ns", self.pull_ns);
        field("evaluate_ns", self.evaluate_ns);
        field("bytes_in", self.bytes_in);
        field("bytes_out", self.bytes_out);
        field("receiving_ns", Rare{self.receiving_ns, -1});
        field("sending_ns", Rare{self.sending_ns, -1});
    }
};

/// How long the tables are, in bytes; -1: there is none.
struct TableSizes {
    std::int64_t gradients = -1, updates = -1, evals = -1, timeline = -1, controller = -1, faults = -1;
    std::int64_t rounds = -1, exchanges = -1, iterations = -1, layers = -1;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("gradients", self.gradients);
        field("updates", self.updates);
        field("evals", self.evals);
        field("timeline", self.timeline);
        field("controller", self.controller);
        field("faults", self.faults);
        field("rounds", self.rounds);
        field("exchanges", self.exchanges);
        field("iterations", Rare{self.iterations, -1});
        field("layers", Rare{self.layers, -1});
    }
};

/// Where a recorder is.
struct RecorderMark {
    TableSizes tables;
    std::string figures;  ///< as text; empty: none (on ranks but the first)
};

/// A recorder goes on from there: tables are cut to what they had, figures are those of then.
struct RecorderResume {
    RecorderMark mark;
    Time now_ns = 0;
    std::string roles;  ///< state of the roles as text, for a log of events, which begins there
};

/// What the driver knows at the end of a run.
struct DriverReport {
    std::string backend;  ///< sim | local | mpi | shm
    bool virtual_clock = true;
    Status status = Status::finished;
    std::string detail;
    Time end_ns = 0;            ///< last event of the run
    std::int64_t messages = 0;  ///< pushes and weights deliveries
    std::int64_t control_messages = 0;
    std::int64_t bytes = 0;                     ///< of all messages
    std::optional<std::uint64_t> weights_hash;  ///< of the final weights
    std::vector<ServerRow> servers;
    double wall_s = 0;
    int ranks = 1;                                  ///< processes of the run
    bool oversubscribed = false;                    ///< more of them on a host than cores
    bool bound_to_one_core = false;                 ///< what computes and what moves messages take turns on it
    std::optional<std::int64_t> clock_residual_ns;  ///< by how much clocks of ranks moved apart; none: one clock
};

/// How far a run is; for progress bars.
struct Progress {
    double fraction = 0;  ///< of the stop criterion that is nearest, in [0, 1]
    Time now_ns = 0;
    std::int64_t samples = 0;
    std::int64_t gradients = 0;
    std::int64_t updates = 0;
    double epochs = 0;
    double last_valid_error = -1;  ///< -1: none yet
    double mean_staleness = 0;
};

/// The disk is full or the directory cannot be written; what() is one line.
struct OutputError : std::runtime_error {
    explicit OutputError(const std::string& what, bool no_room = false) : std::runtime_error(what), full(no_room) {}
    bool full;  ///< no room left: of the disk, a quota or a limit on the size of files
};

/// The recorded run whose schedule was computed again under another update rule.
struct RecomputedRun {
    std::string directory;          ///< of the recorded run
    std::string backend;            ///< that it ran on
    std::string status;             ///< how it ended; empty: it was killed
    std::string weights_hash;       ///< of its final weights; empty where it left none
    std::vector<std::string> sets;  ///< "KEY=VALUE", what is other than recorded
};

struct RecorderOptions {
    std::string directory;      ///< empty: nothing is written, figures only
    std::string scenario_json;  ///< resolved; becomes scenario.json
    std::string command;        ///< becomes command.txt
    std::int64_t samples = 0;   ///< training samples of one epoch
    std::int64_t parameters = 0;
    bool one_thread = false;    ///< step(), span() and progress() are called from one thread only: figures need no lock
    int rank = -1;              ///< of a run of several processes: see Output; -1: there is one
    std::vector<Place> places;  ///< by role
    std::optional<RecomputedRun> recomputed;       ///< not a run of its own
    std::optional<RecorderResume> resume;          ///< the run goes on; none: it begins
    std::map<std::string, std::string> libraries;  ///< names and versions beside those that this room uses
};

/// Collects what a run tells and writes it as it comes, so that a kill at any moment breaks at most the last line of a
/// file. step() and span() may be called from several threads.
class Recorder {
public:
    Recorder(const Scenario& scenario, RecorderOptions options);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// Every step of every role, in order within a role. Rows go to their tables; with trace.events the event and the
    /// actions go to events.log.
    void step(Time now, RoleId role, const Event& event, const Actions& actions) {
        step(now, role, event, actions, actions.stated());
    }
    /// For a caller that knows whether there are rows.
    void step(Time now, RoleId role, const Event& event, const Actions& actions, bool stated) {
        if (now > now_ns_.load(std::memory_order_relaxed)) now_ns_.store(now, std::memory_order_relaxed);
        // Most steps state nothing; they must not cost a lock.
        if (stated || logs_events_ || (saves_ && role == 0) || has_error_.load(std::memory_order_relaxed))
            take(now, role, event, actions);
    }
    /// Where this was at the last Save among the actions of a step; to be asked for at once. Moves it out.
    RecorderMark take_mark();
    /// With trace.timeline only; drivers may ask `wants_timeline` first.
    void span(const Span& span);
    bool wants_timeline() const;
    void fault(const FaultRow& row);
    /// Rows that a role of another process stated.
    void rows(const Actions& rows);
    /// Hands what is written to the kernel.
    void flush();
    /// Nothing comes any more; the last word on ranks but the first, which alone finishes.
    void close();
    Progress progress() const;
    /// Writes workers.csv, servers.csv and, last and by rename, summary.json. Returns the text of summary.json.
    std::string finish(const DriverReport& report);
    /// The figures so far as cells of a row (trace/summary_cells.hpp): all that is needed where nothing is written.
    std::string cells(const DriverReport& report) const;

private:
    struct Impl;
    void take(Time now, RoleId role, const Event& event, const Actions& actions);

    std::atomic<Time> now_ns_ = 0;
    std::atomic<bool> has_error_ = false;  ///< the flusher met one, for the next caller
    bool logs_events_ = false, saves_ = false;
    std::unique_ptr<Impl> impl_;
};

}  // namespace rubato::trace
