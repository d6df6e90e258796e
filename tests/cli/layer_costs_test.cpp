// cost.layers: what a scenario makes of layers with seconds, and of tables.
#include "cli/scratch.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::cli;
using doctest::Approx;

namespace {

std::string with_cost(const std::string& cost, const std::string& more = "") {
    return "{\"cost\": {" + cost +
           "},\n\"workers\": {\"count\": 2, \"batch_size\": 16},\n\"protocol\": {\"name\": " + "\"async\"}" +
           (more.empty() ? "" : ",\n" + more) + "}";
}

const std::string astra =
    "DATA\r\n3\r\nconv\t-1\t1000\tNONE\t0\t2000\tNONE\t0\t3000\tALLREDUCE\t400\t7\r\n"
    "pool\t-1\t500\tNONE\t0\t500\tNONE\t0\t0\tNONE\t0\t0\r\nfc\t-1\t10\tNONE\t0\t20\tNONE\t0\t30\tALLREDUCE\t40\t7";
const std::string scale = "Layer name, H, W, R, S, C, K, Strides,\nconv, 4, 4, 1, 1, 2, 5, 1,\n";
const std::string own = R"({"name": "mine", "batch_size": 64, "flops_per_s": 1e9,
"layers": [{"name": "a", "parameters": 25, "forward_s": 1, "backward_s": 2}]})";

struct Folder {
    Folder() {
        std::filesystem::create_directories(scratch.folder / "tables");
        scratch.write("tables/astra.txt", astra);
        scratch.write("tables/scale.csv", scale);
        scratch.write("tables/own.json", own);
        scratch.write("tables/bad.csv", scale + "fc, 1, 1,\n");
        scratch.write("tables/nothing.txt", "DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0\n");
    }
    Loaded read(const std::string& text, const std::vector<std::string>& sets = {}) const {
        return read_scenario(scratch.write("s.json", text), sets);
    }
    /// The message about a text, without the folder.
    std::string refusal(const std::string& text) const {
        try {
            read(text);
        } catch (const InputError& error) {
            std::string what = error.what();
            const std::string folder = scratch.folder.string() + "/";
            for (auto at = what.find(folder); at != std::string::npos; at = what.find(folder))
                what.erase(at, folder.size());
            return what;
        }
        return {};
    }
    Scratch scratch;
};

}  // namespace

TEST_CASE("layers of a scenario have sizes, and seconds where it gives them") {
    Loaded loaded = read_text(with_cost(R"("layers": [{"bytes": "1kB"}, {"name": "b", "bytes": 24}])"));
    CHECK(loaded.scenario.layers == std::vector<std::int64_t>{1000, 24});
    CHECK(loaded.scenario.layer_times.empty());
    CHECK(loaded.scenario.layer_batch_size == 0);
    CHECK(loaded.scenario.cost.push_bytes == 1024);
    CHECK(loaded.notes.empty());

    const std::string seconds = R"("layers": [{"bytes": 8, "forward_s": "5ms", "backward_s": 0.25}])";
    loaded = read_text(with_cost(seconds + ", \"layers_batch_size\": 4"));
    CHECK(loaded.scenario.layer_times == std::vector<LayerTime>{{0.005, 0.25}});
    CHECK(loaded.scenario.layer_batch_size == 4);
    CHECK(loaded.notes.empty());

    loaded = read_text(with_cost(seconds));
    CHECK(loaded.scenario.layer_batch_size == 16);
    REQUIRE(loaded.notes.size() == 1);
    CHECK(loaded.notes[0] ==
          "cost.layers: nobody says for how many samples the seconds are, so they are taken for 16, "
          "workers.batch_size; cost.layers_batch_size=16 says so");
    // The saved scenario says so itself.
    CHECK(read_text(loaded.resolved_json).notes.empty());
    CHECK(read_text(loaded.resolved_json).resolved_json == loaded.resolved_json);
}

