#include "cli/complete_devices.hpp"

#include "cli/build_scenario.hpp"
#include "cli/complete.hpp"
#include "cli/node_value.hpp"
#include "cli/spells.hpp"
#include "cli/suggest.hpp"

#include <algorithm>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

void check_classes(const Node& root) {
    const Node& workers = root.at("workers");
    const Node& devices = root.at("cluster").at("devices");
    // Without any class of devices there is the default one, by operations and the speed of the host. With some, a
    // default that is not among them is more likely a slip of the pen.
    std::vector<std::string> names;
    for (const auto& member : devices.members) {
        if (member.key != "comment") names.push_back(member.key);
    }
    if (names.empty()) names.emplace_back("default");
    const auto check = [&](const Node& group, const std::string& path) {
        const Node* device = group.find("device");
        if (!device && path == "workers" && !group.find("groups") &&
            std::find(names.begin(), names.end(), "default") == names.end()) {
            refuse(devices, "cluster.devices",
                   "the workers are of device class \"default\", which is not among " + one_of(names, "and"));
        }
        if (!device || std::find(names.begin(), names.end(), device->text) != names.end()) return;
        const std::string near = nearest(device->text, names);
        refuse(*device, path + ".device",
               "\"" + device->text + "\" is not defined in cluster.devices" +
                   (near.empty() ? " (defined: " + one_of(names, "and") + ")" : "; did you mean \"" + near + "\"?"));
    };
    check(workers, "workers");
    if (const Node* groups = workers.find("groups")) {
        for (std::size_t i = 0; i < groups->items.size(); ++i) {
            check(groups->items[i], "workers.groups[" + std::to_string(i) + "]");
        }
    }
    for (const auto& [name, where, device] : devices.members) {
        if (name == "comment") continue;
        const bool power = device.find("p") || device.find("b0");
        if (power && !device.find("c")) refuse(device, "cluster.devices." + name, "p and b0 need c, the seconds at b0");
        const Node* a = device.find("a");
        const Node* b = device.find("b");
        if ((a || b) && (a ? a->number : 0) + (b ? b->number : 0) <= 0) {
            refuse(device, "cluster.devices." + name, "a + b * batch must be above 0");
        }
    }
}

/// The levels that stand there, or equal steps.
Node levels_of(const Node& device, const std::string& path, std::size_t count) {
    if (const Node* given = device.find("levels")) {
        const auto& items = given->items;
        const bool ascending = std::adjacent_find(items.begin(), items.end(), [](const Node& a, const Node& b) {
                                   return a.number >= b.number;
                               }) == items.end();
        if (!ascending || items.front().number != 0 || items.back().number != 1)
            refuse(*given, path + ".levels", "expected fractions in ascending order, the first 0 and the last 1");
        return *given;
    }
    Node levels;
    levels.kind = Kind::array;
    for (std::size_t i = 0; i < count; ++i)
        levels.items.push_back(Node::of(static_cast<double>(i) / static_cast<double>(count - 1)));
    return levels;
}

/// Quantiles of one batch size: as many as levels, ascending, not all zero. Returns their mean.
double check_quantiles(const Node& quantiles, const std::string& path, const std::vector<double>& levels) {
    std::vector<double> values;
    for (const Node& item : quantiles.items) values.push_back(quantity(item, Quantity::duration));
    if (values.size() != levels.size())
        refuse(quantiles, path,
               "expected as many quantiles as levels, " + std::to_string(levels.size()) + ", found " +
                   std::to_string(values.size()));
    const auto falls = std::is_sorted_until(values.begin(), values.end());
    if (falls != values.end())
        refuse(quantiles.items[static_cast<std::size_t>(falls - values.begin())],
               path + "[" + std::to_string(falls - values.begin()) + "]", "expected quantiles in ascending order");
    const double mean = mean_of_quantiles(levels, values);
    if (!(mean > 0)) refuse(quantiles, path, "expected a mean above 0");
    return mean;
}

