// Layer tables: the three formats, what does not matter in them, and what is refused.
#include "cli/layer_table.hpp"

#include "cli/error.hpp"
#include "learn/catalogue.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <utility>

using namespace rubato;
using namespace rubato::cli;
using doctest::Approx;
using Format = LayerTable::Format;

namespace {

const std::string json = R"({"name": "net", "source": "somebody", "comment": "c", "batch_size": 8, "flops_per_s": 1e9,
"layers": [
  {"name": "a", "parameters": 10, "forward_s": 0.5, "backward_s": 0.75},
  {"name": "pool", "parameters": 0, "forward_s": 0.25, "backward_s": 0},
  {"name": "b", "parameters": 20, "forward_s": 1, "backward_s": 2}]})";

const std::string astra =
    "DATA\n2\n"
    "conv -1 1000 NONE 0 2000 NONE 0 3000 ALLREDUCE 400 7\n"
    "fc -1 10 NONE 0 20 NONE 0 30.5 ALLREDUCE 41\n";

const std::string scale =
    "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n"
    "conv, 9, 8, 3, 2, 4, 5, 2,\n"
    "fc, 1, 1, 1, 1, 10, 3, 1,\n";

LayerTable parse(const std::string& text) {
    return parse_layer_table(text, "t");
}

/// The message about a text; empty when it is accepted.
std::string error_of(const std::string& text) {
    try {
        parse(text);
    } catch (const InputError& error) {
        CHECK(std::string(error.what()).find('\n') == std::string::npos);
        return error.what();
    }
    return {};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    REQUIRE_MESSAGE(at != std::string::npos, from);
    return text.replace(at, from.size(), to);
}

std::string replaced_all(std::string text, const std::string& from, const std::string& to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    return text;
}

using Mistakes = std::vector<std::pair<std::string, std::string>>;

void check_all(const Mistakes& mistakes) {
    for (const auto& [text, message] : mistakes) CHECK(error_of(text) == message);
}

}  // namespace

TEST_CASE("rubato's own layer tables are read") {
    const LayerTable table = parse(json);
    CHECK(table.format == Format::json);
    CHECK(table.name == "net");
    CHECK(table.source == "somebody");
    CHECK(table.batch_size == 8);
    CHECK(table.flops_per_s == 1e9);
    CHECK(table.layers == std::vector<LayerCost>{{"a", 10, 0.5, 0.75}, {"pool", 0, 0.25, 0}, {"b", 20, 1, 2}});
    CHECK(table.parameters() == 30);
    CHECK(table.forward_s() == 1.75);
    CHECK(table.backward_s() == 2.75);
    CHECK(parse(replaced(json, "\"batch_size\": 8, ", "")).batch_size == 0);
    CHECK(parse("\r\n\t " + replaced_all(json, "\n", "\r\n")) == table);
}

TEST_CASE("workloads of ASTRA-sim are read: times in ns, 4 bytes a parameter") {
    const LayerTable table = parse(astra);
    CHECK(table.format == Format::astra_sim);
    CHECK(table.name == "t");
    CHECK(table.batch_size == 0);
    REQUIRE(table.layers.size() == 2);
    CHECK(table.layers[0].name == "conv");
    CHECK(table.layers[0].parameters == 100);
    CHECK(table.layers[0].forward_s == Approx(1e-6));
    CHECK(table.layers[0].backward_s == Approx(5e-6));
    CHECK(table.layers[1].parameters == 11);  // rounded up
    CHECK(table.layers[1].backward_s == Approx(50.5e-9));
    CHECK_FALSE(table.takes_rate());
    const std::string transformer = replaced(astra, "DATA", "HYBRID_TRANSFORMER model_parallel_NPU_group: 8");
    CHECK(parse(transformer).layers == table.layers);
    const std::string customized =
        replaced(replaced(replaced(astra, "DATA", "HYBRID_CUSTOMIZED"), "400 7", "400 7 DATA"), "41", "41 7 MODEL");
    CHECK(parse(customized).layers == table.layers);
}

