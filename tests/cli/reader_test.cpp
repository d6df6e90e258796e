// Every way in which a file can be no JSON, or not the JSON that was meant, gives one clear line.
#include "cli/json_reader.hpp"
#include "cli/scratch.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace rubato::cli;
using namespace std::string_literals;  // they keep zero bytes, and need no count

TEST_CASE("a broken file is told with its line") {
    CHECK(error_of("") == "scenario.json:1: expected a JSON object, found an empty file");
    CHECK(error_of("  \n\n") == "scenario.json:1: expected a JSON object, found an empty file");
    CHECK(error_of("[1, 2]") == "scenario.json:1: expected a JSON object, found an array");
    CHECK(error_of("{\"seed\": 1,\n}\n") == "scenario.json:2: trailing comma before '}'");
    CHECK(error_of("{\"faults\": [1,\n2,\n]\n}") == "scenario.json:3: trailing comma before ']'");
    CHECK(error_of("{\n\"workers\": {\"count\": 4,\n") ==
          "scenario.json:2: the file ends too early: the object that opens on line 2 is not closed");
    CHECK(error_of("{\n\"name\": \"a") == "scenario.json:2: a string is not closed");
    CHECK(error_of("{\"seed\": NaN}").find("scenario.json:1: \"NaN\" is not a JSON value") == 0);
    CHECK(error_of("{\n\n\"seed\": -Infinity}").find("scenario.json:3: \"-Infinity\" is not a JSON number") == 0);
    CHECK(error_of("{\"a\": True}").find("\"True\" is not a JSON value") != std::string::npos);
    CHECK(error_of("{\"seed\": 1e999}") == "scenario.json:1: the number 1e999 is too large");
    CHECK(error_of("\xef\xbb\xbf{}").find("scenario.json:1: starts with a byte order mark") == 0);
    CHECK(error_of("\xff\xfe{\0}\0"s).find("UTF-16") != std::string::npos);
    CHECK(error_of("\0{}"s) == "scenario.json:1: holds a zero byte: expected JSON text");
    CHECK(error_of("{\n\"seed\": 1}\n\0{"s) == "scenario.json:3: holds a zero byte: expected JSON text");
    CHECK(error_of("{\n\"name\": \"caf\xe9\"}") == "scenario.json:2: a string holds a byte that is not UTF-8");
    CHECK(error_of("{\"name\": \"a\nb\"}") == "scenario.json:1: a string holds a control character or a line break");
    CHECK(error_of("{ // seed\n}") == "scenario.json:1: JSON has no comments; use the key \"comment\"");
    CHECK(error_of("{'seed': 1}") == "scenario.json:1: JSON strings stand in double quotes");
    CHECK(error_of("{\"seed\": 1}\n}") == "scenario.json:2: something follows the end of the JSON value");
    CHECK(error_of("{\"seed\" 1}").find("scenario.json:1: expected ':', found \"") == 0);
    CHECK(error_of("{\"seed\": 1\n\"name\": \"a\"}").find("scenario.json:2: expected '}', found") == 0);
    CHECK(error_of(std::string(1000, '[')) == "scenario.json:1: nested deeper than 64 levels");
    CHECK(error_of("{\n\"seed\": 1,\n\"seed\": 2}") == "scenario.json:3: duplicate key \"seed\", already on line 2");
    CHECK(error_of("{\"workers\": {\"count\": 1,\n\"count\": 2}}") ==
          "scenario.json:2: duplicate key \"count\", already on line 1");
}

TEST_CASE("a file that cannot be read is told with its name") {
    const Scratch scratch;
    CHECK_THROWS_WITH_AS(read_scenario("no/such.json"), "no/such.json: cannot be read: No such file or directory",
                         InputError);
    CHECK_THROWS_WITH_AS(read_scenario(scratch.folder.string()),
                         (scratch.folder.string() + ": is a folder, expected a file").c_str(), InputError);
}