TEST_CASE("a table that ships is found by its name") {
    const Loaded loaded = read_text(with_cost("\"layers\": \"alexnet\""));
    const Scenario& scenario = loaded.scenario;
    REQUIRE(scenario.layers.size() == 8);
    CHECK(scenario.layers[5] == 4 * 37'752'832);
    CHECK(scenario.cost.push_bytes == 4 * 60'965'224);
    CHECK(scenario.cost.pull_bytes == scenario.cost.push_bytes);
    CHECK(scenario.layer_times.size() == 8);
    CHECK(scenario.layer_batch_size == 256);
    CHECK(loaded.notes.empty());
    CHECK(loaded.resolved_json.find("Layers of alexnet (Krizhevsky, Sutskever, Hinton 2012") != std::string::npos);
    // What is saved needs no table, and is the same experiment.
    const Loaded again = read_text(loaded.resolved_json);
    CHECK(again.resolved_json == loaded.resolved_json);
    CHECK(again.scenario.layer_times == scenario.layer_times);
    CHECK(hash8(again) == hash8(loaded));
    CHECK(hash8(read_text(with_cost("\"comment\": \"own\", \"layers\": \"alexnet\""))) == hash8(loaded));
    // A table replaces a model of the catalogue that a file names.
    CHECK(read_text(small(), {"cost.layers=vgg-a"}).scenario.layers.size() == 11);
    CHECK(error_of(with_cost("\n\"layers\": \"alexent\"")) ==
          "scenario.json:2: cost.layers: there is no table \"alexent\"; did you mean \"alexnet\"?");
    CHECK(error_of(with_cost("\"layers\": \"x\"")) ==
          "scenario.json:1: cost.layers: there is no table \"x\"; there are alexnet, cifar10-full, googlenet, nlc-cnn, "
          "resnet110, resnet152, resnet34, resnet50 and vgg-a");
}

TEST_CASE("a path of a table is relative to the file that it stands in") {
    const Folder folder;
    Loaded loaded = folder.read(with_cost("\"layers\": \"tables/own.json\""));
    CHECK(loaded.scenario.layers == std::vector<std::int64_t>{100});
    CHECK(loaded.scenario.layer_times == std::vector<LayerTime>{{1, 2}});
    CHECK(loaded.scenario.layer_batch_size == 64);
    loaded = folder.read(with_cost("\"layers\": \"tables/own.json\", \"layers_rate\": \"4Gf\""));
    CHECK(loaded.scenario.layer_times == std::vector<LayerTime>{{0.25, 0.5}});

    loaded = folder.read(with_cost("\"layers\": \"./tables/../tables/astra.txt\", \"layers_batch_size\": 32"));
    CHECK(loaded.scenario.layers == std::vector<std::int64_t>{400, 40});
    REQUIRE(loaded.scenario.layer_times.size() == 2);
    CHECK(loaded.scenario.layer_times[0].forward_s == Approx(1.5e-6));  // with that of the layer without parameters
    CHECK(loaded.scenario.layer_times[0].backward_s == Approx(5.5e-6));
    CHECK(loaded.scenario.layer_batch_size == 32);
    CHECK(loaded.notes.empty());
    CHECK(folder.read(with_cost("\"layers\": \"tables/astra.txt\"")).notes.size() == 1);

    // 2 * 10 * 16 operations a sample, at 1000 a second.
    loaded = folder.read(with_cost("\"layers\": \"tables/scale.csv\", \"layers_rate\": 1000"));
    CHECK(loaded.scenario.layer_times == std::vector<LayerTime>{{0.32, 0.32}});
    CHECK(loaded.scenario.layer_batch_size == 1);
    CHECK(loaded.resolved_json.find("layers_rate") == std::string::npos);
    CHECK(loaded.notes.empty());
    loaded = folder.read(with_cost(R"("layers": "tables/scale.csv", "layers_rate": "1kf", "layers_batch_size": 10)"));
    CHECK(loaded.scenario.layer_times == std::vector<LayerTime>{{3.2, 3.2}});
    CHECK(loaded.scenario.layer_batch_size == 10);
}

