#include "learn/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace rubato::learn {

int usable_cores() {
    cpu_set_t set;
    // Fails where the machine has more cores than the set has room for.
    const bool known = ::sched_getaffinity(0, sizeof set, &set) == 0;
    return std::max(1, known ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace rubato::learn
