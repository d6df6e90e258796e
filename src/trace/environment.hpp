// What program, on what, made a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace rubato::trace {

std::string program_version();
/// Git revision that was configured; "unknown" outside a checkout.
std::string program_revision();
/// Name and version of the compiler.
std::string compiler();
/// Versions of the libraries that this room uses, by name.
std::map<std::string, std::string> library_versions();
/// Largest resident size of this process so far, bytes.
std::int64_t peak_rss_bytes();

}  // namespace rubato::trace
