#include "sim/platform/platform_json.hpp"

#include "sim/network.hpp"
#include "sim/platform/platform_place.hpp"
#include "sim/platform/suggest.hpp"
#include "sim/platform/units.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace rubato::sim {

namespace {

using nlohmann::json;
using Keys = std::vector<std::string>;

constexpr std::size_t levels_max = 16;
constexpr int depth_max = 16;

/// What was found, cut to a length that fits a message.
std::string found_text(const json& value) {
    std::string text = value.dump();
    constexpr std::size_t most = 60;
    if (text.size() > most) text = text.substr(0, most) + "...";
    return text;
}

void check_keys(const json& object, const Place& place, Keys allowed) {
    if (!object.is_object()) place.fail("is " + found_text(object) + "; expected an object");
    for (const auto& [key, value] : object.items()) {
        if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
        const std::string near = nearest(key, allowed);
        (place / key)
            .fail("unknown key; " +
                  (near.empty() ? "expected one of " + one_of(allowed, "and") : "did you mean \"" + near + "\"?"));
    }
}

/// A figure with a unit, or a bare number in bytes/s, seconds or flop/s.
double quantity(const json& object, const char* key, const Place& place, Quantity kind, double otherwise) {
    const auto found = object.find(key);
    if (found == object.end()) return otherwise;
    try {
        if (found->is_string()) return parse_physical(found->get<std::string>(), kind);
        if (found->is_number()) {
            const double value = found->get<double>();
            if (value > 0 || (value == 0 && kind == Quantity::duration)) return value;
            (place / key)
                .fail("is " + found->dump() +
                      (kind == Quantity::duration ? "; expected zero or more" : "; expected a value above zero"));
        }
    } catch (const UnitError& error) {
        (place / key).fail(error.what());
    }
    (place / key).fail("expected a string with a unit, or a number");
}

int whole(const json& value, const Place& place) {
    constexpr int most = std::numeric_limits<int>::max();
    if (value.is_number_integer() && value > most)
        place.fail("is " + found_text(value) + "; expected at most " + std::to_string(most));
    if (!value.is_number_integer() || value < 1)
        place.fail("is " + found_text(value) + "; expected a whole number of at least 1");
    return value.get<int>();
}

int count(const json& object, const char* key, const Place& place, int otherwise) {
    const auto found = object.find(key);
    return found == object.end() ? otherwise : whole(*found, place / key);
}

/// A list of whole numbers, one a level or dimension.
template <class T>
std::vector<T> wholes(const json& object, const char* key, const Place& place, const char* of) {
    const auto found = object.find(key);
    if (found == object.end()) place.fail("\"" + std::string(key) + "\" is missing; expected a number " + of);
    const Place at = place / key;
    if (!found->is_array() || found->empty() || found->size() > levels_max)
        at.fail("is " + found_text(*found) + "; expected a list of 1 to " + std::to_string(levels_max) +
                " whole numbers, one " + of);
    std::vector<T> values;
    for (std::size_t i = 0; i < found->size(); ++i)
        values.push_back(static_cast<T>(whole(found->at(i), at / std::to_string(i))));
    return values;
}

std::string read_name(const json& object, const Place& place, const std::string& otherwise) {
    const auto name = object.find("name");
    if (name == object.end()) return otherwise;
    if (!name->is_string() || name->get<std::string>().empty())
        (place / "name").fail("is " + found_text(*name) + "; expected a name");
    return name->get<std::string>();
}

StarHost read_host(const json& object, const Place& place, const StarHost& otherwise) {
    StarHost host = otherwise;
    host.speed = quantity(object, "speed", place, Quantity::speed, otherwise.speed);
    host.cores = count(object, "cores", place, otherwise.cores);
    host.bandwidth = quantity(object, "bandwidth", place, Quantity::bandwidth, otherwise.bandwidth);
    host.latency = quantity(object, "latency", place, Quantity::duration, otherwise.latency);
    host.name = read_name(object, place, otherwise.name);
    return host;
}

LinkFigures read_link(const json& object, const Place& place, const LinkFigures& otherwise) {
    return {quantity(object, "bandwidth", place, Quantity::bandwidth, otherwise.bandwidth),
            quantity(object, "latency", place, Quantity::duration, otherwise.latency)};
}

/// One entry of "hosts": one host, or `count` hosts NAME0, NAME1, ... of the same make.
void append(const json& object, const Place& place, const Keys& keys, const StarHost& otherwise,
            std::vector<StarHost>& hosts) {
    check_keys(object, place, keys);
    const StarHost host = read_host(object, place, otherwise);
    const bool several = object.contains("count");
    if (host.name.empty()) {
        if (!several) place.fail("a host without name; expected \"name\", or \"count\" for hosts named by number");
        place.fail("hosts without name; expected \"name\", to which the number is appended");
    }
    const int n = count(object, "count", place, 1);
    check_hosts(static_cast<double>(hosts.size()) + n, several ? place / "count" : place);
    for (int i = 0; i < n; ++i) {
        hosts.push_back(host);
        if (several) hosts.back().name += std::to_string(i);
    }
}

/// `wanted`: the number of hosts that a shape asks for; 0: any.
std::vector<StarHost> read_hosts(const json& root, const Place& top, const Keys& entry_keys, double wanted,
                                 const std::string& derivation) {
    StarHost otherwise = read_host(root, top, StarHost{});
    std::vector<StarHost> all;
    const auto hosts = root.find("hosts");
    const bool listed = hosts != root.end();
    if (listed) {
        if (root.contains("count")) (top / "count").fail("stands beside \"hosts\"; expected one of the two");
        if (!hosts->is_array()) (top / "hosts").fail("expected an array of hosts");
        otherwise.name.clear();
        for (std::size_t i = 0; i < hosts->size(); ++i)
            append(hosts->at(i), top / "hosts" / std::to_string(i), entry_keys, otherwise, all);
    } else {
        if (!root.contains("count") && wanted == 0)
            top.fail("expected \"hosts\", or \"count\" for hosts that are all alike");
        if (otherwise.name.empty()) otherwise.name = "host-";
        const int n = count(root, "count", top, static_cast<int>(wanted));
        check_hosts(n, top / "count");
        for (int i = 0; i < n; ++i) {
            all.push_back(otherwise);
            all.back().name += std::to_string(i);
        }
    }
    if (all.empty()) (top / "hosts").fail("is empty; expected at least one host");
    if (wanted > 0 && static_cast<double>(all.size()) != wanted)
        (top / (listed ? "hosts" : "count"))
            .fail("makes " + std::to_string(all.size()) + " hosts; expected " + derivation + " = " +
                  std::to_string(static_cast<long long>(wanted)));
    std::set<std::string> names;
    for (const StarHost& host : all)
        if (!names.insert(host.name).second) (top / "hosts").fail("two hosts are named \"" + host.name + "\"");
    return all;
}

FatTreeShape read_fat_tree(const json& root, const Place& top) {
    FatTreeShape tree;
    tree.link = read_link(root, top, {});
    tree.down = wholes<unsigned>(root, "down", top, "a level: nodes below each of its switches");
    tree.up = wholes<unsigned>(root, "up", top, "a level: switches above each node");
    tree.parallel = tree.up;
    if (root.contains("parallel"))
        tree.parallel = wholes<unsigned>(root, "parallel", top, "a level: links between a node and a switch above it");
    else
        std::fill(tree.parallel.begin(), tree.parallel.end(), 1u);
    for (const auto& [key, list] : {std::pair{"up", &tree.up}, {"parallel", &tree.parallel}})
        if (list->size() != tree.down.size())
            (top / key).fail("has " + std::to_string(list->size()) + " levels; expected " +
                             std::to_string(tree.down.size()) + " as \"down\" has");
    check_hosts(product_of(tree.down), top / "down");
    // Level i has prod(up[..i]) * prod(down[i..]) nodes.
    double links = 0;
    double nodes = product_of(tree.down);
    for (std::size_t i = 0; i < tree.down.size(); ++i) {
        links += nodes * tree.up[i] * tree.parallel[i];
        nodes = nodes / tree.down[i] * tree.up[i];
    }
    check_links(links, top / "up");
    return tree;
}

TorusShape read_torus(const json& root, const Place& top) {
    TorusShape torus;
    torus.link = read_link(root, top, {});
    torus.dimensions = wholes<unsigned long>(root, "dimensions", top, "a dimension");
    check_hosts(product_of(torus.dimensions), top / "dimensions");
    // One node in a direction has no neighbour there; of two such directions SimGrid would make the same links twice.
    std::erase(torus.dimensions, 1ul);
    if (torus.dimensions.empty()) torus.dimensions.push_back(1);
    check_links(product_of(torus.dimensions) * static_cast<double>(torus.dimensions.size()), top / "dimensions");
    return torus;
}

using Numbers = std::map<std::string, int>;

/// Number of the host or switch (`what`) that is named.
int number_of(const json& name, const Place& place, const char* what, const Numbers& numbers, const Keys& order) {
    if (!name.is_string()) place.fail("is " + found_text(name) + "; expected the name of a " + what);
    const auto found = numbers.find(name.get<std::string>());
    if (found != numbers.end()) return found->second;
    Keys names(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(order.size(), 1000)));
    const std::string near = nearest(name.get<std::string>(), names);
    if (names.size() > 4) names.resize(4);
    place.fail("there is no " + std::string(what) + " " + found_text(name) + "; " +
               (near.empty() ? "there are " + one_of(names, "and") + (order.size() > 4 ? ", ..." : "")
                             : "did you mean \"" + near + "\"?"));
}

