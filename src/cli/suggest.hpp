// "did you mean", for names of scenarios and the command line: the same words as for platform files
// (sim/platform/suggest.hpp).
#pragma once

#include "sim/platform/suggest.hpp"

namespace rubato::cli {

using sim::edit_distance;
using sim::nearest;
using sim::one_of;

}  // namespace rubato::cli
