#pragma once

#include <cstdint>
#include <string>

namespace rubato::trace {

struct ReplayResult {
    bool same = true;
    std::int64_t lines = 0;
    std::int64_t steps = 0;
    std::string difference;  ///< one line: role, event, line of the log, recorded and replayed action
    bool complete = true;    ///< false: the log breaks off, as that of a killed run does; what is there was replayed
};

}  // namespace rubato::trace
