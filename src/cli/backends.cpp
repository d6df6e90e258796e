#include "cli/backends.hpp"

#include "exec/local.hpp"
#include "sim/driver.hpp"

namespace rubato::cli {
namespace {

template <class Input>
Input fill(const BackendInput& from) {
    Input input;
    input.scenario = from.scenario;
    input.task = from.task;
    input.samples = from.samples;
    input.parameters = from.parameters;
    input.recorder = from.recorder;
    input.interrupted = from.interrupted;
    input.tick = from.tick;
    return input;
}

}  // namespace

std::vector<trace::Place> backend_places(const std::string& backend, const Scenario& scenario) {
    return backend == "local" ? exec::local_places(scenario) : sim::places(scenario);
}

trace::DriverReport run_backend(const std::string& backend, const BackendInput& input) {
    if (backend == "local") return exec::run_local(fill<exec::RunInput>(input));
    return sim::run(fill<sim::RunInput>(input));
}

}  // namespace rubato::cli
