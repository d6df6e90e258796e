#include "cli/backends.hpp"
#include "cli/error.hpp"
#include "cli/suggest.hpp"

namespace rubato::cli {

const std::vector<BackendName>& backends() {
    static const std::vector<BackendName> all{
        {"sim", "virtual time over a modelled cluster", true},
        {"local", "real time, the roles as threads of one process", true},
        {"mpi", "real time, the roles on the ranks of mpirun", true},
        {"shm", "real time, processes that share memory", false},
    };
    return all;
}

void require_backend(const std::string& backend) {
    std::vector<std::string> names;
    for (const auto& known : backends()) {
        names.emplace_back(known.name);
        if (backend != known.name) continue;
        if (known.built) return;
        throw InputError("--backend " + backend + ": is reserved, but not yet built; there is sim, local or mpi");
    }
    const std::string near = nearest(backend, names);
    throw InputError("--backend " + backend + ": expected sim, local or mpi" +
                     (near.empty() ? "" : "; did you mean " + near + "?"));
}

}  // namespace rubato::cli