TEST_CASE("unknown keys are errors with a suggestion") {
    CHECK(error_of(small("\"optimizer\": {\n\"learing_rate\": 0.1}")) ==
          "scenario.json:6: optimizer.learing_rate: unknown key; did you mean \"learning_rate\"?");
    CHECK(error_of(small("\"learning_rate\": 0.1")) ==
          "scenario.json:5: learning_rate: unknown key; it belongs at optimizer.learning_rate");
    CHECK(error_of(small("\"optimizer\": {\"batch_size\": 4}")) ==
          "scenario.json:5: optimizer.batch_size: unknown key; it belongs at workers.batch_size");
    CHECK(error_of(small("\"lerning_rate\": 0.1")) ==
          "scenario.json:5: lerning_rate: unknown key; did you mean optimizer.learning_rate?");
    CHECK(error_of(small("\"trace\": {\"zzzzzzzz\": 1}")).find("unknown key; known are comment, gradients") !=
          std::string::npos);
    CHECK(error_of("{\"worker\": {\"count\": 2}, \"protocol\": {\"name\": \"async\"}}") ==
          "scenario.json:1: worker: unknown key; did you mean \"workers\"?");
    CHECK(error_of(small("\"cluster\": {\"devices\": {\"gpu\": {\"second\": {\"8\": 1}}}}")) ==
          "scenario.json:5: cluster.devices.gpu.second: unknown key; did you mean \"seconds\"?");
    CHECK(error_of(small("\"cluster\": {\"devices\": {\"gpu\": {\"seconds\": {\"eight\": 1}}}}")) ==
          "scenario.json:5: cluster.devices.gpu.seconds.eight: unknown key; expected a whole number such as \"8\"");
}

TEST_CASE("wrong types and ranges say what was expected and found") {
    CHECK(error_of("{\"cost\": {\"model\": \"alexnet\"}, \"protocol\": {\"name\": \"async\"},\n\"workers\": "
                   "{\"count\":\"8\"}}") ==
          "scenario.json:2: workers.count: expected an integer from 1 to 1000000, found the string \"8\"; write 8 "
          "without "
          "quotes");
    CHECK(error_of(small("\"seed\": -1"))
              .find("seed: expected an integer from 0 to 9223372036854775807, found the number -1") !=
          std::string::npos);
    CHECK(error_of(small("\"seed\": 1.5")).find("seed: expected an integer") != std::string::npos);
    CHECK(error_of(small("\"seed\": 1e30")).find("seed: expected an integer") != std::string::npos);
    CHECK(error_of(small("\"seed\": 18446744073709551615")).find("seed: expected an integer") != std::string::npos);
    CHECK(
        error_of(small("\"trace\": {\"events\": \"true\"}")) ==
        "scenario.json:5: trace.events: expected true or false, found the string \"true\"; write true without quotes");
    CHECK(error_of(small("\"trace\": {\"gradients\": 3}")) ==
          "scenario.json:5: trace.gradients: expected true or false or an object with \"every\", found the number 3");
    CHECK(error_of(small(), {"protocol=async"}) ==
          "--set protocol=async: protocol: expected an object, found the string \"async\"; did you mean {\"name\": "
          "\"async\"}?");
    CHECK(error_of(small("\"data\": {\"shape\": [28, 28]}")) ==
          "scenario.json:5: data.shape: expected 3 entries, found 2");
    CHECK(error_of(small("\"data\": {\"validation\": 1}")) ==
          "scenario.json:5: data.validation: expected a number of at least 0 and below 1, found the number 1");
    CHECK(error_of(small("\"name\": \"a/b\"")).find("scenario.json:5: name: expected text that matches") == 0);
    CHECK(error_of("{\"workers\": {\"count\": 2}}") == "scenario.json:1: \"protocol\" is missing: expected an object");
    CHECK(error_of(small("\"workers2\": 1")).find("workers2: unknown key; did you mean \"workers\"?") !=
          std::string::npos);
    CHECK(error_of(learning("\"stop\": {\"target\": {\"metric\": \"valid_error\"}}")).find("\"at_most\" is missing") !=
          std::string::npos);
}

