#include "trace/tables.hpp"

#include "trace/number_text.hpp"

#include <algorithm>

namespace rubato::trace {
namespace {

/// Cells of one line, each followed by its comma; end() turns the last comma into the newline.
class Cells {
public:
    explicit Cells(char* at) : at_(at) {}

    Cells& operator<<(std::int64_t value) { return close(put(at_, value)); }
    Cells& operator<<(double value) { return close(put(at_, value)); }
    Cells& operator<<(std::string_view text) { return close(put(at_, text)); }
    Cells& operator<<(const std::optional<double>& value) { return close(value ? put(at_, *value) : at_); }
    /// Empty where the value is negative: it never came to that.
    Cells& reached(std::int64_t value) { return close(value < 0 ? at_ : put(at_, value)); }

    char* end() {
        at_[-1] = '\n';
        return at_;
    }

private:
    Cells& close(char* end) {
        *end = ',';
        at_ = end + 1;
        return *this;
    }
    char* at_;
};

/// As RFC 4180 wants it: quoted where a comma, a quote or a line break would be misread.
std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c == '\n' || c == '\r' ? ' ' : c;  // one row, one line
    }
    return out + '"';
}

/// Cells of a row that is not written often.
class Line {
public:
    Line& operator<<(const std::string& text) {
        text_ += quoted(text);
        return next();
    }
    Line& operator<<(std::int64_t value) {
        append_number(text_, value);
        return next();
    }
    Line& seconds(Time ns) {
        append_number(text_, static_cast<double>(ns) / 1e9);
        return next();
    }
    template <class Number>
    Line& operator<<(const std::optional<Number>& value) {
        if (value) append_number(text_, *value);
        return next();
    }
    Line& empty(int cells) {
        text_.append(static_cast<std::size_t>(cells), ',');
        return *this;
    }
    std::string done() {
        text_.pop_back();
        return std::move(text_);
    }

private:
    Line& next() {
        text_ += ',';
        return *this;
    }
    std::string text_;
};

}  // namespace

namespace {

void put(Cells& cells, const GradientRow& row) {
    cells << row.seq << std::int64_t{row.worker} << row.worker_seq << row.read_version;
    if (row.apply_version < 0)
        cells << std::string_view() << std::string_view();
    else
        cells << row.apply_version << row.staleness();  // signed, so that a wrong engine shows
    cells << std::int64_t{row.samples};
    cells.reached(row.pull_ns).reached(row.begin_ns).reached(row.end_ns).reached(row.push_ns).reached(row.applied_ns);
    cells << name(row.outcome) << row.scale << row.loss;
    if (row.batch.count > 0)
        cells << std::int64_t{row.batch.epoch} << row.batch.first;
    else
        cells << std::string_view() << std::string_view();
}

}  // namespace

char* put_row(char* at, const GradientRow& row) {
    Cells cells(at);
    put(cells, row);
    return cells.end();
}

char* put_summed_row(char* at, const GradientRow& row) {
    Cells cells(at);
    put(cells, row);
    cells << std::int64_t{row.count};
    return cells.end();
}

char* put_row(char* at, const UpdateRow& row) {
    Cells cells(at);
    cells << row.time_ns << row.version << std::int64_t{row.shard} << std::int64_t{row.contributors}
          << row.mean_staleness << row.samples << row.epoch << row.learning_rate << row.effective_learning_rate;
    return cells.end();
}

char* put_row(char* at, const EvalRow& row) {
    Cells cells(at);
    cells << row.time_ns << row.version << row.epoch << row.samples << row.train_loss << row.metrics.valid_loss
          << row.metrics.valid_error << row.metrics.test_loss << row.metrics.test_error << row.metrics.gradient_norm
          << row.metrics.suboptimality;
    return cells.end();
}

char* put_row(char* at, const ControllerRow& row) {
    Cells cells(at);
    cells << row.time_ns << std::int64_t{row.worker} << row.pushes;
    cells.reached(row.slowest) << row.slowest_pushes << row.gap;
    cells.reached(row.last_push_ns).reached(row.interval_ns);
    cells.reached(row.slowest_last_push_ns).reached(row.slowest_interval_ns);
    cells.reached(row.r_limit) << row.granted;
    cells.reached(row.predicted_ns).reached(row.slowest_predicted_ns);
    return cells.end();
}

char* put_row(char* at, const ShardRow& row) {
    Cells cells(at);
    cells << std::int64_t{row.shard} << std::int64_t{row.worker} << row.worker_seq << row.read_version;
    if (row.apply_version < 0)
        cells << std::string_view() << std::string_view();
    else
        cells << row.apply_version << row.staleness();
    cells.reached(row.applied_ns) << name(row.outcome);
    return cells.end();
}

