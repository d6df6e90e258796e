// The backends behind one call.
#pragma once

#include "core/scenario.hpp"
#include "trace/recorder.hpp"
#include "trace/run_input.hpp"

#include <memory>
#include <string>
#include <vector>

namespace rubato::cli {

/// A scenario on one backend, ready to run.
class Backend {
public:
    virtual ~Backend() = default;
    /// Where the roles run, by role.
    virtual std::vector<trace::Place> places() const = 0;
    /// What there is to remark, one line each.
    virtual std::vector<std::string> warnings() const = 0;
    /// Whether all steps are recorded from the thread that calls run().
    virtual bool one_thread() const = 0;
    virtual trace::DriverReport run(const trace::RunInput& input) = 0;
};

/// Throws InputError for a backend that is unknown or not yet built.
void require_backend(const std::string& backend);

/// Throws PlatformError where the modelled cluster is wrong. The scenario must outlive the result.
std::unique_ptr<Backend> open_backend(const std::string& backend, const Scenario& scenario);

/// Of backend mpi.
int ranks_needed(const Scenario& scenario);

struct BackendName {
    const char* name;
    const char* what;
    bool built;
};
const std::vector<BackendName>& backends();

}  // namespace rubato::cli