FullShape read_full(const json& root, const Place& top, const std::vector<StarHost>& hosts) {
    FullShape full;
    full.link = read_link(root, top, {});
    const auto n = static_cast<double>(hosts.size());
    check_links(n * (n - 1) / 2, top / (root.contains("hosts") ? "hosts" : "count"));
    const auto links = root.find("links");
    if (links == root.end()) return full;
    if (!links->is_array()) (top / "links").fail("expected an array of links");
    Numbers numbers;
    Keys names;
    for (const StarHost& host : hosts) {
        numbers.emplace(host.name, static_cast<int>(numbers.size()));
        names.push_back(host.name);
    }
    std::set<std::pair<int, int>> seen;
    for (std::size_t i = 0; i < links->size(); ++i) {
        const Place place = top / "links" / std::to_string(i);
        const json& link = links->at(i);
        check_keys(link, place, {"between", "bandwidth", "latency", "comment"});
        const auto ends = link.find("between");
        if (ends == link.end() || !ends->is_array() || ends->size() != 2)
            (place / "between").fail("expected the names of two hosts, such as [\"a\", \"b\"]");
        FullShape::Pair pair;
        pair.a = number_of(ends->at(0), place / "between" / "0", "host", numbers, names);
        pair.b = number_of(ends->at(1), place / "between" / "1", "host", numbers, names);
        if (pair.a == pair.b) (place / "between").fail("names one host twice; expected two hosts");
        if (pair.a > pair.b) std::swap(pair.a, pair.b);
        if (!seen.insert({pair.a, pair.b}).second) (place / "between").fail("a second link between these hosts");
        pair.link = read_link(link, place, full.link);
        full.pairs.push_back(pair);
    }
    return full;
}

