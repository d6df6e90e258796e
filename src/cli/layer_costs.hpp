// cost.layers of a scenario: sizes and seconds of the layers, said there or in a table.
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// Replaces the name or path of a table in cost.layers by the layers themselves, so that the saved scenario needs no
/// table, and cost.layers_rate by the seconds that it gives. Before the walk; what is malformed is left for the walk to
/// refuse. Throws InputError where the table cannot be read or does not go with the keys beside it.
void use_layer_tables(Node& root);

/// cost.push_bytes of cost.layers, where it is not given, and cost.layers_batch_size where layers have seconds. Throws
/// InputError where a layer has one of its seconds alone, or some layers have them and others not.
void complete_layers(Node& root, std::vector<std::string>& notes);

/// Sizes in bytes and seconds of cost.layers. Throws InputError where the sizes are not push_bytes together.
void build_layers(const Node& cost, std::int64_t push_bytes, Scenario& scenario);

/// "8, of 60,965,224 parameters; forward 69.98 ms, backward 129.8 ms for a batch of 256", as `rubato check` shows them.
std::string layers_text(const Scenario& scenario);

}  // namespace rubato::cli
