#include "sim/platform_fields.hpp"
#include "sim/suggest.hpp"

#include <algorithm>
#include <map>

namespace rubato::sim {

using nlohmann::json;

namespace {

using Numbers = std::map<std::string, int>;

/// Number of the switch that "under" names.
int switch_above(const json& object, const Place& place, const Numbers& numbers) {
    const auto under = object.find("under");
    if (under == object.end()) place.fail("\"under\" is missing; expected the name of the switch above");
    const Place at = place / "under";
    if (!under->is_string()) at.fail("is " + found_text(*under) + "; expected the name of a switch");
    const auto found = numbers.find(under->get<std::string>());
    if (found != numbers.end()) return found->second;
    Keys names;
    for (const auto& [name, number] : numbers)
        if (names.size() < 1000) names.push_back(name);
    const std::string near = nearest(under->get<std::string>(), names);
    const bool all = names.size() <= 4;
    if (!all) names.resize(4);
    at.fail("there is no switch " + found_text(*under) + " before; " +
            (near.empty() ? "there are " + one_of(names, "and") + (all ? "" : ", ...")
                          : "did you mean \"" + near + "\"?"));
}

TreeShape::Switch read_switch(const json& entry, const Place& place, const LinkFigures& otherwise, bool first,
                              const Numbers& numbers) {
    check_keys(entry, place, {"name", "under", "bandwidth", "latency", "comment"});
    TreeShape::Switch read;
    read.name = read_name(entry, place, "");
    if (read.name.empty()) place.fail("a switch without name; expected \"name\"");
    if (numbers.contains(read.name)) (place / "name").fail("a second switch named \"" + read.name + "\"");
    if (!first) {
        read.under = switch_above(entry, place, numbers);
        read.link = read_link(entry, place, otherwise);
        return read;
    }
    for (const char* key : {"under", "bandwidth", "latency"})
        if (entry.contains(key)) (place / key).fail("the first switch is the root, which has no link upwards");
    return read;
}

}  // namespace

TreeShape read_tree(const json& root, const Place& top, const std::vector<StarHost>& hosts) {
    TreeShape tree;
    const auto switches = root.find("switches");
    if (switches == root.end() || !switches->is_array() || switches->empty())
        (top / "switches").fail("expected an array of switches, the root first, each other one \"under\" one before");
    const LinkFigures otherwise = read_link(root, top, {});
    Numbers numbers;
    std::vector<int> depths;
    check_links(static_cast<double>(switches->size() - 1), top / "switches");
    for (std::size_t i = 0; i < switches->size(); ++i) {
        const Place place = top / "switches" / std::to_string(i);
        tree.switches.push_back(read_switch(switches->at(i), place, otherwise, i == 0, numbers));
        numbers.emplace(tree.switches.back().name, static_cast<int>(i));
        const int under = tree.switches.back().under;
        depths.push_back(under < 0 ? 0 : depths[static_cast<std::size_t>(under)] + 1);
        if (depths.back() >= static_cast<int>(levels_max))
            place.fail("lies more than " + std::to_string(levels_max - 1) + " switches below the root");
    }
    const json& entries = root.at("hosts");
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const Place place = top / "hosts" / std::to_string(i);
        const int above = switch_above(entries.at(i), place, numbers);
        tree.switch_of_host.insert(tree.switch_of_host.end(),
                                   static_cast<std::size_t>(count(entries.at(i), "count", place, 1)), above);
    }
    for (std::size_t i = 0; i < hosts.size(); ++i)
        if (numbers.contains(hosts[i].name))
            (top / "hosts").fail("a host and a switch are both named \"" + hosts[i].name + "\"");
    return tree;
}

}  // namespace rubato::sim