/// The switch above an entry. Only those that stand before it are known, so there is no circle.
int read_under(const json& entry, const Place& place, const Numbers& numbers, const Keys& names) {
    const auto under = entry.find("under");
    if (under == entry.end()) place.fail("\"under\" is missing; expected the name of a switch that stands before");
    return number_of(*under, place / "under", "switch", numbers, names);
}

TreeShape read_tree(const json& root, const Place& top, const std::vector<StarHost>& hosts) {
    const auto switches = root.find("switches");
    if (switches == root.end() || !switches->is_array() || switches->empty())
        (top / "switches").fail("expected an array of switches: the root, and others \"under\" one that stands before");
    check_links(static_cast<double>(switches->size() - 1), top / "switches");
    const LinkFigures otherwise = read_link(root, top, {});
    TreeShape tree;
    Numbers numbers;
    Keys names;
    std::vector<std::size_t> depths;
    for (std::size_t i = 0; i < switches->size(); ++i) {
        const Place place = top / "switches" / std::to_string(i);
        const json& entry = switches->at(i);
        check_keys(entry, place,
                   i == 0 ? Keys{"name", "comment"} : Keys{"name", "under", "bandwidth", "latency", "comment"});
        TreeShape::Switch each{read_name(entry, place, ""), -1, {}};
        if (each.name.empty()) place.fail("a switch without name; expected \"name\"");
        if (i > 0) each.under = read_under(entry, place, numbers, names);
        if (i > 0) each.link = read_link(entry, place, otherwise);
        if (!numbers.emplace(each.name, static_cast<int>(i)).second)
            (place / "name").fail("two switches are named \"" + each.name + "\"");
        names.push_back(each.name);
        depths.push_back(i == 0 ? 0 : depths[static_cast<std::size_t>(each.under)] + 1);
        if (depths[i] >= levels_max) place.fail("lies " + std::to_string(levels_max) + " levels below the root");
        tree.switches.push_back(each);
    }
    const json& entries = root.at("hosts");
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const Place place = top / "hosts" / std::to_string(i);
        const int under = read_under(entries.at(i), place, numbers, names);
        tree.switch_of_host.insert(tree.switch_of_host.end(),
                                   static_cast<std::size_t>(count(entries.at(i), "count", place, 1)), under);
    }
    for (const StarHost& host : hosts)
        if (numbers.contains(host.name)) (top / "hosts").fail("\"" + host.name + "\" is the name of a switch, too");
    return tree;
}

