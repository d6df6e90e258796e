// Parts of the program that are loaded when they are needed: what links SimGrid and what links MPI never meet.
#pragma once

#include <stdexcept>
#include <string>

namespace rubato::trace {

/// A module is missing, broken or of another version; what() is one line.
struct ModuleError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Loads the module in `file` and returns its function `symbol`. It is looked for in the folder that RUBATO_MODULES
/// names, beside the program and above it (a build tree), and where it is installed. Throws ModuleError.
void* load_module(const std::string& file, const char* symbol);

/// Loads the file at `path`, wherever it lies, with all that it needs, and returns its function `symbol`; null where it
/// has none. Throws ModuleError where it cannot be loaded.
void* load_file(const std::string& path, const char* symbol);

}  // namespace rubato::trace