TEST_CASE("names of values are suggested, and reserved ones refused with \"not yet\"") {
    CHECK(error_of(small(), {"protocol.name=hardsink"}) ==
          "--set protocol.name=hardsink: protocol.name: expected one of \"hardsync\", \"n-softsync\", \"async\", "
          "\"bsp\", \"asp\", \"ssp\", \"dssp\", \"bounded-delay\", \"backup-workers\", \"rennala\", \"ringmaster\", "
          "\"admission\", \"plugin\", \"sparknet\", \"easgd\", \"mpca\", \"local-sgd\", \"diloco\", "
          "\"async-diloco\", \"gosgd\", \"streaming-diloco\", "
          "\"allreduce\", \"no-comm\", \"layer-wise\", \"delayed\" or \"adaptive-delay\", found the string "
          "\"hardsink\"; did you mean \"hardsync\"?");
    CHECK(
        error_of(small(), {"protocol.name=gadei"})
            .starts_with("--set protocol.name=gadei: protocol.name: \"gadei\" is reserved, but not yet built; there is "
                         "\"hardsync\", \"n-softsync\", \"async\", "));
    CHECK(error_of(small("\"topology\": {\"name\": \"elastic\"}"))
              .find("topology.name: \"elastic\" is reserved, but not yet built") != std::string::npos);
    CHECK(error_of(small("\"faults\": [{\"unti_s\": 1}]")) ==
          "scenario.json:5: faults[0].unti_s: unknown key; did you mean \"until_s\"?");
    CHECK(error_of(small("\"faults\": []")).empty());
    CHECK(error_of(small("\"cost\": {}")).find("duplicate key") != std::string::npos);
    CHECK(error_of(small("\"execution\": {\"restart_workers\": true}")).find("not yet built") != std::string::npos);
    CHECK(error_of(small("\"execution\": {\"threads_per_worker\": 2}")).find("not yet built") != std::string::npos);
    CHECK(error_of(small("\"cluster\": {\"network\": {\"model\": \"flow\"}}")).empty());
    CHECK(error_of(small("\"cluster\": {\"network\": {\"model\": \"flow\", \"simgrid\": \"LV08\"}}")) ==
          "scenario.json:5: cluster.network.simgrid: goes with model \"simgrid\", here model is \"flow\"");
    CHECK(error_of(small("\"optimizer\": {\"staleness_rule\": \"inverse_n\"}")).find("did you mean \"inverse-n\"?") !=
          std::string::npos);
}

TEST_CASE("every message is one line") {
    const std::string broken[] = {"{\"na\nme\": 1}", small("\"na\\nme\": 1"), small("\"name\": \"\\u0001\"")};
    for (const auto& text : broken) {
        const std::string message = error_of(text);
        CHECK(!message.empty());
        CHECK(message.find('\n') == std::string::npos);
    }
}

TEST_CASE("a message about long text shows its beginning and its end, and cuts no character") {
    const std::string longer(5000, 'x');
    std::string umlauts;
    for (int i = 0; i < 3000; ++i) umlauts += "ä";
    for (const auto& text : {longer, umlauts, "x" + umlauts}) {
        for (const std::string& message :
             {error_of(small(), {"workers.groups=\"" + text + "\""}), error_of(small(), {text + "=1"}),
              error_of(small("\"" + text + "\": 1")), error_of(small("\"name\": \"" + text + "/\""))}) {
            CHECK(!message.empty());
            CHECK(message.size() < 1600);
            CHECK(is_utf8(message));
        }
    }
    CHECK(error_of(small(), {"workers.groups=\"" + longer + "\""}).find(" ...: workers.groups: ") != std::string::npos);
    CHECK(error_of(small(), {"workers.count=\"" + std::string(100, '8') + "\""}).find(" ... ") == std::string::npos);
}
