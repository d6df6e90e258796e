// Fits and tables of measurements.
#include "cli/calibrate/fit.hpp"
#include "cli/calibrate/of_tables.hpp"
#include "cli/scratch.hpp"
#include "learn/random.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::cli;
using doctest::Approx;

namespace {

/// Messages of 50 us and 1 GB/s.
double true_seconds(double bytes) {
    return 50e-6 + bytes / 1e9;
}

/// The message of the refusal, from the file's name on.
template <class F>
std::string refusal(const Scratch& scratch, F&& call) {
    try {
        call();
    } catch (const InputError& error) {
        const std::string what = error.what();
        CHECK(what.find('\n') == std::string::npos);
        const std::string folder = scratch.folder.string() + "/";
        return what.starts_with(folder) ? what.substr(folder.size()) : what;
    }
    return {};
}

std::string network_refusal(const std::string& text) {
    const Scratch scratch;
    std::vector<std::string> notes;
    return refusal(scratch, [&] { network_of_table(scratch.write("n.csv", text), notes); });
}

std::string timings_refusal(const std::string& text) {
    const Scratch scratch;
    return refusal(scratch, [&] { devices_of_timings(scratch.write("t.csv", text)); });
}

}  // namespace

TEST_CASE("latency and bandwidth are found again, exactly and under noise") {
    std::vector<MessageTime> points;
    for (double bytes = 64; bytes < 1e9; bytes *= 4) points.push_back({bytes, true_seconds(bytes), 1});
    const LineFit exact = fit_line(points);
    CHECK(exact.fixed_s == Approx(50e-6).epsilon(1e-6));
    CHECK(exact.per_byte_s == Approx(1e-9).epsilon(1e-6));
    CHECK(exact.largest_error < 1e-6);
    learn::Stream stream(1, 0, learn::Purpose::sample, 0);
    for (auto& point : points) point.seconds *= stream.lognormal(0.02);
    points[5].seconds *= 4;  // something else ran
    const LineFit noisy = fit_line(points);
    CHECK(noisy.fixed_s == Approx(50e-6).epsilon(0.03));
    CHECK(noisy.per_byte_s == Approx(1e-9).epsilon(0.03));
    CHECK(noisy.largest_error > 0.7);
}

TEST_CASE("neither part of a fit is negative") {
    const LineFit falling = fit_line({{100, 2, 1}, {1000, 1, 1}});
    CHECK(falling.per_byte_s == 0);
    CHECK(falling.fixed_s > 0);
    const LineFit steep = fit_line({{100, 1, 1}, {1000, 100, 1}});
    CHECK(steep.fixed_s == 0);
    const LineFit single = fit_line({{1000, 2, 5}});
    CHECK(single.fixed_s == 0);
    CHECK(single.per_byte_s == Approx(2e-3));
}

TEST_CASE("a table of messages becomes latency and bandwidth, whatever ends its lines") {
    for (const std::string end : {"\n", "\r\n"}) {
        const Scratch scratch;
        std::string text = "\xEF\xBB\xBFseconds, bytes ,host" + end;
        for (const double bytes : {0.0, 1e3, 1e6, 1e8}) {
            for (const double factor : {0.99, 1.0, 3.0})
                text += std::to_string(factor * true_seconds(bytes)) + "," + std::to_string(bytes) + ",x" + end;
        }
        std::vector<std::string> notes;
        const NetworkProfile network = network_of_table(scratch.write("n.csv", text), notes);
        CHECK(network.latency_s == Approx(50e-6).epsilon(0.05));
        CHECK(network.bandwidth == Approx(1e9).epsilon(0.05));
        CHECK(network.bytes.largest == 1e8);
        CHECK(network.messages.size() == 4);
        CHECK(network.messages[0].n == 3);
        CHECK(notes.empty());
    }
    const Scratch scratch;
    std::vector<std::string> notes;
    network_of_table(scratch.write("n.csv", "bytes,seconds\n1000,1\n"), notes);
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].find("messages of one size, 1000 bytes") != std::string::npos);
}

TEST_CASE("wrong tables are refused with file, line and column") {
    CHECK(network_refusal("") == "n.csv: is empty, expected a table that begins with \"bytes,seconds\"");
    CHECK(network_refusal("bytes,second\n") ==
          "n.csv:1: column \"seconds\" is missing, expected a table that begins with \"bytes,seconds\"; is \"second\" "
          "meant?");
    CHECK(network_refusal("bytes,seconds\n") == "n.csv: expected a row for each message that was timed, found none");
    CHECK(network_refusal("bytes,seconds\n1,2\n5,3,4\n") == "n.csv:3: expected 2 cells as in the first line, found 3");
    CHECK(network_refusal("bytes,seconds\n1e3,0,5\n") == "n.csv:2: expected 2 cells as in the first line, found 3");
    CHECK(network_refusal("bytes,seconds\n1kB,2\n") == "n.csv:2: bytes: expected a number, found \"1kB\"");
    CHECK(network_refusal("bytes,seconds\n1,nan\n") == "n.csv:2: seconds: expected a number, found \"nan\"");
    CHECK(network_refusal("bytes,seconds\n-1,2\n") == "n.csv:2: bytes: expected bytes from 0 to 1e18, found \"-1\"");
    CHECK(network_refusal("bytes,seconds\n1,0\n") ==
          "n.csv:2: seconds: expected seconds above 0 and at most 1000000, found \"0\"");
    CHECK(network_refusal("bytes,seconds\n0,1\n") ==
          "n.csv: all messages are of 0 bytes; a bandwidth needs larger ones");
    CHECK(network_refusal("bytes,seconds\n1,2\n1000,1\n") ==
          "n.csv: messages of 1000 bytes take no longer than those of 1, so that there is no bandwidth to be told; "
          "measure larger ones");
    const std::string head = "device,batch,seconds\n";
    CHECK(timings_refusal(head + "a,8.5,1\n") == "t.csv:2: batch: expected an integer, found \"8.5\"");
    CHECK(timings_refusal(head + "a,0,1\n") ==
          "t.csv:2: batch: expected a batch size from 1 to 999999999, found \"0\"");
    CHECK(timings_refusal(head + ",8,1\n") == "t.csv:2: device: expected the name of a device class, found nothing");
    CHECK(timings_refusal(head + "a,8,1\n\nb,8\n") == "t.csv:4: expected 3 cells as in the first line, found 2");
    CHECK(timings_refusal(head + "\"a,8,1\n").find("a quote that is not closed") != std::string::npos);
    CHECK(timings_refusal(head + "a,8,\xff\n") == "t.csv:2: seconds: expected a number, found bytes that are no UTF-8");
}

TEST_CASE("timings become distributions where there are enough of them") {
    const Scratch scratch;
    std::string text = "device,batch,seconds\nrare,32,0.5\nrare,32,0.7\n";
    for (int i = 0; i <= 100; ++i) text += "v100,8," + std::to_string(0.01 * (1 + i)) + "\n";
    const auto devices = devices_of_timings(scratch.write("t.csv", text));
    REQUIRE(devices.size() == 2);
    const ComputeTimes& rare = devices.at("rare").batches.at(32);
    CHECK(rare.mean == Approx(0.6));
    CHECK(rare.quantiles.empty());
    const ComputeTimes& many = devices.at("v100").batches.at(8);
    CHECK(many.n == 101);
    CHECK(many.mean == Approx(0.51));
    REQUIRE(many.quantiles.size() == profile_levels().size());
    for (std::size_t i = 0; i < many.quantiles.size(); ++i)
        CHECK(many.quantiles[i] == Approx(0.01 + profile_levels()[i]));
}
