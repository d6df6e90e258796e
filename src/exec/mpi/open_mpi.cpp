#include "exec/mpi/fabric.hpp"
#include "trace/load_module.hpp"

namespace rubato::exec {

std::unique_ptr<Fabric> open_mpi() {
    using Open = Fabric* (*)();
    void* entry = nullptr;
    try {
        entry = trace::load_module("rubato-mpi.so", "rubato_open_mpi");
    } catch (const trace::ModuleError& problem) {
        throw FabricError(problem.what());
    }
    return std::unique_ptr<Fabric>(reinterpret_cast<Open>(entry)());
}

}  // namespace rubato::exec
