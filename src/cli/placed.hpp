// Where a scenario says what the modelled cluster finds wrong.
#pragma once

#include "cli/load.hpp"
#include "sim/network.hpp"

namespace rubato::cli {

/// The same error, with the place of the key that its text begins with ("cluster.server_host: ..."), or, where that is
/// not written anywhere, of what it would stand in.
InputError placed(const Loaded& loaded, const sim::PlatformError& error);

/// What `open` returns; a PlatformError that it throws becomes an InputError with its place in the scenario.
template <class Open>
auto with_place(const Loaded& loaded, Open&& open) {
    try {
        return open();
    } catch (const sim::PlatformError& error) {
        throw placed(loaded, error);
    }
}

}  // namespace rubato::cli
