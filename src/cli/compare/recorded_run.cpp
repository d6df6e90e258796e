#include "cli/compare/recorded_run.hpp"

#include "cli/json_reader.hpp"
#include "cli/suggest.hpp"

#include <filesystem>
#include <stdexcept>

namespace rubato::cli {
namespace {

namespace fs = std::filesystem;

/// Keys that make another experiment, and those that make its figures doubtful. A key stands for all below it.
const std::vector<std::string> refused_keys{"protocol",         "topology",     "workers.batch_size",
                                            "workers.pipeline", "workers.read", "workers.communication"};
const std::vector<std::string> doubtful_keys{"model", "data", "optimizer", "cost", "stop"};

const Node* find_path(const Node& tree, const std::string& path) {
    const Node* node = &tree;
    for (const auto& part : split_path(path))
        if (node) node = node->find(part);
    return node;
}

/// The innermost keys in which two values differ, `path` before each.
void collect_differences(const Node* a, const Node* b, const std::string& path, std::vector<std::string>& keys) {
    if (!a && !b) return;
    if (a && b && a->is(Node::Kind::object) && b->is(Node::Kind::object)) {
        for (const auto& member : a->members)
            if (member.key != "comment")
                collect_differences(&member.value, b->find(member.key), path + "." + member.key, keys);
        for (const auto& member : b->members)
            if (member.key != "comment" && !a->find(member.key)) keys.push_back(path + "." + member.key);
    } else if (!a || !b || !same_value(*a, *b)) {
        keys.push_back(path);
    }
}

std::vector<std::string> differences(const Node& a, const Node& b, const std::vector<std::string>& paths) {
    std::vector<std::string> keys;
    for (const auto& path : paths) collect_differences(find_path(a, path), find_path(b, path), path, keys);
    return keys;
}

/// "protocol.n (2, 4)": the key with what both runs say.
std::string told(const std::string& key, const Node& a, const Node& b) {
    const auto value = [&key](const Node& tree) {
        const Node* node = find_path(tree, key);
        std::string text = node ? to_json(*node, false) : "not there\n";
        text.pop_back();
        return text.size() > 40 || text.find('\n') != text.npos ? std::string("...") : text;
    };
    return key + " (" + value(a) + ", " + value(b) + ")";
}

std::string told(const std::vector<std::string>& keys, const Node& a, const Node& b) {
    std::vector<std::string> words;
    for (const auto& key : keys) words.push_back(told(key, a, b));
    return one_of(words, "and");
}

void check_pair(const RecordedRun& a, const RecordedRun& b, bool same_side, std::vector<std::string>& warnings) {
    const std::string both = a.directory + " and " + b.directory;
    if (a.lambda() != b.lambda())
        throw InputError(both + " do not belong together: they have " + std::to_string(a.lambda()) + " and " +
                         std::to_string(b.lambda()) + " workers; expected runs of one experiment");
    const auto refused = differences(a.scenario, b.scenario, refused_keys);
    if (!refused.empty())
        throw InputError(both + " do not belong together: they differ in " + told(refused, a.scenario, b.scenario) +
                         "; expected runs of one experiment");
    auto paths = doubtful_keys;
    if (same_side) paths.insert(paths.end(), {"cluster", "faults"});
    const auto doubtful = differences(a.scenario, b.scenario, paths);
    if (!doubtful.empty()) warnings.push_back(both + " differ in " + told(doubtful, a.scenario, b.scenario));
}

/// Whether gradients.csv has a row for every gradient.
bool keeps_all_gradients(const Node& scenario) {
    const Node* kept = find_path(scenario, "trace.gradients");
    if (!kept) return true;
    if (kept->is(Node::Kind::boolean)) return kept->boolean;
    const Node* every = kept->find("every");
    return !every || !every->is_whole() || every->whole() == 1;
}

/// Whether a row may stand for several gradients.
bool sums_gradients(const Node& scenario) {
    const Node* every = find_path(scenario, "workers.communication.push_every");
    return every && every->is_whole() && every->whole() > 1;
}

/// Some rows in place of all, or of none, would tell of another run: they are left out, with a word.
template <class Row>
void require_all(std::vector<Row>& rows, std::int64_t found, const std::string& path, std::int64_t expected,
                 std::vector<std::string>& warnings) {
    if (found == expected) return;
    warnings.push_back(path + ": has " + std::to_string(found) + " rows, but summary.json counts " +
                       std::to_string(expected) + ": the table is not used");
    rows.clear();
}

/// Whether updates.csv is kept.
bool keeps_updates(const Node& scenario) {
    const Node* kept = find_path(scenario, "trace.updates");
    return !kept || !kept->is(Node::Kind::boolean) || kept->boolean;
}

/// What is counted by must be in range.
void check_rows(const RecordedRun& run, const std::string& path) {
    for (const auto& row : run.gradients) {
        if (row.worker < 0 || row.worker >= run.lambda())
            throw InputError(path + ": worker " + std::to_string(row.worker) + " is not in workers.csv, which has " +
                             std::to_string(run.lambda()));
        for (const Version version : {row.read_version, row.apply_version})
            if (version > run.summary.updates)
                throw InputError(path + ": version " + std::to_string(version) + " is beyond the " +
                                 std::to_string(run.summary.updates) + " updates of summary.json");
    }
}

void read_rows(RecordedRun& run, std::vector<std::string>& warnings) {
    const std::string updates = run.directory + "/updates.csv", gradients = run.directory + "/gradients.csv";
    std::error_code error;
    if (keeps_updates(run.scenario)) {
        if (fs::exists(updates, error)) run.updates = read_updates(updates, warnings);
        require_all(run.updates, static_cast<std::int64_t>(run.updates.size()), updates, run.summary.updates, warnings);
    }
    if (keeps_all_gradients(run.scenario)) {
        if (fs::exists(gradients, error))
            run.gradients = read_gradients(gradients, sums_gradients(run.scenario), warnings);
        check_rows(run, gradients);
        const trace::Outcomes& began = run.summary.gradients;
        std::int64_t found = 0;
        for (const GradientRow& row : run.gradients) found += row.count;
        require_all(run.gradients, found, gradients, began.applied + began.dropped + began.cancelled + began.leftover,
                    warnings);
    }
}

}  // namespace

RecordedRun read_recorded_run(const std::string& directory, std::vector<std::string>& warnings) {
    const fs::path folder(directory);
    std::error_code error;
    if (!fs::is_directory(folder, error)) throw InputError(directory + ": there is no such run directory");
    if (fs::exists(folder / "sweep.json", error) && !fs::exists(folder / "scenario.json", error))
        throw InputError(directory + ": is a sweep; expected a run directory, such as " + directory +
                         "/runs/POINT, which `rubato sweep --keep` leaves");
    if (!fs::exists(folder / "scenario.json", error))
        throw InputError(directory + ": is no run directory: it has no scenario.json");
    if (!fs::exists(folder / "summary.json", error))
        throw InputError(directory + ": the run has not ended, or was killed: it has no summary.json");
    RecordedRun run;
    run.directory = directory;
    run.scenario = read_json((folder / "scenario.json").string());
    const std::string summary = (folder / "summary.json").string();
    try {
        const std::string text = read_file(summary);
        parse_json(text, {std::make_shared<const std::string>(summary), 1, 0});  // tells lines
        run.summary = trace::read_summary(text);
    } catch (const std::invalid_argument& problem) {
        throw InputError(summary + ": " + problem.what());
    }
    if (run.summary.status != "finished")
        warnings.push_back(directory + ": the run ended as " + run.summary.status +
                           "; its figures are those until then");
    if (run.summary.updates == 0) throw InputError(directory + ": no update was made, so there is nothing to compare");
    run.workers = read_workers((folder / "workers.csv").string(), warnings);
    run.servers = read_servers((folder / "servers.csv").string(), warnings);
    read_rows(run, warnings);
    return run;
}

void check_same_experiment(const std::vector<RecordedRun>& predicted, const std::vector<RecordedRun>& measured,
                           std::vector<std::string>& warnings) {
    for (const auto* side : {&predicted, &measured})
        for (std::size_t i = 1; i < side->size(); ++i) check_pair(side->front(), (*side)[i], true, warnings);
    check_pair(predicted.front(), measured.front(), false, warnings);
}

}  // namespace rubato::cli
