// Reading a scenario: from a file and the command line to the typed value.
#pragma once

#include "cli/error.hpp"
#include "cli/node.hpp"
#include "core/scenario.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace rubato::cli {

struct Loaded {
    Scenario scenario;
    std::string resolved_json;       ///< self-contained: defaults filled in, `extends` gone, absolute paths
    std::vector<std::string> notes;  ///< what the user should know, one line each
    Node tree;                       ///< what resolved_json says, with lines
    std::int64_t samples = 0;        ///< training samples of one epoch
    std::int64_t parameters = 0;     ///< of the learning model; 0 where there is none
};

/// Reads, checks and completes. `sets`: "a.b=VALUE", as on the command line. Throws InputError.
Loaded load_scenario(const std::string& path, const std::vector<std::string>& sets = {});

/// The same without what only the learning room knows: samples, parameters, and sizes of messages that the model
/// gives, are left 0.
Loaded read_scenario(const std::string& path, const std::vector<std::string>& sets = {});

/// Checks and completes layers that are settled already; resolved_json and what read_scenario leaves out stay empty.
/// default_name: of a scenario without a name.
Loaded resolve_layers(Node tree, const std::string& default_name);

/// Fills samples, parameters and the sizes of messages from the learning room, and checks what depends on them; and
/// what a schedule has to say.
void complete_sizes(Loaded& loaded);

/// Where the scenario has a schedule: reads its trace, follows it to its end, and fills in the checksum. Where no
/// criterion ends the run before, stop.gradients becomes what the trace holds. Throws InputError: file and line of the
/// trace. samples and parameters are there.
void complete_schedule(Loaded& loaded);

/// Throws InputError where a file that the scenario names is missing.
void require_files(const Loaded& loaded);

/// Eight hexadecimal digits of the resolved scenario, comments left out; part of the run directory's name.
std::string hash8(const Loaded& loaded, const std::string& salt = "");

}  // namespace rubato::cli