TEST_CASE("topologies of SCALE-Sim are read: parameters and operations, and seconds at a rate") {
    LayerTable table = parse(scale);
    CHECK(table.format == Format::scale_sim);
    REQUIRE(table.layers.size() == 2);
    CHECK(table.layers[0] == LayerCost{"conv", 3 * 2 * 4 * 5, 0, 0});
    CHECK(table.layers[1] == LayerCost{"fc", 30, 0, 0});
    // (9 - 3 + 2) / 2 by (8 - 2 + 2) / 2 places.
    CHECK(table.forward_flops == std::vector<double>{2 * 120 * 4 * 4, 60});
    // 7 - 3 + 2 = 6 and 8 - 2 + 3 = 9, by strides of 2 and 3; then with one place more that is not whole.
    const std::string two =
        replaced(replaced(replaced(scale, "Strides,", "Stride H, Stride W"), "5, 2,", "5, 2, 3"), "3, 1,", "3, 1, 1,");
    CHECK(parse(replaced(two, "conv, 9", "conv, 7")).forward_flops == std::vector<double>{2 * 120 * 3 * 3, 60});
    CHECK(parse(replaced(two, "conv, 9", "conv, 8")).forward_flops == std::vector<double>{2 * 120 * 4 * 3, 60});
    table.take_rate(1000, 10);
    CHECK(table.batch_size == 10);
    CHECK(table.layers[0].forward_s == Approx(38.4));
    CHECK(table.layers[0].backward_s == Approx(38.4));  // nobody needs the gradient of the input
    CHECK(table.layers[1].forward_s == Approx(0.6));
    CHECK(table.layers[1].backward_s == Approx(1.2));
}

TEST_CASE("ends of lines, tabs, trailing commas and blank lines do not matter") {
    for (const std::string& text : {astra, scale}) {
        const LayerTable table = parse(text);
        CHECK(parse(replaced_all(text, "\n", "\r\n")) == table);
        CHECK(parse(replaced_all(text, " ", "\t")) == table);
        CHECK(parse(replaced_all(text, " ", " \t  ")) == table);
        CHECK(parse(replaced_all(text, "\n", "\n\n \t\r\n")) == table);
        CHECK(parse(replaced_all(text, "\n", " , ,\n")) == table);
        CHECK(parse("\n\n" + replaced_all(text, "\n", "\n  ")) == table);
        CHECK(parse(text.substr(0, text.size() - 1)) == table);
        CHECK(parse("\xEF\xBB\xBF" + text) == table);
    }
    CHECK(parse(replaced_all(replaced_all(scale, " ", ""), ",\n", "\n")).layers[1] == parse(scale).layers[1]);
}

TEST_CASE("layers without parameters become part of the one before") {
    LayerTable table = parse(json);
    table.fold();
    CHECK(table.layers == std::vector<LayerCost>{{"a", 10, 0.75, 0.75}, {"b", 20, 1, 2}});
    table = parse(replaced(json, "\"parameters\": 10", "\"parameters\": 0"));
    table.fold();
    CHECK(table.layers == std::vector<LayerCost>{{"b", 20, 1.75, 2.75}});
    table = parse(replaced_all(replaced_all(json, "10", "0"), "20", "0"));
    table.fold();
    CHECK(table.layers.size() == 3);
}

TEST_CASE("the seconds of a table follow another rate") {
    LayerTable table = parse(json);
    table.take_rate(4e9, 8);
    CHECK(table.layers[2] == LayerCost{"b", 20, 0.25, 0.5});
    CHECK(table.flops_per_s == 4e9);
    CHECK(table.batch_size == 8);
}

TEST_CASE("what is no layer table is refused in one line") {
    const std::string expected =
        "expected a layer table: JSON, a workload of ASTRA-sim, which begins with its parallelism such as DATA, or a "
        "topology of SCALE-Sim, which begins with its header; found ";
    check_all({
        {"", "t: expected a layer table, found an empty file"},
        {" \r\n,,\n", "t: expected a layer table, found an empty file"},
        {"DATA\n1\na\xff", "t: holds a byte that is not UTF-8"},
        {"\nHYBRID_DLMR\n1\n", "t:2: " + expected + "the string \"HYBRID_DLMR\"; did you mean HYBRID_DLRM?"},
        {"54\n", "t:1: " + expected + "the string \"54\""},
    });
}

