#include "cli/compare/substitute.hpp"

#include "cli/backends.hpp"
#include "cli/calibrate/of_run.hpp"
#include "cli/compare/figures.hpp"
#include "cli/load.hpp"
#include "cli/suggest.hpp"
#include "learn/task.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace rubato::cli {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> part_names{"compute", "network", "server"};

/// A folder for a run that nobody keeps.
class ScratchFolder {
public:
    ScratchFolder() {
        std::string name = (fs::temp_directory_path() / "rubato-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr)
            throw InputError(name + ": cannot be made; TMPDIR names another folder for a simulation's tables");
        path_ = name;
    }
    ~ScratchFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

/// Each worker as a group of its own, with a class of devices of its own; false where that would move workers to other
/// hosts.
bool divide_workers(Node& tree, int lambda) {
    Node& workers = *tree.find("workers");
    const auto crowded = [](const Node& group) {
        const Node* per_host = group.find("per_host");
        return per_host && per_host->whole() > 1;
    };
    const Node* groups = workers.find("groups");
    if (groups ? std::any_of(groups->items.begin(), groups->items.end(), crowded) : crowded(workers)) return false;
    const Node* first = groups && !groups->items.empty() ? &groups->items.front() : &workers;
    const Node* per_host = first->find("per_host");
    Node list;
    list.kind = Node::Kind::array;
    for (int worker = 0; worker < lambda; ++worker) {
        Node group = Node::object();
        group.set("count", Node::of(std::int64_t{1}), {});
        group.set("device", Node::of(worker_class(worker)), {});
        if (per_host) group.set("per_host", *per_host, {});
        list.items.push_back(std::move(group));
    }
    for (const char* key : {"count", "device", "per_host"}) workers.erase(key);
    workers.set("groups", std::move(list), {});
    return true;
}

/// Nothing but times: gradients, where they need not be computed, evaluations and long tables are left out.
void keep_times_only(Node& tree) {
    Node trace = Node::object();
    for (const char* key : {"gradients", "updates"}) trace.set(key, Node::of(true), {});
    for (const char* key : {"timeline", "events"}) trace.set(key, Node::of(false), {});
    tree.set("trace", std::move(trace), {});
    Node* model = tree.find("model");
    const Node* stop = tree.find("stop");
    if (!model || !model->find("gradients") || (stop && stop->find("target"))) return;
    model->set("gradients", Node::of(std::string("none")), {});
    tree.erase("evaluate");
}

Loaded with_part(const RecordedRun& predicted, const RecordedRun& measured, const Part& part,
                 std::vector<std::string>& notes) {
    Node tree = predicted.scenario;
    keep_times_only(tree);
    RunProfileOptions options;
    options.by_worker = part.parts.compute && divide_workers(tree, predicted.lambda());
    const Profile profile = profile_of_run(measured.directory, options);
    notes = profile.notes;
    const auto missing = [&](bool wanted, bool there, const char* name) {
        if (wanted && !there)
            throw InputError("compare: --substitute " + std::string(name) + ": " + measured.directory +
                             " does not tell; expected a run that sends and applies gradients");
    };
    missing(part.parts.compute, !profile.compute.empty(), "compute");
    missing(part.parts.server, profile.server.has_value(), "server");
    missing(part.parts.network, profile.network.has_value(), "network");
    const Node* cluster = tree.find("cluster");
    if (part.parts.network && cluster && cluster->find("platform"))
        throw InputError(predicted.directory + ": --substitute network: the scenario names a platform file; expected " +
                         "cluster.network.star, which the figures of a run are for");
    const Where where{std::make_shared<const std::string>("the profile of " + measured.directory), 0, 0};
    put_profile(tree, profile, where, part.parts, true);
    Loaded loaded = resolve_layers(std::move(tree), predicted.summary.scenario);
    complete_sizes(loaded);
    loaded.resolved_json = to_json(loaded.tree);
    return loaded;
}

RecordedRun simulate(const Loaded& loaded) {
    const Scenario& scenario = loaded.scenario;
    const ScratchFolder folder;
    const auto task = scenario.model.gradients ? learn::make_task(scenario) : nullptr;
    const auto backend = open_backend("sim", scenario);
    trace::RecorderOptions output;
    output.directory = folder.path();
    output.scenario_json = loaded.resolved_json;
    output.samples = loaded.samples;
    output.parameters = loaded.parameters;
    output.one_thread = backend->one_thread();
    output.places = backend->places();
    trace::Recorder recorder(scenario, output);
    trace::RunInput input;
    input.scenario = &scenario;
    input.task = task.get();
    input.samples = loaded.samples;
    input.parameters = loaded.parameters;
    input.recorder = &recorder;
    recorder.finish(backend->run(input));
    std::vector<std::string> warnings;
    return read_recorded_run(folder.path(), warnings);
}

struct Means {
    double seconds = 0, samples_per_s = 0, staleness = 0;

    void add(const RecordedRun& run, double factor) {
        seconds += factor * seconds_per_gradient(phases_of(run)).sum();
        samples_per_s += factor * run.summary.steady_samples_per_s.value_or(run.summary.samples_per_s.value_or(0));
        staleness += factor * run.summary.staleness_steady_mean.value_or(run.summary.staleness_mean.value_or(0));
    }
};

Means means_of(const std::vector<RecordedRun>& runs) {
    Means out;
    for (const auto& run : runs) out.add(run, 1 / static_cast<double>(runs.size()));
    return out;
}

}  // namespace

std::vector<Part> parse_parts(const std::vector<std::string>& names) {
    std::vector<Part> parts;
    Part all{"together", {false, false, false}};
    for (const auto& name : names) {
        if (std::find(part_names.begin(), part_names.end(), name) == part_names.end()) {
            const std::string near = nearest(name, part_names);
            throw InputError("compare: --substitute " + name + ": expected " + one_of(part_names) +
                             (near.empty() ? "" : "; did you mean " + near + "?"));
        }
        if (std::any_of(parts.begin(), parts.end(), [&](const Part& it) { return it.name == name; }))
            throw InputError("compare: --substitute " + name + " is given twice");
        parts.push_back({name, {name == "compute", name == "server", name == "network"}});
        all.parts.compute = all.parts.compute || name == "compute";
        all.parts.server = all.parts.server || name == "server";
        all.parts.network = all.parts.network || name == "network";
    }
    if (parts.size() > 1) parts.push_back(all);
    return parts;
}

std::vector<Substitution> substitute(const std::vector<RecordedRun>& predicted,
                                     const std::vector<RecordedRun>& measured, const std::vector<Part>& parts) {
    for (const auto& run : predicted)
        if (run.summary.backend != "sim")
            throw InputError(run.directory + ": is of backend " + run.summary.backend +
                             "; --substitute simulates the runs before -- again, expected simulated ones");
    const Means before = means_of(predicted), after = means_of(measured);
    std::vector<Substitution> out;
    for (const auto& part : parts) {
        Substitution& result = out.emplace_back();
        result.part = part.name;
        Means now;
        for (std::size_t i = 0; i < predicted.size(); ++i) {
            const Loaded loaded = with_part(predicted[i], measured[i % measured.size()], part, result.notes);
            now.add(simulate(loaded), 1 / static_cast<double>(predicted.size()));
        }
        result.seconds = now.seconds;
        result.samples_per_s = now.samples_per_s;
        result.staleness = now.staleness;
        const double gap = after.seconds - before.seconds;
        result.closed = gap != 0 ? (now.seconds - before.seconds) / gap : 0;
    }
    return out;
}

}  // namespace rubato::cli
