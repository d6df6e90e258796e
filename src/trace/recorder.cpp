#include "trace/recorder.hpp"

#include "trace/figures.hpp"
#include "trace/output.hpp"
#include "trace/summary.hpp"
#include "trace/summary_cells.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace rubato::trace {
namespace {

/// Twice as often as promised, so that a busy machine still keeps the promise of one second.
constexpr auto flush_interval = std::chrono::milliseconds(500);

}  // namespace

struct Recorder::Impl {
    Scenario scenario;
    RecorderOptions options;
    bool timeline = false;
    std::atomic<bool>& has_error;

    std::mutex mutex;  ///< of all below; the flusher never touches the figures
    Figures figures;
    std::optional<Output> output;
    RecorderMark mark;
    std::exception_ptr error;  ///< met by the flusher, for the next caller
    std::condition_variable_any wake;
    std::jthread flusher;  ///< last, so that it ends before what it uses

    Impl(const Scenario& the_scenario, RecorderOptions the_options, std::atomic<bool>& error_flag)
        : scenario(the_scenario),
          options(std::move(the_options)),
          has_error(error_flag),
          figures(scenario, options.samples, options.parameters) {
        if (options.resume && !options.resume->mark.figures.empty()) figures.from_text(options.resume->mark.figures);
        if (options.directory.empty()) return;
        output.emplace(scenario, options);
        timeline = scenario.trace.timeline;
        // Rows may stay away for long (a gradient of ten seconds), so those that came cannot wait for the next one.
        flusher = std::jthread([this](const std::stop_token& stop) { flush_now_and_then(stop); });
    }

    void flush_now_and_then(const std::stop_token& stop) {
        std::unique_lock lock(mutex);
        while (!wake.wait_for(lock, stop, flush_interval, [&] { return stop.stop_requested(); })) {
            if (stop.stop_requested()) return;
            try {
                output->flush();
            } catch (const OutputError&) {
                error = std::current_exception();
                has_error = true;
            }
        }
    }

    /// With the mutex held.
    void rethrow() {
        if (!has_error.exchange(false)) return;
        std::rethrow_exception(std::exchange(error, nullptr));
    }

    void take(Time now, RoleId role, const Event& event, const Actions& actions) {
        std::unique_lock lock(mutex, std::defer_lock);
        const bool writes = output && output->takes(actions);
        const Save* const save = find_save(role, event, actions);
        if (writes || save != nullptr || !options.one_thread) lock.lock();
        if (save != nullptr) return take_and_mark(now, role, event, actions, *save);
        figures.add(actions);
        rethrow();
        if (writes) output->write(now, role, event, actions);
    }

    /// A Save comes from the owner of the version, between two updates.
    const Save* find_save(RoleId role, const Event& event, const Actions& actions) const {
        if (role != 0 || !scenario.checkpoint.any()) return nullptr;
        if (!std::holds_alternative<Applied>(event) && !std::holds_alternative<Mixed>(event) &&
            !std::holds_alternative<Interrupted>(event) && !scenario.protocol.reduces())
            return nullptr;
        for (const Action& action : actions.list)
            if (const auto* save = std::get_if<Save>(&action)) return save;
        return nullptr;
    }

    void take_and_mark(Time now, RoleId role, const Event& event, const Actions& actions, const Save& save) {
        Actions before, after;
        const auto cut = actions.gradients.begin() + static_cast<std::ptrdiff_t>(save.rows);
        before.gradients.assign(actions.gradients.begin(), cut);
        before.updates = actions.updates;
        before.controller = actions.controller;
        before.shards = actions.shards;
        before.rounds = actions.rounds;
        before.exchanges = actions.exchanges;
        before.iterations = actions.iterations;
        before.buckets = actions.buckets;
        after.gradients.assign(cut, actions.gradients.end());
        after.evals = actions.evals;
        after.workers = actions.workers;
        rethrow();
        figures.add(before);
        if (output) output->write_rows(before);
        mark.figures = figures.to_text();
        if (output) mark.tables = output->mark();
        figures.add(after);
        if (!output) return;
        output->write_rows(after);
        output->log(now, role, event, actions);
    }

    std::string finish(const DriverReport& report) {
        flusher = {};
        const std::lock_guard lock(mutex);
        if (output) finish_tables(report);
        std::string text = summary_text(scenario, options, figures, report);
        if (output) output->write_summary(text);
        return text;
    }

    void finish_tables(const DriverReport& report) {
        try {
            rethrow();
            output->finish(figures, report, options.places);
        } catch (const OutputError&) {
            // A run that ended because of it still says so in its summary, if that one still fits.
            if (report.status != Status::disk_full) throw;
        }
    }
};

Recorder::Recorder(const Scenario& scenario, RecorderOptions options)
    : impl_(std::make_unique<Impl>(scenario, std::move(options), has_error_)) {
    logs_events_ = impl_->output && impl_->output->logs_events();
    saves_ = scenario.checkpoint.any();
    if (impl_->options.resume) now_ns_ = impl_->options.resume->now_ns;
}

Recorder::~Recorder() = default;

void Recorder::take(Time now, RoleId role, const Event& event, const Actions& actions) {
    impl_->take(now, role, event, actions);
}

void Recorder::span(const Span& span) {
    if (!impl_->timeline) return;
    const std::lock_guard lock(impl_->mutex);
    impl_->rethrow();
    impl_->output->write(span);
}

void Recorder::fault(const FaultRow& row) {
    const std::lock_guard lock(impl_->mutex);
    impl_->figures.add(row);
    impl_->rethrow();
    if (impl_->output) impl_->output->write(row);
}

void Recorder::rows(const Actions& rows) {
    const std::lock_guard lock(impl_->mutex);
    impl_->figures.add(rows);
    impl_->rethrow();
    if (impl_->output) impl_->output->write_rows(rows);
}

void Recorder::flush() {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->output) impl_->output->flush();
}

void Recorder::close() {
    impl_->flusher = {};
    const std::lock_guard lock(impl_->mutex);
    impl_->rethrow();
    if (impl_->output) impl_->output->close();
}

RecorderMark Recorder::take_mark() {
    const std::lock_guard lock(impl_->mutex);
    return std::move(impl_->mark);
}

bool Recorder::wants_timeline() const {
    return impl_->timeline;
}

Progress Recorder::progress() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->figures.progress(now_ns_.load(std::memory_order_relaxed));
}

std::string Recorder::finish(const DriverReport& report) {
    return impl_->finish(report);
}

std::string Recorder::cells(const DriverReport& report) const {
    const std::lock_guard lock(impl_->mutex);
    return summary_cells(impl_->scenario, impl_->figures, report);
}

}  // namespace rubato::trace
