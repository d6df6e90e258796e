#include "cli/resume.hpp"

#include "cli/json_reader.hpp"
#include "cli/log.hpp"
#include "cli/protocol_text.hpp"
#include "trace/checkpoint_writer.hpp"
#include "trace/environment.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <sstream>

namespace rubato::cli {
namespace {

namespace fs = std::filesystem;

void collect(const Node& a, const Node& b, const std::string& path, std::vector<std::string>& keys) {
    if (!a.is(Node::Kind::object) || !b.is(Node::Kind::object)) {
        if (!same_value(a, b)) keys.push_back(path);
        return;
    }
    const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
    for (const auto& member : a.members) {
        const Node* other = b.find(member.key);
        if (other == nullptr)
            keys.push_back(below(member.key));
        else
            collect(member.value, *other, below(member.key), keys);
    }
    for (const auto& member : b.members)
        if (a.find(member.key) == nullptr) keys.push_back(below(member.key));
}

Node identity_of(const std::string& json) {
    return parse_json(json, {std::make_shared<const std::string>("checkpoint"), 1, 0});
}

std::string listed(const std::vector<std::string>& keys) {
    constexpr std::size_t most = 6;
    std::string text;
    for (std::size_t i = 0; i < keys.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + keys[i];
    if (keys.size() > most) text += fmt::format(" and {} more", keys.size() - most);
    return text;
}

/// Whether there is nothing that a run has left; one that was killed at once may have begun its first file.
bool holds_no_run(const std::string& directory) {
    std::error_code error;
    if (!fs::exists(directory, error)) return true;
    for (const auto& entry : fs::directory_iterator(directory, error))
        if (entry.path().filename() != "scenario.json.part") return false;
    return !error;
}

Node without_comments(const Node& tree) {
    return identity_of(to_json(tree, false));
}

/// What of a scenario's tree makes it another run.
Node identity_tree(Node tree) {
    for (const char* key : {"stop", "trace"}) tree.erase(key);
    if (Node* execution = tree.find("execution"))
        for (const char* key : {"checkpoint", "pool_threads"}) execution->erase(key);
    return tree;
}

/// scenario.json of the run in the folder.
Node earlier_scenario(const std::string& directory) {
    const std::string path = directory + "/scenario.json";
    std::error_code error;
    if (!fs::exists(path, error))
        throw InputError(directory + ": is no run directory, it has no scenario.json; --out names another folder");
    return read_json(path);
}

/// The backend of the run in the folder: as its summary says, or the command that repeats it, which is there from the
/// beginning. Empty: not known.
std::string earlier_backend(const std::string& directory) {
    std::error_code error;
    for (const char* name : {"summary.json", "command.txt"}) {
        const std::string path = directory + "/" + name;
        if (!fs::exists(path, error)) continue;
        if (std::string_view(name) == "summary.json") return text_at(read_json(path), "backend");
        std::istringstream words(read_file(path));
        for (std::string word; words >> word;)
            if (word == "--backend" && words >> word) return word;
    }
    return {};
}

[[noreturn]] void refuse_scenario(const std::string& name, const std::vector<std::string>& keys) {
    throw InputError(name + ": is of another scenario, which differs in " + listed(keys) +
                     "; only stop, trace.events, execution.checkpoint and execution.pool_threads may change; --force "
                     "starts again, --out names another folder");
}

[[noreturn]] void refuse_backend(const std::string& name, const std::string& backend) {
    throw InputError(name + ": is of a run on backend " + backend + "; expected --backend " + backend);
}

/// Of a folder without a checkpoint: an unfinished run of this scenario, which was to be saved, begins once more.
/// Throws InputError for any other.
void require_to_begin_anew(const std::string& directory, const Loaded& loaded, const std::string& backend) {
    const Node earlier = earlier_scenario(directory);
    if (const auto keys = differing_keys(loaded, to_json(earlier, false)); !keys.empty())
        refuse_scenario(directory, keys);
    if (const std::string other = earlier_backend(directory); !other.empty() && other != backend)
        refuse_backend(directory, other);
    std::error_code error;
    const std::string summary = directory + "/summary.json";
    const std::string status = fs::exists(summary, error) ? text_at(read_json(summary), "status") : "";
    const bool ended = status == "finished" || status == "diverged";
    const Node* execution = earlier.find("execution");
    if (ended || execution == nullptr || execution->find("checkpoint") == nullptr)
        throw InputError(directory + ": holds a run of this scenario " +
                         (status.empty() ? "" : "that ended as " + status + " ") +
                         "and no checkpoint to resume from (execution.checkpoint says when they are made); --force "
                         "starts again");
    note(directory + " holds an unfinished run of this scenario" + (status.empty() ? "" : " (" + status + ")") +
         ", which has left no checkpoint: the run begins anew");
}

/// What trace asks for, of tables that go on: every row of them, or none.
Node continued_trace(const Node& scenario) {
    const Node* trace = scenario.find("trace");
    Node kept = trace != nullptr ? *trace : Node::object();
    kept.erase("events");
    Node* gradients = kept.find("gradients");
    const Node* every = gradients != nullptr ? gradients->find("every") : nullptr;
    if (every != nullptr && same_value(*every, Node::of(std::int64_t{1}))) *gradients = Node::of(true);
    return without_comments(kept);
}

/// A table goes on as it was begun: one that begins in mid-run, leaves out rows from there on or is deleted would tell
/// of another run than it was.
void require_same_tables(const std::string& directory, const Loaded& loaded) {
    std::vector<std::string> keys;
    collect(continued_trace(loaded.tree), continued_trace(earlier_scenario(directory)), "trace", keys);
    if (!keys.empty())
        throw InputError(directory + ": was recorded with another " + listed(keys) +
                         ": its tables go on as they were begun; expected the same, --force starts again");
}

void require_tables(const std::string& directory, const Scenario& scenario, const trace::TableSizes& sizes) {
    const auto check = [&](const char* name, bool wanted, std::int64_t size) {
        if (!wanted || size < 0) return;
        std::error_code error;
        const auto there = fs::file_size(fs::path(directory) / name, error);
        if (!error && static_cast<std::int64_t>(there) >= size) return;
        throw InputError(directory + "/" + name +
                         (error ? ": is missing" : fmt::format(": has {} bytes", static_cast<std::int64_t>(there))) +
                         fmt::format(", but the checkpoint was made when it had {}: the run cannot go on with its "
                                     "tables; --force starts again",
                                     size));
    };
    check("gradients.csv", scenario.trace.gradients, sizes.gradients);
    check("updates.csv", scenario.trace.updates, sizes.updates);
    check("evals.csv", true, sizes.evals);
    check("controller.csv", true, sizes.controller);
    check("rounds.csv", true, sizes.rounds);
    check("exchanges.csv", true, sizes.exchanges);
    check("iterations.csv", true, sizes.iterations);
    check("layers.csv", true, sizes.layers);
}

/// A run cannot stop before where it is.
void require_way_to_go(const std::string& name, const Loaded& loaded, const ServerState& state) {
    const StopSpec& stop = loaded.scenario.stop;
    const auto passed = [&](const char* key, double limit, double reached) {
        throw InputError(name +
                         fmt::format(": is beyond stop.{} = {:.10g}: it holds {:.10g}; a longer stop is allowed, "
                                     "a shorter one is not",
                                     key, limit, reached));
    };
    const double epochs =
        static_cast<double>(state.samples) / static_cast<double>(std::max<std::int64_t>(1, loaded.samples));
    if (stop.epochs && epochs > *stop.epochs) passed("epochs", *stop.epochs, epochs);
    if (stop.updates && state.version > *stop.updates)
        passed("updates", static_cast<double>(*stop.updates), static_cast<double>(state.version));
    if (stop.gradients && state.accepted > *stop.gradients)
        passed("gradients", static_cast<double>(*stop.gradients), static_cast<double>(state.accepted));
    const double seconds = static_cast<double>(state.now_ns) * 1e-9;
    if (stop.seconds && seconds > *stop.seconds) passed("seconds", *stop.seconds, seconds);
}

}  // namespace

std::string identity_json(const Loaded& loaded) {
    return to_json(identity_tree(loaded.tree), false);
}

std::vector<std::string> differing_keys(const Loaded& loaded, const std::string& identity) {
    std::vector<std::string> keys;
    // What a checkpoint of another version of this program says may have been left out only since.
    collect(identity_of(identity_json(loaded)), identity_tree(identity_of(identity)), "", keys);
    return keys;
}

bool ends_alike(const Loaded& loaded, const Node& earlier) {
    const auto part = [](const Node& tree, const char* key) {
        const Node* found = tree.find(key);
        return found != nullptr ? without_comments(*found) : Node::object();
    };
    auto keys = differing_keys(loaded, to_json(earlier, false));
    collect(part(loaded.tree, "stop"), part(earlier, "stop"), "stop", keys);
    collect(continued_trace(loaded.tree), continued_trace(earlier), "trace", keys);
    return keys.empty();
}

std::optional<trace::Checkpoint> checkpoint_to_resume(const std::string& directory, const Loaded& loaded,
                                                      const std::string& backend) {
    if (holds_no_run(directory)) {
        note(directory + " holds no run yet, so there is nothing to resume: the run begins");
        return std::nullopt;
    }
    const auto count = trace::checkpoint_versions(directory).size();
    if (count == 0) {
        require_to_begin_anew(directory, loaded, backend);
        return std::nullopt;
    }
    std::vector<std::string> refused;
    auto found = trace::newest_checkpoint(directory, [&](const std::string& line) { refused.push_back(line); });
    if (!found) {
        std::string each;
        for (const auto& line : refused) each += "; " + line;
        throw InputError(trace::checkpoint_folder(directory) +
                         fmt::format(": none of {} checkpoints can be read{}; --force starts again", count, each));
    }
    const auto& head = found->head;
    const std::string name = trace::checkpoint_folder(directory) + "/" + std::to_string(head.version()) + ".ckpt";
    for (const auto& line : refused) insist(line + "; the one before it is looked at");
    if (head.backend != backend) refuse_backend(name, head.backend);
    if (const auto keys = differing_keys(loaded, head.scenario); !keys.empty()) refuse_scenario(name, keys);
    require_same_tables(directory, loaded);
    if (head.roles.books.size() != static_cast<std::size_t>(loaded.scenario.lambda()) ||
        head.roles.server.begun.size() != head.roles.books.size())
        throw InputError(name + ": is of another number of workers");
    require_way_to_go(name, loaded, head.roles.server);
    require_tables(directory, loaded.scenario, head.recorder.tables);
    if (head.program != trace::program_version())
        warn(name + " was written by rubato " + head.program + ", this is " + trace::program_version());
    note(fmt::format(
        "{} goes on from version {}, {:.6g} epochs and {:.6g} s", directory, head.version(),
        static_cast<double>(head.roles.server.samples) / static_cast<double>(std::max<std::int64_t>(1, loaded.samples)),
        static_cast<double>(head.roles.server.now_ns) * 1e-9));
    return found;
}

trace::RecorderResume recorder_resume(const trace::Checkpoint& checkpoint) {
    const auto& head = checkpoint.head;
    return {head.recorder, head.roles.server.now_ns, trace::to_text(head.roles)};
}

std::unique_ptr<trace::CheckpointWriter> checkpoint_writer(const std::string& directory, const Loaded& loaded,
                                                           const std::string& backend,
                                                           const trace::Checkpoint* resumed) {
    if (!loaded.scenario.checkpoint.any()) return nullptr;
    trace::CheckpointHead base;
    base.program = trace::program_version();
    base.backend = backend;
    base.scenario = identity_json(loaded);
    return std::make_unique<trace::CheckpointWriter>(
        directory, std::move(base), resumed, [](const std::string& line) { insist(line); },
        loaded.scenario.trace.events);
}

namespace {

// Rounds of all workers begin from the joint model alone, as a resumed run does; optimizers of workers begin anew.
std::string averaging_resume(const Scenario& scenario) {
    const ProtocolSpec& protocol = scenario.protocol;
    const bool rounds =
        !protocol.averages_alone() && !protocol.averages_in_phases() && !protocol.gossips() && !protocol.streams();
    if (!rounds)
        return "legal: all workers begin anew from the joint model of the last checkpoint; no sample counts twice or "
               "is "
               "lost";
    if (protocol.averaging.gradients || scenario.optimizer.name == "sgd")
        return "exact: the same weights, bit for bit, as a run that nothing disturbed";
    return "legal: the state of the workers' optimizers is not saved; no sample counts twice or is lost";
}

// Replicas are alike, and so are their optimizers: that of worker 0 stands for all. What is in flight beside a gradient
// is on older weights, and computed again on those of the checkpoint.
std::string replicas_resume(const Scenario& scenario) {
    const CollectiveSpec& spec = scenario.protocol.collective;
    if (spec.mode == CollectiveMode::no_comm && scenario.lambda() > 1)
        return "none: each replica is another, of which one could be saved";
    if (spec.mode == CollectiveMode::delayed && (spec.adaptive || spec.delay > 0))
        return "legal: gradients in flight are computed again, on newer weights, and the delay grows from 0 again; no "
               "sample counts twice or is lost";
    if (spec.native()) return "legal: the same but for the rounding of the MPI library's sums";
    return "exact: the same weights, bit for bit, as a run that nothing disturbed";
}

}  // namespace

// Exact where nothing is ever in flight at an update: the round of a barrier, or the gradient of the only worker.
std::string resume_sentence(const Scenario& scenario) {
    if (scenario.topology == "sharded") return "none: checkpoints are not yet built for sharded servers";
    if (scenario.has_relays()) return "none: checkpoints are not yet built for a tree";
    if (scenario.protocol.reduces()) return replicas_resume(scenario);
    if (scenario.protocol.averages()) return averaging_resume(scenario);
    const StalenessRule& rule = scenario.optimizer.staleness_rule;
    const PolicyTraits policy = traits_of(scenario);
    const bool barrier = policy.rounds && policy.batch_order;
    if (rule.expression && rule.expression->looks_at("age"))
        return "legal: the staleness rule may look at age, which a restart changes; no sample counts twice or is lost";
    // A signal may come between two folds; what they have told the rule is not taken back.
    const bool folds = !policy.alone && !policy.batch_order;
    if (rule.adaptive && rule.looks_at_weights() && folds)
        return "legal: after a signal the rule's mean squares may hold gradients that are computed again";
    if (scenario.workers.communication.pull_every > 1)
        return "legal: workers' own weights are not saved, so that all pull first; no sample counts twice or is lost";
    if (barrier) return "exact: the same weights, bit for bit, as a run that nothing disturbed";
    if (scenario.lambda() == 1) return "exact: with one worker, the same weights, bit for bit, as an undisturbed run";
    return "legal: what was in flight is computed again, so the order of arrival is another; no sample counts twice or "
           "is lost";
}

}  // namespace rubato::cli