/// Levels where there are quantiles, and their means where nothing else gives the seconds.
void complete_scatter(Node& device, const std::string& path) {
    const Node* quantiles = device.find("quantiles");
    if (quantiles == nullptr) {
        if (const Node* levels = device.find("levels")) refuse(*levels, path + ".levels", "goes with quantiles");
        return;
    }
    const auto is_batch = [](const Member& member) { return member.key != "comment"; };
    const auto first = std::find_if(quantiles->members.begin(), quantiles->members.end(), is_batch);
    if (first == quantiles->members.end()) refuse(*quantiles, path + ".quantiles", "expected at least one batch size");
    const Node levels = levels_of(device, path, first->value.items.size());
    std::vector<double> fractions;
    for (const Node& level : levels.items) fractions.push_back(level.number);
    Node seconds = Node::object();
    for (const auto& [batch, where, values] : quantiles->members) {
        if (batch == "comment") continue;
        seconds.set(batch, Node::of(check_quantiles(values, path + ".quantiles." + batch, fractions)), where);
    }
    device.set("levels", levels, {});
    if (!device.find("seconds") && !device.find("c") && !device.find("a") && !device.find("b"))
        device.set("seconds", std::move(seconds), {});
}

void check_range(const Node& object, const std::string& path) {
    const Node* range = object.find("measured_bytes");
    if (range == nullptr) return;
    if (quantity(range->items[0], Quantity::size) > quantity(range->items[1], Quantity::size))
        refuse(*range, path + ".measured_bytes", "expected the smaller size first");
}

}  // namespace

namespace {

void check_noise(const Node& noise) {
    const char* first = nullptr;
    for (const char* key : {"lognormal_cv", "normal_cv", "exponential_cv"}) {
        const Node* cv = noise.find(key);
        if (!cv || cv->number == 0) continue;
        if (first) refuse(*cv, std::string("cluster.noise.") + key, std::string("cannot stand beside ") + first);
        first = key;
    }
}

/// Each is of one kind, and of workers that there are.
void check_stragglers(const Node& stragglers, std::int64_t lambda) {
    for (std::size_t i = 0; i < stragglers.items.size(); ++i) {
        const Node& it = stragglers.items[i];
        const std::string path = "cluster.stragglers[" + std::to_string(i) + "]";
        const Node* until = it.find("until_s");
        const Node* from = it.find("from_s");
        const int kinds = (until || from ? 1 : 0) + (it.find("every_s") || it.find("for_s") ? 1 : 0) +
                          (it.find("probability") ? 1 : 0);
        if (kinds != 1) refuse(it, path, "expected one of: until_s (and from_s), every_s with for_s, or probability");
        check_spells(it, path, "from_s");
        if (const Node* workers = it.find("workers")) check_members(*workers, path + ".workers", lambda);
    }
}

}  // namespace

void complete_devices(Node& root, std::vector<std::string>& notes) {
    check_classes(root);
    Node& cluster = *root.find("cluster");
    bool scatter = false;
    for (auto& [name, where, device] : cluster.find("devices")->members) {
        if (name == "comment") continue;
        complete_scatter(device, "cluster.devices." + name);
        const Node* sharing = device.find("host_sharing");
        const bool commented = sharing && sharing->is(Kind::object) && sharing->find("comment");
        if (sharing && sharing->is(Kind::object) && sharing->members.size() == (commented ? 1u : 0u))
            refuse(*sharing, "cluster.devices." + name + ".host_sharing", "expected at least one number of workers");
        scatter = scatter || device.find("quantiles");
    }
    if (scatter && cluster.at("noise").at("lognormal_cv").number > 0)
        notes.emplace_back(
            "cluster.noise.lognormal_cv does not apply to devices with quantiles, whose scatter is measured");
    check_noise(cluster.at("noise"));
    check_stragglers(cluster.at("stragglers"), worker_count(root));
    check_range(cluster.at("server"), "cluster.server");
    if (const Node* star = cluster.at("network").find("star")) check_range(*star, "cluster.network.star");
}

}  // namespace rubato::cli
