#include "trace/rank_parts.hpp"

#include "trace/event_log_writer.hpp"
#include "trace/line_file.hpp"
#include "trace/tables.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

namespace rubato::trace {
namespace {

namespace fs = std::filesystem;

/// The steps of one part of an event log, one after another.
class PartLog {
public:
    explicit PartLog(const std::string& path) : in_(path) { next(); }

    bool done() const { return lines_.empty(); }
    Time now() const { return now_; }
    /// The lines of the present step: kind and body.
    const std::vector<std::pair<std::string, std::string>>& lines() const { return lines_; }
    /// Reads the next step. The last one of a part without an end may be cut off between two lines, so it is left out.
    void next() {
        lines_.clear();
        lines_.swap(waiting_);
        bool whole = false;
        std::string line;
        while (!whole && std::getline(in_, line) && !in_.eof()) {
            const LogLine parts = split_line(line);
            const std::string kind(parts.kind);
            whole = kind == "END" || (kind == "E" && !lines_.empty());
            if (kind == "H" || kind == "END") continue;
            (whole ? waiting_ : lines_).emplace_back(kind, std::string(parts.body));
        }
        if (!whole) lines_.clear();
        if (lines_.empty()) return;
        const std::string& event = lines_.front().second;
        std::from_chars(event.data(), event.data() + event.size(), now_);
    }

private:
    std::ifstream in_;
    std::vector<std::pair<std::string, std::string>> lines_, waiting_;
    Time now_ = 0;
};

void remove_part(const std::string& directory, const std::string& name, int ranks) {
    std::error_code error;
    for (int rank = 0; rank < ranks; ++rank) fs::remove(part_path(directory, name, rank), error);
    fs::remove(fs::path(directory) / "ranks", error);  // only if it is empty
}

}  // namespace

std::string part_path(const std::string& directory, const std::string& name, int rank) {
    return directory + "/ranks/" + name + "." + std::to_string(rank);
}

void merge_timelines(const std::string& directory, int ranks) {
    LineFile out(directory + "/timeline.csv", timeline_header);
    for (int rank = 0; rank < ranks; ++rank) {
        std::ifstream in(part_path(directory, "timeline.csv", rank));
        std::string line;
        std::getline(in, line);  // the header
        while (std::getline(in, line) && !in.eof()) out.append(line);
    }
    out.close();
    remove_part(directory, "timeline.csv", ranks);
}

namespace {

void join(const std::string& directory, int ranks, EventLogWriter& out) {
    std::vector<std::unique_ptr<PartLog>> parts;
    using Next = std::pair<Time, std::size_t>;
    std::priority_queue<Next, std::vector<Next>, std::greater<>> order;
    for (int rank = 0; rank < ranks; ++rank) {
        auto& part = *parts.emplace_back(std::make_unique<PartLog>(part_path(directory, "events.log", rank)));
        if (!part.done()) order.emplace(part.now(), parts.size() - 1);
    }
    while (!order.empty()) {
        const auto index = order.top().second;
        order.pop();
        auto& part = *parts[index];
        for (const auto& [kind, body] : part.lines()) out.line(kind, body);
        part.next();
        if (!part.done()) order.emplace(part.now(), index);
    }
}

}  // namespace

void merge_event_logs(const std::string& directory, int ranks, const LogHeader& header, const std::string& state) {
    EventLogWriter out(directory + "/events.log", header, state);
    join(directory, ranks, out);
    out.finish();
    remove_part(directory, "events.log", ranks);
}

bool join_event_logs(const std::string& directory, const std::string& path) {
    int ranks = 0;
    std::error_code error;
    while (fs::exists(part_path(directory, "events.log", ranks), error)) ++ranks;
    if (ranks == 0) return false;
    std::ifstream first(part_path(directory, "events.log", 0), std::ios::binary);
    EventLogWriter out(path, read_header(first));
    join(directory, ranks, out);
    out.flush();
    return true;
}

std::int64_t keep_part_until(const std::string& path, Time now_ns) {
    std::ifstream in(path);
    if (!in) return -1;
    std::string line, kept;
    while (std::getline(in, line) && !in.eof()) {
        // role,kind,begin_ns,end_ns,...
        std::size_t at = 0;
        for (int comma = 0; comma < 3 && at != std::string::npos; ++comma) at = line.find(',', at + (comma > 0));
        Time end = 0;
        if (at != std::string::npos) std::from_chars(line.data() + at + 1, line.data() + line.size(), end);
        if (end <= now_ns) kept += line + '\n';  // the header, too
    }
    in.close();
    write_file_by_rename(path, kept);
    return static_cast<std::int64_t>(kept.size());
}

void remove_parts(const std::string& directory) {
    std::error_code error;
    fs::remove_all(fs::path(directory) / "ranks", error);
}

}  // namespace rubato::trace
