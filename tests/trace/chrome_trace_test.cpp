#include "trace/chrome_trace.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <stdexcept>

using nlohmann::json;
using rubato::trace::write_chrome_trace;

namespace {

json exported(const std::string& timeline) {
    std::istringstream in(timeline);
    std::ostringstream out;
    write_chrome_trace(in, out);
    return json::parse(out.str());
}

const std::string header = "role,kind,begin_ns,end_ns,peer,bytes\n";

}  // namespace

TEST_CASE("a timeline becomes complete events of named processes") {
    const json events = exported(header + "2,compute,1500,2500,,0\n2,push,2500,1002500,0,400\n")["traceEvents"];
    REQUIRE(events.size() == 5);
    CHECK(events[0] == json::parse(R"({"name": "process_name", "ph": "M", "pid": 2, "tid": 0,
                                       "args": {"name": "worker 1"}})"));
    CHECK(events[2] == json::parse(R"({"name": "compute", "ph": "X", "pid": 2, "tid": 1, "ts": 1.5, "dur": 1.0,
                                       "args": {"bytes": 0}})"));
    CHECK(events[4] == json::parse(R"({"name": "push", "ph": "X", "pid": 2, "tid": 2, "ts": 2.5, "dur": 1000.0,
                                       "args": {"bytes": 400, "peer": "server"}})"));
}

TEST_CASE("an empty timeline and a broken last line are no errors") {
    CHECK(exported(header)["traceEvents"].empty());
    CHECK(exported(header + "2,compute,0,1,,0\n2,compute,1,")["traceEvents"].size() == 3);
}

TEST_CASE("another file is an error with its line") {
    CHECK_THROWS_AS(exported("seq,worker\n"), std::invalid_argument);
    CHECK_THROWS_AS(exported(header + "2,\"x,0,1,,0\n"), std::invalid_argument);
    CHECK_THROWS_AS(exported(header + "2,compute,zero,1,,0\n"), std::invalid_argument);
}