TEST_CASE("what does not go with layers is refused in one line") {
    const Folder folder;
    const std::pair<std::string, std::string> mistakes[] = {
        {R"("layers": [{"bytes": 8, "forward_s": 1}])", "cost.layers[0]: \"backward_s\" is missing beside forward_s"},
        {R"("layers": [{"bytes": 8, "backward_s": 1}])", "cost.layers[0]: \"forward_s\" is missing beside backward_s"},
        {R"("layers": [{"bytes": 8, "forward_s": 1, "backward_s": 1}, {"bytes": 8}])",
         "cost.layers[1]: has no seconds, and cost.layers[0] has some: expected them of all layers or of none"},
        {R"("layers": [{"bytes": 8}, {"bytes": 8, "forward_s": 1, "backward_s": 1}])",
         "cost.layers[1]: has seconds, and cost.layers[0] has none: expected them of all layers or of none"},
        {R"("layers": [{"bytes": 8}], "layers_batch_size": 3)",
         "cost.layers_batch_size: the layers have no seconds: expected forward_s and backward_s in each"},
        {R"("push_bytes": 8, "layers_batch_size": 3)",
         "cost.layers_batch_size: goes with cost.layers that have seconds"},
        {R"("layers": [{"bytes": 8}], "layers_rate": 3)", "cost.layers_rate: goes with cost.layers that name a table"},
        {R"("layers": [{"bytes": 0.4}])",
         "cost.layers[0].bytes: expected a number from 1 to 1000000000000000 or a string with a unit such as "
         "\"350kB\" or \"1MiB\", found the number 0.4"},
        {R"("layers": [{"bytes": 9e18}, {"bytes": 9e18}])",
         "cost.layers[0].bytes: expected a number from 1 to 1000000000000000 or a string with a unit such as "
         "\"350kB\" or \"1MiB\", found the number 9e+18"},
        {R"("layers": [{"bytes": 8, "forward_s": 0, "backward_s": "0ms"},
            {"bytes": 8, "forward_s": 0, "backward_s": 0}])",
         "cost.layers: take 0 s together: expected a forward_s or backward_s above 0, or none in any layer"},
        {R"("layers": [{"bytes": 8, "forward_s": -1, "backward_s": 1}])",
         "cost.layers[0].forward_s: expected a number from 0 to 1000000 or a string with a unit such as \"10us\" or "
         "\"5ms\", "
         "found "
         "the number -1"},
        {R"("layers": "")", "cost.layers: expected some text, found an empty string"},
        {R"("layers": 3)", "cost.layers: expected a string or an array, found the number 3"},
        {R"("layers": [])", "cost.layers: expected at least 1 entry, found 0"},
        {R"("layers": "tables/none.json")", "cost.layers: there is no file tables/none.json"},
        {R"("layers": "tables/scale.csv")",
         "cost.layers: a topology of SCALE-Sim has no seconds: expected cost.layers_rate beside it, such as \"5Tf\""},
        {R"("layers": "tables/astra.txt", "layers_rate": 3)",
         "cost.layers_rate: astra.txt does not tell the rate that its seconds are of: expected no such key"},
        {R"("layers": "tables/own.json", "layers_batch_size": 3)",
         "cost.layers_batch_size: the seconds of mine are for 64 samples, as it says itself: expected 64, or no such "
         "key"},
        {R"("layers": "tables/nothing.txt")", "cost.layers: tables/nothing.txt has no layer with parameters"},
        {R"("layers": "tables/own.json", "layers_rate": 0)",
         "cost.layers_rate: expected a number above 0 or a string with a unit such as \"100Gf\", found the number 0"},
        {R"("layers": "tables/own.json", "layers_batch_size": 0.5)",
         "cost.layers_batch_size: expected an integer from 1 to 2147483647, found the number 0.5"},
        {R"("layers": "tables/own.json", "push_bytes": 4)",
         "cost.layers: have 100 bytes together, and push_bytes says 4"},
    };
    for (const auto& [cost, message] : mistakes) CHECK(folder.refusal(with_cost(cost)) == "s.json:1: " + message);
    CHECK(folder.refusal(with_cost("\"layers\": \"tables/bad.csv\"")) ==
          "tables/bad.csv:3: expected 8 fields, as the header has, found 3");
    CHECK(folder.refusal(with_cost("\"layers\": \"tables/own.json\", \"layers_batch_size\": 64")).empty());
    CHECK(folder.refusal(with_cost("\"layers\": \"tables\"/")).starts_with("s.json:1: "));
    CHECK(folder.refusal(with_cost("\"layers\": \"./tables\"")) == "tables: is a folder, expected a file");
}
