#include "trace/chrome_trace.hpp"

#include "trace/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace rubato::trace {
namespace {

/// The name is plain: quotes, backslashes and control characters cannot come from a timeline that we wrote.
bool plain(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    });
}

std::vector<std::string_view> cells_of(std::string_view line) {
    std::vector<std::string_view> cells;
    for (;;) {
        const std::size_t comma = line.find(',');
        cells.push_back(line.substr(0, comma));
        if (comma == std::string_view::npos) return cells;
        line.remove_prefix(comma + 1);
    }
}

std::optional<std::int64_t> whole(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

struct Entry {
    std::int64_t role = 0, begin_ns = 0, end_ns = 0, bytes = 0;
    std::optional<std::int64_t> peer;
    std::string_view kind;
};

std::optional<Entry> parse(std::string_view line) {
    const auto cells = cells_of(line);
    if (cells.size() != 6 || !plain(cells[1])) return std::nullopt;
    const auto role = whole(cells[0]), begin = whole(cells[2]), end = whole(cells[3]), bytes = whole(cells[5]);
    if (!role || !begin || !end || !bytes) return std::nullopt;
    return Entry{*role, *begin, *end, *bytes, whole(cells[4]), cells[1]};
}

std::string role_label(std::int64_t role) {
    return role == 0 ? "server" : fmt::format("worker {}", role - 1);
}

/// Exact microseconds with three digits: a double would lose nanoseconds after some hours.
std::string microseconds(std::int64_t ns) {
    return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

/// The list of events; names go before what they name.
class Writer {
public:
    explicit Writer(std::ostream& out) : out_(out) { out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":["; }

    void span(const Entry& entry, std::int64_t process, std::int64_t thread) {
        std::string args = fmt::format("\"bytes\":{}", entry.bytes);
        if (entry.peer) args += fmt::format(",\"peer\":\"{}\"", role_label(*entry.peer));
        emit(fmt::format(R"({{"name":"{}","ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", entry.kind,
                         process, thread, microseconds(entry.begin_ns),
                         microseconds(std::max<std::int64_t>(0, entry.end_ns - entry.begin_ns)), args));
    }
    void name(std::string_view what, std::int64_t process, std::int64_t thread, const std::string& text) {
        emit(fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", what, process, thread,
                         text));
    }
    void sort_thread(std::int64_t process, std::int64_t thread) {
        emit(fmt::format(R"({{"name":"thread_sort_index","ph":"M","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
                         process, thread, thread));
    }
    void end() { out_ << "\n]}\n"; }

private:
    void emit(const std::string& event) {
        out_ << (first_ ? "\n" : ",\n") << event;
        first_ = false;
    }

    std::ostream& out_;
    bool first_ = true;
};

/// A process a role, a thread a kind of work: spans of one kind rarely overlap within a role, those of several do.
class ByRole {
public:
    explicit ByRole(Writer& writer) : writer_(writer) {}

    void operator()(const Entry& entry) {
        auto& kinds = threads_[entry.role];
        if (kinds.empty()) writer_.name("process_name", entry.role, 0, role_label(entry.role));
        const auto [found, fresh] = kinds.try_emplace(std::string(entry.kind), static_cast<int>(kinds.size()) + 1);
        if (fresh) writer_.name("thread_name", entry.role, found->second, found->first);
        writer_.span(entry, entry.role, found->second);
    }

private:
    Writer& writer_;
    std::map<std::int64_t, std::map<std::string, int>> threads_;
};

/// One process for all roles, threads by role, kind, and as many as overlap.
class ByTimeline {
public:
    ByTimeline(Writer& writer, std::int64_t process, const std::string& title) : writer_(writer), process_(process) {
        writer_.name("process_name", process_, 0, title);
    }

    void operator()(const Entry& entry) {
        auto& kinds = roles_[entry.role];
        const auto kind = kinds.try_emplace(std::string(entry.kind), Kind{static_cast<std::int64_t>(kinds.size()), {}});
        auto& ends = kind.first->second.ends_ns;
        std::size_t lane = 0;
        while (lane < ends.size() && ends[lane] > entry.begin_ns) ++lane;
        const std::int64_t thread = 1 + (entry.role * kinds_max + kind.first->second.number) * lanes_max +
                                    static_cast<std::int64_t>(std::min(lane, std::size_t{lanes_max - 1}));
        if (lane == ends.size()) {
            ends.push_back(0);
            const std::string number = lane > 0 ? fmt::format(" {}", lane + 1) : "";
            writer_.name("thread_name", process_, thread,
                         fmt::format("{} {}{}", role_label(entry.role), entry.kind, number));
            writer_.sort_thread(process_, thread);
        }
        ends[lane] = std::max(entry.begin_ns, entry.end_ns);
        writer_.span(entry, process_, thread);
    }

private:
    static constexpr std::int64_t kinds_max = 16, lanes_max = 4096;
    struct Kind {
        std::int64_t number = 0;
        std::vector<std::int64_t> ends_ns;  ///< of the last span of each thread
    };

    Writer& writer_;
    std::int64_t process_;
    std::map<std::int64_t, std::map<std::string, Kind>> roles_;
};

template <class Take>
void read_timeline(std::istream& timeline, const std::string& path, Take&& take) {
    std::string line;
    if (!std::getline(timeline, line) || line != timeline_header)
        throw std::invalid_argument(path + ", line 1: \"" + std::string(timeline_header) + "\" expected");
    for (std::int64_t number = 2; std::getline(timeline, line); ++number) {
        const bool broken = timeline.eof();  // no newline: the run was killed while it wrote
        const auto entry = parse(line);
        if (entry && !broken) take(*entry);
        if (!entry && !broken)
            throw std::invalid_argument(path + ", line " + std::to_string(number) + ": six cells expected");
    }
}

}  // namespace

void write_chrome_trace(std::istream& timeline, std::ostream& out) {
    Writer writer(out);
    read_timeline(timeline, "timeline.csv", ByRole(writer));
    writer.end();
}

void write_chrome_traces(const std::vector<NamedTimeline>& timelines, std::ostream& out) {
    Writer writer(out);
    std::int64_t process = 0;
    for (const auto& [name, timeline] : timelines)
        read_timeline(*timeline, "timeline.csv of " + name, ByTimeline(writer, ++process, name));
    writer.end();
}

}  // namespace rubato::trace
