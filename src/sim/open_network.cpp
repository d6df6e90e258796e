// Opens a network model. SimGrid's is found in a shared module, so that commands that do not simulate never load
// SimGrid.
#include "sim/flow/flow_network.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace rubato::sim {

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

using OpenFunction = Network* (*)(const NetworkRequest*);

OpenFunction load(const std::string& file, const char* symbol) {
    std::string tried;
    for (const auto& folder : module_folders()) {
        std::error_code error;
        const fs::path path = folder / file;
        tried += (tried.empty() ? "" : ", ") + folder.string();
        if (!fs::exists(path, error)) continue;
        // Local, so that the MPI_* symbols of libsimgrid never meet those of an MPI library.
        void* module = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (module == nullptr) throw PlatformError("cannot load the network model " + path.string() + ": " + dlerror());
        if (void* entry = dlsym(module, symbol)) return reinterpret_cast<OpenFunction>(entry);
        throw PlatformError(path.string() + " is not a network model of this rubato: no " + symbol);
    }
    throw PlatformError("network model module " + file + " is not installed; looked in " + tried +
                        " (RUBATO_MODULES names another folder)");
}

}  // namespace

std::unique_ptr<Network> open_network(const NetworkRequest& request) {
    const std::string& model = request.scenario->cluster.network.model;
    if (model == "flow") return open_flow_network(request);
    if (model != "simgrid")
        throw PlatformError("unknown network model \"" + model + "\"; expected \"simgrid\" or \"flow\"");
    // Never closed: SimGrid keeps state for the whole process.
    static const OpenFunction open = load("rubato-simgrid.so", "rubato_open_simgrid");
    return std::unique_ptr<Network>(open(&request));
}

}  // namespace rubato::sim
