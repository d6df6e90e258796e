#include "trace/tables.hpp"

#include "trace/line_file.hpp"
#include "trace/support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

using namespace rubato;
using namespace rubato::trace;

namespace {

template <class Row>
std::string line(const Row& row) {
    char text[LineFile::line_chars_max];
    return {text, put_row(text, row)};
}

auto cells(std::string_view text) {
    return std::count(text.begin(), text.end(), ',') + 1;
}

GradientRow applied_row() {
    GradientRow row;
    row.seq = 12;
    row.worker = 3;
    row.worker_seq = 4;
    row.read_version = 5;
    row.apply_version = 7;
    row.samples = 32;
    row.pull_ns = 100;
    row.begin_ns = 110;
    row.end_ns = 200;
    row.push_ns = 200;
    row.applied_ns = 250;
    row.scale = 0.1;
    row.loss = 2.25;
    row.batch = {1, 32, 64};
    return row;
}

}  // namespace

TEST_CASE("a gradient is a line with all its cells") {
    CHECK(line(applied_row()) == "12,3,4,5,7,2,32,100,110,200,200,250,applied,0.1,2.25,1,64\n");
    GradientRow row;
    row.outcome = Outcome::cancelled;
    row.pull_ns = 0;
    CHECK(line(row) == "0,0,0,0,,,0,0,,,,,cancelled,1,0,,\n");
    row.loss = std::numeric_limits<double>::quiet_NaN();
    CHECK(line(row) == "0,0,0,0,,,0,0,,,,,cancelled,1,nan,,\n");
}

TEST_CASE("updates and evaluations") {
    CHECK(line(UpdateRow{1'000'000'000, 2, 0, 3, 1.0 / 3, 96, 0.0016, 0.01, 1e-5}) ==
          "1000000000,2,0,3,0.3333333333333333,96,0.0016,0.01,1e-05\n");
    EvalRow row;
    row.time_ns = 5;
    row.version = 6;
    row.epoch = 0.25;
    row.samples = 15000;
    row.metrics.valid_error = 0.5;
    CHECK(line(row) == "5,6,0.25,15000,,,0.5,,,,\n");
}

TEST_CASE("spans") {
    CHECK(line(Span{2, "push", 10, 30, 0, 400}) == "2,push,10,30,0,400\n");
    CHECK(line(Span{2, "compute", 10, 30}) == "2,compute,10,30,,0\n");
}

TEST_CASE("workers and servers") {
    WorkerRow times;
    times.gradients = 8;
    times.compute_ns = 1'500'000'000;
    times.idle_ns = 1;
    times.inquiries = 8;
    times.pulls = 7;
    const Outcomes outcomes{6, 1, 0, 1};
    CHECK(worker_line(1, {"node 1, rack \"b\"", "cpu"}, outcomes, 0.5, 2, times, times.sum_ns()) ==
          "1,cpu,\"node 1, rack \"\"b\"\"\",8,6,1,0,1,0.5,2,1.5,0,0,0,0,0,0,0,1e-09,8,7");
    CHECK(worker_line(1, {}, {}, {}, {}, {}, 0) == "1,,,,0,0,0,0,,,,,,,,,,,,,");
    // Idling beyond the last update is cut off; missing time stays missing.
    times.idle_ns = 1'000'000'000;
    CHECK(worker_line(1, {}, {}, {}, {}, times, 2'000'000'000).ends_with(",0,0.5,8,7"));
    CHECK(worker_line(1, {}, {}, {}, {}, times, 1'000'000'000).ends_with(",0,0,8,7"));
    CHECK(worker_line(1, {}, {}, {}, {}, times, 3'000'000'000).ends_with(",0,1,8,7"));
    ServerRow row;
    row.pushes = 3;
    row.update_ns = 250'000'000;
    row.bytes_in = 12;
    CHECK(server_line(row, {"h", ""}, 1'000'000'000) == "0,h,3,0,0,0,0.25,0,0,0.75,12,0,,");
    row.sending_ns = 500'000'000;
    row.receiving_ns = 0;
    CHECK(server_line(row, {"h", ""}, 1'000'000'000) == "0,h,3,0,0,0,0.25,0,0,0.75,12,0,0,0.5");
}

TEST_CASE("every line has as many cells as its header, the longest values included") {
    rubato::trace_test::Randomizer random(3);
    for (int i = 0; i < 1000; ++i) {
        GradientRow gradient;
        UpdateRow update;
        EvalRow eval;
        GradientRow::each(gradient, random);
        gradient.read_version &= std::numeric_limits<Version>::max();  // no version is below 0
        UpdateRow::each(update, random);
        EvalRow::each(eval, random);
        CHECK(cells(line(gradient)) == cells(gradients_header));
        CHECK(cells(line(update)) == cells(updates_header));
        CHECK(cells(line(eval)) == cells(evals_header));
    }
    CHECK(cells(line(Span{})) == cells(timeline_header));
    CHECK(cells(worker_line(0, {}, {}, {}, {}, {}, 0)) == cells(workers_header));
    CHECK(cells(worker_line(0, {}, {}, {}, {}, WorkerRow{}, 0)) == cells(workers_header));
    CHECK(cells(server_line({}, {}, 0)) == cells(servers_header));
}