TEST_CASE("mistakes in JSON tables name the line and the key") {
    const auto with = [](const std::string& from, const std::string& to) { return replaced(json, from, to); };
    check_all({
        {"[1]", "t:1: expected a JSON object, found an array"},
        {with("\"name\": \"net\", ", ""), "t:1: \"name\" is missing: expected a string"},
        {with("batch_size", "batchsize"), "t:1: batchsize: unknown key; did you mean \"batch_size\"?"},
        {with("\"comment\": \"c\"", "\"protocol\": {}"),
         "t:1: protocol: unknown key; this is a key of scenarios, and the file should be a layer table"},
        {with("8", "0"), "t:1: batch_size: expected an integer from 1 to 2147483647, found the number 0"},
        {with("\"parameters\": 20", "\"params\": 20"),
         "t:5: layers[2].params: unknown key; known are comment, name, parameters, forward_s and backward_s"},
        {with("\"parameters\": 20, ", ""),
         "t:5: layers[2]: \"parameters\" is missing: expected an integer from 0 to 250000000000000"},
        {with("\"parameters\": 20", "\"parameters\": 2.5"),
         "t:5: layers[2].parameters: expected an integer from 0 to 250000000000000, found the number 2.5"},
        {with("\"forward_s\": 1", "\"forward_s\": -1"),
         "t:5: layers[2].forward_s: expected a number from 0 to 1000000, found the number -1"},
        {with("\"backward_s\": 2", "\"backward_s\": \"2\""),
         "t:5: layers[2].backward_s: expected a number from 0 to 1000000, found the string \"2\"; write 2 without "
         "quotes"},
    });
    CHECK(error_of(R"({"name": "n", "layers": []})") == "t:1: layers: expected at least 1 entry, found 0");
    CHECK(error_of(R"({"name": "n", "layers": [3]})") == "t:1: layers[0]: expected an object, found the number 3");
}

TEST_CASE("mistakes in workloads of ASTRA-sim name the line and the field") {
    const auto with = [](const std::string& from, const std::string& to) { return replaced(astra, from, to); };
    const std::string fields =
        "expected the 11 or 12 fields of a layer (name, dependency, then time, communication and bytes three times, "
        "time of the update), found ";
    check_all({
        {"DATA", "t:1: expected a line with the number of layers next"},
        {with("2\n", "two\n"), "t:2: expected the number of layers, 1 to 2000, found the string \"two\""},
        {with("2\n", "2.5\n"), "t:2: expected the number of layers, 1 to 2000, found the string \"2.5\""},
        {with("2\n", "0\n"), "t:2: expected the number of layers, 1 to 2000, found the string \"0\""},
        {with("2\n", "-2\n"), "t:2: expected the number of layers, 1 to 2000, found the string \"-2\""},
        {with("2\n", "3000\n"), "t:2: expected the number of layers, 1 to 2000, found the string \"3000\""},
        {with("2\n", "2 3\n"), "t:2: expected the number of layers, 1 to 2000, found the string \"2 3\""},
        {with("2\n", "3\n"), "t:2: expected 3 layers, as this line says, found 2"},
        {with("2\n", "1\n"), "t:4: expected 1 layers, as line 2 says, found one more"},
        {with(" ALLREDUCE 41", " ALLREDUCE"), "t:4: " + fields + "10"},
        {with("41", "41 7 8"), "t:4: " + fields + "13"},
        {with("fc -1", "fc x"),
         "t:4: field 2 (dependency): expected an integer of at least -1, found the string \"x\""},
        {with("1000", "1e99"),
         "t:3: field 3 (forward time): expected nanoseconds from 0 to 1e15, found the string "
         "\"1e99\""},
        {with("1000", "nan"),
         "t:3: field 3 (forward time): expected nanoseconds from 0 to 1e15, found the string \"nan\""},
        {with("2000", "-1"),
         "t:3: field 6 (time of the input gradient): expected nanoseconds from 0 to 1e15, found the "
         "string \"-1\""},
        {with("30.5", "30,5"),
         "t:4: field 9 (time of the weight gradient): expected nanoseconds from 0 to 1e15, found "
         "the string \"30,5\""},
        {with("400", "-4"),
         "t:3: field 11 (bytes of the weight gradient): expected whole bytes from 0 to 1e15, found "
         "the string \"-4\""},
        {with("41", "41.5"),
         "t:4: field 11 (bytes of the weight gradient): expected whole bytes from 0 to 1e15, found "
         "the string \"41.5\""},
        {with("400 7", "400 -7"),
         "t:3: field 12 (time of the update): expected nanoseconds from 0 to 1e15, found the string \"-7\""},
        {with("ALLREDUCE 400", "40 400"),
         "t:3: field 10 (communication of the weight gradient): expected a kind such "
         "as NONE or ALLREDUCE, found the string \"40\""},
    });
    CHECK(error_of(replaced(astra, "DATA", "HYBRID_CUSTOMIZED")) ==
          "t:3: expected the 13 fields of a layer (name, dependency, then time, communication and bytes three times, "
          "time of the update, parallelism), found 12");
}

