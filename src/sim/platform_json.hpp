// Platform files in JSON: a star with units, for those who do not need SimGrid's XML.
#pragma once

#include "sim/star_platform.hpp"

#include <string>

namespace rubato::sim {

/// Reads a platform of kind "star" (docs: platforms/README.md). Throws PlatformError, one line with file and path.
StarPlatform read_platform_json(const std::string& path);

}  // namespace rubato::sim
