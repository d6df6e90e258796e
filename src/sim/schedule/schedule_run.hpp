// The driver of a run whose order of updates is given: a trace says who computed each gradient and on which version.
#pragma once

#include "core/role.hpp"
#include "learn/apply.hpp"
#include "learn/pool.hpp"
#include "sim/schedule/readers.hpp"
#include "trace/recorder.hpp"
#include "trace/run_input.hpp"

#include <deque>
#include <map>
#include <memory>

namespace rubato::sim {

/// One tick of the clock: versions come a second apart, so that a run of seconds, rates and ages reads in updates.
inline constexpr Time schedule_tick_ns = 1'000'000'000;

/// The server is the engine's own: its policy, staleness rule, dealer and books decide as always. The workers are the
/// trace. A worker asks for its next batch when its gradient before has been taken in and the version that it reads is
/// there; weights are kept until the last gradient that reads them is taken in, and no longer.
///
/// Version v is made at v ticks; a gradient begins when the version that it reads is made and is taken in at the
/// present one. Only the server is a role of the run: its events alone are recorded.
class ScheduleRun {
public:
    using See = std::function<void(Time, RoleId, const Event&, const Actions&)>;

    /// input.task may be null: nothing is computed. Of its recorder nothing is used: `see` is told of every step.
    ScheduleRun(const trace::RunInput& input, const DelayTrace& trace, See see);
    /// Throws ScheduleError where the trace cannot be followed under the scenario.
    trace::DriverReport go();

    /// Gradients that the server took in, and whether it ended the run by a criterion of its own rather than because
    /// the trace ended. After go().
    std::int64_t accepted() const { return taken_in_; }
    bool stopped_by_itself() const { return stopped_by_itself_; }
    /// References to buffers that are held at present: weights and gradients.
    std::int64_t buffers_held() const { return buffers_.outstanding(); }

private:
    /// A gradient on its way: has read its version, or has its batch, or both.
    struct Pending {
        Batch batch;
        BufferId weights = no_buffer, gradient = no_buffer;
        std::unique_ptr<learn::GradientJob> job;
    };
    struct Worker {
        std::int64_t pushes = 0;
        Version have = 0;          ///< of the last word of the server
        Row next = Readers::none;  ///< that waits for a batch, or will
    };

    Worker& worker_of(Row row) { return workers_[static_cast<std::size_t>(readers_[row].worker)]; }
    void push_next();
    void skip(Row row);
    void ask(Row row);
    /// Lets those ask whose turn it is among the readers of a version.
    void ask_for_readers(Version version);
    void on_version();
    /// Keeps the present version where the rule will look at it, and lets go of those whose gradients are applied.
    void keep_versions();
    void has_read(Row row);
    void submit(Row row, Pending& pending);
    void dealt(RoleId to, Version version, const Batch& batch);
    Push record_of(Row row, const Batch& batch, std::int64_t worker_seq) const;
    /// The last words of the workers.
    void leave();
    void advance(Time to);

    void hand(const Event& event);
    void settle();
    void act(const Send& action);
    void act(const Fold& action);
    void act(const Update& action);
    void act(const Evaluate& action);
    void act(const Release& action) { buffers_.release(action.buffer); }
    void act(const SetTimer& action);
    void act(const Finish& action);
    // What workers read is in the trace, which knows more than the server: it may have a worker read a later version
    // than the one at which it was dealt its batch.
    void act(const Keep&) {}
    void act(const Forget&) {}
    template <class Other>
    [[noreturn]] void act(const Other&) {
        throw std::logic_error("the server asks for what only workers do");
    }

    const trace::RunInput& input_;
    const Scenario& scenario_;
    const DelayTrace& trace_;
    See see_;
    Role server_;
    bool barrier_;
    Readers readers_;
    std::vector<Worker> workers_;
    std::map<Row, Pending> pending_;
    std::map<Version, std::int64_t> readers_left_;  ///< of versions that are kept: gradients that are not taken in yet
    std::map<Version, std::size_t> asked_;  ///< how many of the readers of a version have asked; done ones are left out
    std::deque<Event> due_;                 ///< completions of the present instant
    Actions actions_;
    learn::BufferPool buffers_;
    learn::Kept kept_{buffers_};
    std::unique_ptr<learn::Optimizer> optimizer_;
    std::unique_ptr<learn::Pool> pool_;  ///< after what its threads work on
    BufferId weights_ = no_buffer;       ///< the server's last ones
    Version version_ = 0;
    Time now_ = 0;
    std::optional<SetTimer> timer_;
    Row next_ = 0;            ///< of the trace
    std::int32_t steps_ = 0;  ///< of the update under way
    std::int64_t taken_in_ = 0;
    std::int64_t dealt_samples_ = 0, limit_ = -1;  ///< the dealer hands out no more than the epochs of the scenario
    bool skipped_ = false;                         ///< gradients have been left out, as no batch was left
    bool stopping_ = false, finished_ = false, stopped_by_itself_ = false;
    trace::DriverReport report_;
    trace::ServerRow books_;
};

}  // namespace rubato::sim