TEST_CASE("mistakes in topologies of SCALE-Sim name the line and the field") {
    const auto with = [](const std::string& from, const std::string& to) { return replaced(scale, from, to); };
    const std::string header =
        "expected the header \"Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num "
        "Filter, Strides\"";
    const std::string whole = "expected an integer from 1 to 1000000, found ";
    check_all({
        {scale.substr(scale.find('\n') + 1), "t:1: " + header + ", found a line with numbers"},
        {"Layer, M, N, K,\na, 1, 2, 3,\n",
         "t:1: " + header + ", found 4 columns: topologies of matrix products (M, N, K) are not read"},
        {"Layer name, IFMAP Height,\n", "t:1: " + header + " (or with two strides), found 2 columns"},
        {scale.substr(0, scale.find('\n')), "t:1: expected lines of layers below the header, found none"},
        {with("5, 2,", "5,"), "t:2: expected 8 fields, as the header has, found 7"},
        {with("5, 2,", "5, 2, 3,"), "t:2: expected 8 fields, as the header has, found 9"},
        {with("conv,", ","), "t:2: field 1 (layer name): expected some text, found nothing"},
        {with("conv, 9", "conv, "), "t:2: field 2 (input height): " + whole + "nothing"},
        {with("conv, 9", "conv, nine"), "t:2: field 2 (input height): " + whole + "the string \"nine\""},
        {with("5, 2,", "5, 0,"), "t:2: field 8 (stride): " + whole + "the string \"0\""},
        {with("10, 3,", "10, -3,"), "t:3: field 7 (filters): " + whole + "the string \"-3\""},
        {with("10, 3,", "1.5, 3,"), "t:3: field 6 (channels): " + whole + "the string \"1.5\""},
        {with("10, 3,", "2000000, 3,"), "t:3: field 6 (channels): " + whole + "the string \"2000000\""},
        {with("conv, 9, 8, 3", "conv, 9, 8, 10"),
         "t:2: field 4 (filter height): expected at most the input height of 9, found 10"},
        {with("3, 2, 4", "3, 9, 4"), "t:2: field 5 (filter width): expected at most the input width of 8, found 9"},
        {with("conv, 9, 8, 3, 2, 4, 5", "conv, 1000, 1000, 1000, 1000, 100000, 100000"),
         "t:2: expected at most 2.5e14 parameters, found 1e+16"},
    });
    std::string many = scale;
    for (int i = 0; i < 1998; ++i) many += "x, 1, 1, 1, 1, 1, 1, 1\n";
    CHECK(parse(many).layers.size() == 2000);
    CHECK(error_of(many + "x, 1, 1, 1, 1, 1, 1, 1\n") == "t:2002: expected at most 2000 layers, found more");
}

TEST_CASE("tables that ship agree with the catalogue where both have a network") {
    const auto known = shipped_tables();
    CHECK(known == std::vector<std::string>{"alexnet", "cifar10-full", "googlenet", "nlc-cnn", "resnet110", "resnet152",
                                            "resnet34", "resnet50", "vgg-a"});
    int both = 0;
    for (const auto& name : known) {
        const LayerTable table = read_layer_table(shipped_table(name));
        CHECK(table.name == name);
        const learn::CatalogueEntry* entry = learn::find(name);
        if (entry == nullptr) continue;
        ++both;
        CHECK(table.parameters() == entry->parameters);
        REQUIRE(table.layers.size() == entry->layers.size());
        for (std::size_t i = 0; i < table.layers.size(); ++i) {
            CHECK(table.layers[i].name == entry->layers[i].name);
            CHECK(table.layers[i].parameters == entry->layers[i].parameters);
        }
        // The catalogue counts three forward passes, and rounds.
        const double flops = table.forward_s() * table.flops_per_s / table.batch_size;
        CHECK(3 * flops == Approx(entry->flops_per_sample).epsilon(0.005));
    }
    CHECK(both == 3);
}