char* put_row(char* at, const RoundRow& row) {
    Cells cells(at);
    cells << row.round << row.version;
    cells.reached(row.worker).reached(row.shard) << std::int64_t{row.workers} << row.steps << row.samples;
    for (const Time time : {row.broadcast_begin_ns, row.broadcast_end_ns, row.compute_begin_ns, row.compute_end_ns,
                            row.reduce_begin_ns, row.reduce_end_ns, row.prepare_begin_ns, row.prepare_end_ns})
        cells.reached(time);
    return cells.end();
}

char* put_row(char* at, const ExchangeRow& row) {
    Cells cells(at);
    cells << row.cycle << std::int64_t{row.shard} << std::int64_t{row.worker} << row.steps << row.pulls << row.asked_ns
          << row.begin_ns << row.end_ns;
    return cells.end();
}

char* put_row(char* at, const IterationRow& row) {
    const Iterated& it = row.it;
    Cells cells(at);
    cells << std::int64_t{row.worker} << it.iteration << std::int64_t{it.delay} << std::int64_t{it.in_flight}
          << it.version << it.begin_ns << it.computed_ns << it.waited_ns << it.end_ns;
    return cells.end();
}

char* put_row(char* at, const BucketRow& row) {
    const BucketTimes& it = row.it;
    Cells cells(at);
    cells << std::int64_t{row.worker} << it.iteration << std::int64_t{it.bucket} << it.gradient_begin_ns
          << it.gradient_end_ns;
    // Where nobody communicates nothing is reduced.
    for (const Time time : {it.reduce_begin_ns, it.reduce_end_ns}) cells.reached(time > 0 ? time : -1);
    cells << it.apply_begin_ns << it.apply_end_ns;
    return cells.end();
}

char* put_row(char* at, const Span& span) {
    Cells cells(at);
    cells << std::int64_t{span.role} << std::string_view(span.kind) << span.begin_ns << span.end_ns;
    cells.reached(span.peer) << span.bytes;
    return cells.end();
}

std::int64_t& Outcomes::of(Outcome outcome) {
    switch (outcome) {
        case Outcome::applied: return applied;
        case Outcome::dropped: return dropped;
        case Outcome::cancelled: return cancelled;
        case Outcome::leftover: break;
    }
    return leftover;
}

std::string worker_line(WorkerId worker, const Place& place, const Outcomes& outcomes,
                        std::optional<double> staleness_mean, std::optional<std::int64_t> staleness_p99,
                        const std::optional<WorkerRow>& times, Time run_ns) {
    Line line;
    line << std::int64_t{worker} << place.device << place.host;
    line << (times ? std::optional(times->gradients) : std::nullopt);
    line << outcomes.applied << outcomes.dropped << outcomes.cancelled << outcomes.leftover;
    line << staleness_mean << staleness_p99;
    if (!times) return line.empty(11).done();
    line.seconds(times->compute_ns).seconds(times->push_queued_ns).seconds(times->push_moving_ns);
    line.seconds(times->pull_request_ns).seconds(times->pull_moving_ns);
    line.seconds(times->policy_wait_ns).seconds(times->apply_wait_ns);
    line.seconds(0);  // no worker evaluates yet
    // A worker's books close when it hears of the end; what it idled beyond the last update is cut off. Time that is
    // missing is not made up: it would hide a fault of the books.
    const Time beyond = std::max<Time>(0, times->sum_ns() - run_ns);
    line.seconds(std::max<Time>(0, times->idle_ns - beyond));
    return (line << times->inquiries << times->pulls).done();
}

std::string fault_line(const FaultRow& row) {
    Line line;
    line << row.time_ns << std::string(row.event);
    if (row.role >= 0)
        line << std::int64_t{row.role} << row.host;
    else
        line.empty(2);
    if (row.link.empty()) return line.empty(3).done();
    line << row.link << std::optional(row.bandwidth_factor) << std::optional(row.latency_factor);
    return line.done();
}

std::string server_line(const ServerRow& row, const Place& place, Time run_ns) {
    const Time busy_ns = row.push_ns + row.update_ns + row.pull_ns + row.evaluate_ns;
    Line line;
    line << std::int64_t{row.role} << place.host << row.pushes << row.updates << row.replies;
    line.seconds(row.push_ns).seconds(row.update_ns).seconds(row.pull_ns).seconds(row.evaluate_ns);
    line.seconds(std::max<Time>(0, run_ns - busy_ns));
    line << row.bytes_in << row.bytes_out;
    for (const Time moving : {row.receiving_ns, row.sending_ns}) moving < 0 ? line.empty(1) : line.seconds(moving);
    return line.done();
}

}  // namespace rubato::trace
