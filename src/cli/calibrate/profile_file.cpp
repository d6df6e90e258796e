// Reading a profile: the walk over its schema, what the schema cannot say, and the typed value.
#include "cli/calibrate/profile.hpp"

#include "cli/build_scenario.hpp"
#include "cli/json_reader.hpp"
#include "cli/schema.hpp"
#include "cli/suggest.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

const Node& profile_schema() {
    static const Node schema = parse_json(std::string(profile_schema_text()),
                                          {std::make_shared<const std::string>("profile.schema.json"), 1, 0});
    return schema;
}

std::string inside(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
}

/// Told here, before the walk, whose hints are about scenarios.
void refuse_unknown_keys(const Node& node, const Node& schema, const std::string& path) {
    const Node* items = schema.find("items");
    for (std::size_t i = 0; items && i < node.items.size(); ++i)
        refuse_unknown_keys(node.items[i], *items, path + "[" + std::to_string(i) + "]");
    const Node* properties = schema.find("properties");
    const Node* others = schema.find("additionalProperties");
    const Node* patterns = schema.find("patternProperties");
    std::vector<std::string> known;
    for (const auto& member : properties ? properties->members : std::list<Member>{}) known.push_back(member.key);
    for (const auto& member : node.members) {
        const Node* child = properties ? properties->find(member.key) : nullptr;
        if (!child && others && others->is(Kind::object)) child = others;
        if (!child && patterns) child = &patterns->members.front().value;  // the walk looks at the key itself
        if (child) {
            refuse_unknown_keys(member.value, *child, inside(path, member.key));
            continue;
        }
        const std::string near = nearest(member.key, known);
        const bool scenario = path.empty() && schema_at(member.key) != nullptr;
        throw InputError(member.where, inside(path, member.key),
                         "unknown key" + (scenario ? "; this is a key of scenarios, and the file should be a profile"
                                          : near.empty() ? "; known are " + one_of(known, "and")
                                                         : "; did you mean \"" + near + "\"?"));
    }
}

std::vector<double> numbers(const Node& list) {
    std::vector<double> values;
    for (const Node& item : list.items) values.push_back(item.number);
    return values;
}

std::vector<double> read_levels(const Node& root) {
    const Node* node = root.find("levels");
    if (!node) return {};
    auto levels = numbers(*node);
    const bool ascending = std::adjacent_find(levels.begin(), levels.end(), std::greater_equal<>()) == levels.end();
    if (!ascending || levels.front() != 0 || levels.back() != 1)
        throw InputError(node->where, "levels", "expected fractions in ascending order, the first 0 and the last 1");
    return levels;
}

ComputeTimes read_times(const Node& node, const std::string& path, const std::vector<double>& levels) {
    ComputeTimes times{node.at("n").whole(), node.at("mean").number, {}};
    const Node* quantiles = node.find("quantiles");
    if (!quantiles) return times;
    if (levels.empty()) throw InputError(quantiles->where, path + ".quantiles", "the profile has no \"levels\"");
    times.quantiles = numbers(*quantiles);
    const std::string place = path + ".quantiles";
    if (times.quantiles.size() != levels.size())
        throw InputError(quantiles->where, place,
                         "expected as many quantiles as levels, " + std::to_string(levels.size()) + ", found " +
                             std::to_string(times.quantiles.size()));
    if (!std::is_sorted(times.quantiles.begin(), times.quantiles.end()))
        throw InputError(quantiles->where, place, "expected quantiles in ascending order");
    if (!(mean_of_quantiles(levels, times.quantiles) > 0))
        throw InputError(quantiles->where, place, "expected quantiles with a mean above 0");
    // The quantiles are scaled to the mean, so that a mean in another unit would go through without a word. Rounding
    // may put that of equal times beside them.
    const double shortest = times.quantiles.front() * (1 - 1e-9), longest = times.quantiles.back() * (1 + 1e-9);
    if (!(times.mean >= shortest && times.mean <= longest))
        throw InputError(node.at("mean").where, path + ".mean",
                         fmt::format("expected a mean between the shortest and the longest time, {:.6g} and {:.6g} s, "
                                     "found {:.6g}: is it in another unit?",
                                     times.quantiles.front(), times.quantiles.back(), times.mean));
    return times;
}

DeviceProfile read_device(const Node& node, const std::string& path, const std::vector<double>& levels) {
    DeviceProfile device;
    device.source = node.at("source").text;
    device.dispatch_s = node.at("dispatch_s").number;
    for (const auto& [batch, where, times] : node.at("batches").members)
        device.batches[std::stoll(batch)] = read_times(times, path + ".batches." + batch, levels);
    for (const auto& [workers, where, factor] : node.at("host_sharing").members)
        device.host_sharing[std::stoll(workers)] = factor.number;
    return device;
}

ByteRange read_range(const Node& object, const std::string& path) {
    const Node& range = object.at("bytes");
    if (range.items[0].number > range.items[1].number)
        throw InputError(range.where, path + ".bytes", "expected the smaller size first");
    return {range.items[0].number, range.items[1].number};
}

ServerProfile read_server(const Node& node) {
    ServerProfile server;
    server.source = node.at("source").text;
    server.bytes = read_range(node, "server");
    const auto read = [&](const char* key, std::optional<OperationCost>& cost) {
        const Node* entry = node.find(key);
        if (entry) cost = {entry->at("n").whole(), entry->at("fixed_s").number, entry->at("per_byte_s").number};
    };
    read("push", server.push);
    read("pull", server.pull);
    read("update", server.update);
    return server;
}

NetworkProfile read_network(const Node& node) {
    NetworkProfile network;
    network.source = node.at("source").text;
    network.bytes = read_range(node, "network");
    network.latency_s = node.at("latency_s").number;
    network.bandwidth = node.at("bandwidth").number;
    if (const Node* server = node.find("server_bandwidth")) network.server_bandwidth = server->number;
    network.largest_error = node.at("largest_error").number;
    const Node* messages = node.find("messages");
    for (const Node& item : messages ? messages->items : std::vector<Node>{})
        network.messages.push_back({item.at("bytes").number, item.at("seconds").number, item.at("n").whole()});
    return network;
}

}  // namespace

Profile parse_profile(const std::string& text, const std::string& path) {
    Node root = parse_json(text, {std::make_shared<const std::string>(path), 1, 0});
    if (!root.is(Kind::object)) throw InputError(root.where, "", "expected a JSON object, found " + describe(root));
    refuse_unknown_keys(root, profile_schema(), "");
    check_and_fill(root, profile_schema(), "");
    Profile profile;
    profile.date = root.at("date").text;
    profile.host = root.at("host").text;
    profile.cores = static_cast<int>(root.at("cores").whole());
    profile.levels = read_levels(root);
    for (const auto& [name, where, device] : root.at("compute").members) {
        if (name != "comment") profile.compute[name] = read_device(device, "compute." + name, profile.levels);
    }
    if (const Node* common = root.find("common"))
        profile.common = CommonNoise{common->at("share").number, common->at("time_s").number};
    if (const Node* server = root.find("server")) profile.server = read_server(*server);
    if (const Node* network = root.find("network")) profile.network = read_network(*network);
    const Node* notes = root.find("notes");
    for (const Node& item : notes ? notes->items : std::vector<Node>{}) profile.notes.push_back(item.text);
    return profile;
}

Profile read_profile(const std::string& path) {
    return parse_profile(read_file(path), path);
}

}  // namespace rubato::cli