/// Of a byte; from 1.
std::ptrdiff_t line_at(std::string_view text, std::size_t byte) {
    return 1 + std::ranges::count(text.substr(0, byte), '\n');
}

/// Reads the text; duplicate keys and deep nesting are refused on the way.
json parse(std::string_view text, const std::string& name) {
    if (text.starts_with("\xef\xbb\xbf"))
        throw PlatformError(name + ": starts with a byte order mark, which JSON does not allow: save as plain UTF-8");
    if (text.starts_with("\x1f\x8b")) throw PlatformError(name + ": is compressed by gzip: expected JSON text");
    // The lexer takes it for the end, and would not see what follows.
    if (const auto zero = text.find('\0'); zero != std::string_view::npos)
        throw PlatformError(name + ":" + std::to_string(line_at(text, zero)) +
                            ": holds a zero byte: expected JSON text");
    std::vector<std::set<std::string>> keys;
    const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
        if (depth > depth_max)
            throw PlatformError(name + ": nested deeper than " + std::to_string(depth_max) + " levels");
        if (event == json::parse_event_t::object_start) keys.emplace_back();
        if (event == json::parse_event_t::object_end) keys.pop_back();
        if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
            Place{name, ""}.fail("duplicate key \"" + parsed.get<std::string>() + "\"");
        return true;
    };
    try {
        return json::parse(text, watch);
    } catch (const json::exception& error) {
        // "[json.exception...] parse error at line 1, column 2: why", or without a place.
        const std::string what = error.what();
        const auto* parse = dynamic_cast<const json::parse_error*>(&error);
        const auto why = what.substr(std::min(what.size(), what.find(parse ? ": " : "] ") + 2));
        const std::string line = parse ? ":" + std::to_string(line_at(text, parse->byte)) : "";
        Place{name + line, ""}.fail("not valid JSON: " + why);
    }
}

}  // namespace

JsonPlatform parse_platform_json(std::string_view text, const std::string& name, const PlatformLimits& limits) {
    const json root = parse(text, name);
    const Place top{name, "", limits};
    const Keys kinds{"star", "tree", "full", "fat-tree", "torus"};
    if (!root.is_object() || !root.contains("kind"))
        top.fail("expected an object with \"kind\": one of " + one_of(kinds));
    const json& kind = root.at("kind");
    if (!kind.is_string() || std::find(kinds.begin(), kinds.end(), kind.get<std::string>()) == kinds.end()) {
        const std::string near = kind.is_string() ? nearest(kind.get<std::string>(), kinds) : "";
        (top / "kind")
            .fail("is " + found_text(kind) + "; " +
                  (near.empty() ? "expected " + one_of(kinds) + " (a SimGrid XML file describes any platform)"
                                : "did you mean \"" + near + "\"?"));
    }
    Keys keys{"kind", "name", "hosts", "count", "speed", "cores", "bandwidth", "latency", "comment"};
    const Keys star_keys{"name", "count", "speed", "cores", "bandwidth", "latency", "comment"};
    const Keys host_keys{"name", "count", "speed", "cores", "comment"};
    JsonPlatform platform;
    if (kind == "star") {
        check_keys(root, top, keys);
        platform.hosts = read_hosts(root, top, star_keys, 0, "");
    } else if (kind == "tree") {
        keys.emplace_back("switches");
        check_keys(root, top, keys);
        if (!root.contains("hosts")) top.fail("expected \"hosts\", each \"under\" one of \"switches\"");
        Keys tree_keys = star_keys;
        tree_keys.emplace_back("under");
        platform.hosts = read_hosts(root, top, tree_keys, 0, "");
        platform.shape = read_tree(root, top, platform.hosts);
    } else if (kind == "full") {
        keys.emplace_back("links");
        check_keys(root, top, keys);
        platform.hosts = read_hosts(root, top, host_keys, 0, "");
        platform.shape = read_full(root, top, platform.hosts);
    } else if (kind == "fat-tree") {
        keys.insert(keys.end(), {"down", "up", "parallel"});
        check_keys(root, top, keys);
        const FatTreeShape tree = read_fat_tree(root, top);
        platform.hosts = read_hosts(root, top, host_keys, product_of(tree.down), product_text(tree.down));
        platform.shape = tree;
    } else {
        keys.emplace_back("dimensions");
        check_keys(root, top, keys);
        const TorusShape torus = read_torus(root, top);
        platform.hosts = read_hosts(root, top, host_keys, product_of(torus.dimensions), product_text(torus.dimensions));
        platform.shape = torus;
    }
    return platform;
}

}  // namespace rubato::sim
