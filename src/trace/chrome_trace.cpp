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

class Writer {
public:
    explicit Writer(std::ostream& out) : out_(out) { out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":["; }

    void add(const Entry& entry) {
        const int thread = thread_of(entry);
        std::string args = fmt::format("\"bytes\":{}", entry.bytes);
        if (entry.peer) args += fmt::format(",\"peer\":\"{}\"", role_label(*entry.peer));
        emit(fmt::format(R"({{"name":"{}","ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", entry.kind,
                         entry.role, thread, microseconds(entry.begin_ns),
                         microseconds(std::max<std::int64_t>(0, entry.end_ns - entry.begin_ns)), args));
    }
    void end() { out_ << "\n]}\n"; }

private:
    void emit(const std::string& event) {
        out_ << (first_ ? "\n" : ",\n") << event;
        first_ = false;
    }
    /// Names processes and threads when they first appear. Spans of one kind never overlap within a role, those of
    /// several kinds may: a thread each.
    int thread_of(const Entry& entry) {
        auto& kinds = threads_[entry.role];
        if (kinds.empty()) name("process_name", entry.role, 0, role_label(entry.role));
        const auto [found, fresh] = kinds.try_emplace(std::string(entry.kind), static_cast<int>(kinds.size()) + 1);
        if (fresh) name("thread_name", entry.role, found->second, found->first);
        return found->second;
    }
    void name(std::string_view what, std::int64_t role, int thread, const std::string& text) {
        emit(fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", what, role, thread,
                         text));
    }

    std::ostream& out_;
    bool first_ = true;
    std::map<std::int64_t, std::map<std::string, int>> threads_;
};

}  // namespace

void write_chrome_trace(std::istream& timeline, std::ostream& out) {
    std::string line;
    if (!std::getline(timeline, line) || line != timeline_header)
        throw std::invalid_argument("timeline.csv, line 1: \"" + std::string(timeline_header) + "\" expected");
    Writer writer(out);
    for (std::int64_t number = 2; std::getline(timeline, line); ++number) {
        const bool broken = timeline.eof();  // no newline: the run was killed while it wrote
        const auto entry = parse(line);
        if (entry && !broken) writer.add(*entry);
        if (!entry && !broken)
            throw std::invalid_argument("timeline.csv, line " + std::to_string(number) + ": six cells expected");
    }
    writer.end();
}

}  // namespace rubato::trace
