// What stands below the options in the help of each command: examples, and what is worth knowing.
#pragma once

#include <string>

namespace rubato::cli {

std::string footer_of(const std::string& command);

}  // namespace rubato::cli
