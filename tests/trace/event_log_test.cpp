#include "trace/event_log_writer.hpp"
#include "trace/replay.hpp"
#include "trace/support.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <stdexcept>

using namespace rubato;
using namespace rubato::trace;
using namespace rubato::trace_test;

namespace {

std::string role_label(RoleId role) {
    return role == 0 ? "server" : "worker " + std::to_string(role - 1);
}

/// A log of two roles with every kind of line; `finished` writes the end.
std::string small_log(bool finished = true) {
    const TemporaryDirectory directory;
    {
        LogHeader header;
        header.samples = 100;
        header.lambda = 1;
        header.scenario = "small run";
        EventLogWriter writer(directory.path("events.log"), header);
        std::vector<Echo> roles{{0, 0}, {1, 0}};
        Actions actions;
        Delivered delivered;
        delivered.from = 1;
        delivered.message = Push{};
        const std::pair<RoleId, Event> events[] = {{0, Start{1}},    {1, Start{2}},      {0, delivered},
                                                   {1, Taken{1, 4}}, {1, TimerFired{2}}, {0, TimerFired{1}}};
        Time now = 0;
        for (const auto& [role, event] : events) {
            actions.clear();
            step(roles[static_cast<std::size_t>(role)], now, event, actions);
            writer.step(now, role, event, actions);
            now += 10;
        }
        if (finished) writer.finish();
    }
    return read_file(directory.path("events.log"));
}

ReplayResult replay_text(const std::string& text, std::vector<Echo> roles = {{0, 0}, {1, 0}}) {
    std::istringstream in(text);
    return replay_roles(in, std::move(roles), role_label);
}

/// A difference names a role, an event and a line.
void check_named(const ReplayResult& result) {
    CAPTURE(result.difference);
    CHECK_FALSE(result.same);
    CHECK(result.difference.find('\n') == std::string::npos);
    CHECK(result.difference.find("line ") != std::string::npos);
    CHECK((result.difference.starts_with("server, event ") || result.difference.starts_with("worker ") ||
           result.difference.starts_with("role ")));
}

}  // namespace

TEST_CASE("a recorded run replays to the very same actions") {
    const std::string text = small_log();
    const ReplayResult result = replay_text(text);
    CHECK(result.difference == "");
    CHECK(result.same);
    CHECK(result.complete);
    CHECK(result.steps == 6);
    CHECK(result.lines == static_cast<std::int64_t>(lines_of(text).size()));
}

TEST_CASE("the header tells what the roles are made of") {
    std::istringstream in(small_log());
    const LogHeader header = read_header(in);
    CHECK(header.samples == 100);
    CHECK(header.parameters == 0);
    CHECK(header.lambda == 1);
    CHECK(header.scenario == "small run");
    std::istringstream other("seq,worker\n");
    CHECK_THROWS_AS(read_header(other), std::invalid_argument);
}

TEST_CASE("any altered character of any line is found, at that line") {
    const auto lines = lines_of(small_log());
    for (std::size_t i = 0; i < lines.size(); ++i) {
        for (std::size_t at = 0; at < lines[i].size(); ++at) {
            auto altered = lines;
            altered[i][at] = altered[i][at] == '1' ? '2' : '1';
            const ReplayResult result = replay_text(joined(altered));
            CAPTURE(altered[i]);
            CAPTURE(result.difference);
            CHECK(result.difference.find("line " + std::to_string(i + 1) + ":") != std::string::npos);
            if (i > 0) check_named(result);
        }
    }
}

TEST_CASE("deleted, inserted, doubled and swapped lines are found") {
    const auto lines = lines_of(small_log());
    for (std::size_t i = 1; i < lines.size(); ++i) {
        CAPTURE(lines[i]);
        auto altered = lines;
        altered.erase(altered.begin() + static_cast<std::ptrdiff_t>(i));
        if (i + 1 < lines.size())
            check_named(replay_text(joined(altered)));
        else  // without its end it is the log of a killed run
            CHECK_FALSE(replay_text(joined(altered)).complete);
        altered = lines;
        altered.insert(altered.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
        check_named(replay_text(joined(altered)));
        altered[i].clear();
        check_named(replay_text(joined(altered)));
        if (i + 1 == lines.size()) continue;
        altered = lines;
        std::swap(altered[i], altered[i + 1]);
        check_named(replay_text(joined(altered)));
    }
    auto altered = lines;
    altered.push_back("E 0 0 0 start weights=1");
    check_named(replay_text(joined(altered)));
}

TEST_CASE("a log that breaks off anywhere replays as far as it goes") {
    const std::string text = small_log();
    for (std::size_t size = 0; size < text.size() - 1; ++size) {
        const ReplayResult result = replay_text(text.substr(0, size));
        CAPTURE(text.substr(0, size));
        CHECK(result.difference == "");
        CHECK(result.same);
        CHECK_FALSE(result.complete);
    }
    CHECK(replay_text(text.substr(0, text.size() - 1)).complete);  // an editor may eat the last newline
    CHECK_FALSE(replay_text(small_log(false)).complete);
}

TEST_CASE("an altered last line is no broken one") {
    std::string text = small_log();
    text.pop_back();
    text.back() = text.back() == '1' ? '2' : '1';
    check_named(replay_text(text));
}

TEST_CASE("other roles give other actions, and the report shows both") {
    const ReplayResult result = replay_text(small_log(), {{0, 0}, {1, 5}});
    check_named(result);
    CHECK(result.difference ==
          "worker 0, event start, line 7: recorded \"set-timer id=1 at_ns=15\", replayed \"set-timer id=6 at_ns=15\"");
}

TEST_CASE("a role that the scenario has not is named") {
    const ReplayResult result = replay_text(small_log(), {{0, 0}});
    check_named(result);
    CHECK(result.difference.starts_with("worker 0, event start, line 5:"));
}
