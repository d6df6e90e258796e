#include "trace/load_module.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

namespace rubato::trace {
namespace {

namespace fs = std::filesystem;

/// Where modules may lie, in the order of search: RUBATO_MODULES, beside the executable, in the folders above it (a
/// build tree), and where it is installed beside the program's folder, wherever that was moved to.
std::vector<fs::path> module_folders() {
    std::vector<fs::path> folders;
    if (const char* given = std::getenv("RUBATO_MODULES"); given && *given) folders.emplace_back(given);
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (!error) {
        const fs::path beside = program.parent_path();
        const fs::path above = beside.parent_path();
        folders.insert(folders.end(), {beside, above, above.parent_path(), above / RUBATO_MODULE_LIBDIR});
    }
    return folders;
}

}  // namespace

void* load_module(const std::string& file, const char* symbol) {
    std::string tried;
    for (const auto& folder : module_folders()) {
        std::error_code error;
        const fs::path path = folder / file;
        tried += (tried.empty() ? "" : ", ") + folder.string();
        if (!fs::exists(path, error)) continue;
        // Local, so that the MPI_* symbols of libsimgrid never meet those of an MPI library. Never closed: both
        // libraries keep state for the whole process.
        void* module = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (module == nullptr) throw ModuleError("cannot load the module " + path.string() + ": " + dlerror());
        if (void* entry = dlsym(module, symbol)) return entry;
        throw ModuleError(path.string() + " is not a module of this rubato: no " + symbol);
    }
    throw ModuleError("module " + file + " is not installed; looked in " + tried +
                      " (RUBATO_MODULES names another folder)");
}

void* load_file(const std::string& path, const char* symbol) {
    void* module = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) throw ModuleError("cannot load " + path + ": " + dlerror());
    return dlsym(module, symbol);
}

}  // namespace rubato::trace
