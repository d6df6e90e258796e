#include "learn/cores.hpp"

#include <sched.h>

#include <algorithm>

namespace rubato::learn {

int usable_cores() {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return std::max(1, CPU_COUNT(&set));
}

}  // namespace rubato::learn
