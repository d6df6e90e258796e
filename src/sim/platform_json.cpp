#include "sim/platform_json.hpp"

#include "sim/network.hpp"
#include "sim/platform_fields.hpp"
#include "sim/suggest.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

namespace rubato::sim {

namespace {

using nlohmann::json;

constexpr std::size_t file_max = 64u << 20;
constexpr int depth_max = 16;

StarHost read_host(const json& object, const Place& place, const StarHost& otherwise) {
    StarHost host = otherwise;
    host.speed = quantity(object, "speed", place, Quantity::speed, otherwise.speed);
    host.cores = count(object, "cores", place, otherwise.cores);
    host.bandwidth = quantity(object, "bandwidth", place, Quantity::bandwidth, otherwise.bandwidth);
    host.latency = quantity(object, "latency", place, Quantity::duration, otherwise.latency);
    host.name = read_name(object, place, otherwise.name);
    return host;
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

/// Number of the host that an entry of "links" names.
int host_number(const json& name, const Place& place, const std::vector<StarHost>& hosts,
                const std::map<std::string, int>& numbers) {
    if (!name.is_string()) place.fail("is " + found_text(name) + "; expected the name of a host");
    const auto found = numbers.find(name.get<std::string>());
    if (found != numbers.end()) return found->second;
    Keys names;
    for (std::size_t i = 0; i < hosts.size() && i < 1000; ++i) names.push_back(hosts[i].name);
    const std::string near = nearest(name.get<std::string>(), names);
    if (names.size() > 4) names.resize(4);
    place.fail("there is no host " + found_text(name) + "; " +
               (near.empty() ? "there are " + one_of(names, "and") + (hosts.size() > 4 ? ", ..." : "")
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
    std::map<std::string, int> numbers;
    for (const StarHost& host : hosts) numbers.emplace(host.name, static_cast<int>(numbers.size()));
    std::set<std::pair<int, int>> seen;
    for (std::size_t i = 0; i < links->size(); ++i) {
        const Place place = top / "links" / std::to_string(i);
        const json& link = links->at(i);
        check_keys(link, place, {"between", "bandwidth", "latency", "comment"});
        const auto ends = link.find("between");
        if (ends == link.end() || !ends->is_array() || ends->size() != 2)
            (place / "between").fail("expected the names of two hosts, such as [\"a\", \"b\"]");
        FullShape::Pair pair;
        pair.a = host_number(ends->at(0), place / "between" / "0", hosts, numbers);
        pair.b = host_number(ends->at(1), place / "between" / "1", hosts, numbers);
        if (pair.a == pair.b) (place / "between").fail("names one host twice; expected two hosts");
        if (pair.a > pair.b) std::swap(pair.a, pair.b);
        if (!seen.insert({pair.a, pair.b}).second) (place / "between").fail("a second link between these hosts");
        pair.link = read_link(link, place, full.link);
        full.pairs.push_back(pair);
    }
    return full;
}

/// Reads the text; duplicate keys and deep nesting are refused on the way.
json parse(std::string_view text, const std::string& name) {
    if (text.starts_with("\xef\xbb\xbf"))
        throw PlatformError(name + ": starts with a byte order mark, which JSON does not allow: save as plain UTF-8");
    if (text.starts_with("\x1f\x8b")) throw PlatformError(name + ": is compressed by gzip: expected JSON text");
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
        std::string what = error.what();
        const auto begin = what.find("parse error");
        if (begin == std::string::npos) what = what.substr(std::min(what.size(), what.find("] ") + 2));
        Place{name, ""}.fail(begin == std::string::npos ? what : what.substr(begin));
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
    const Keys host_keys{"name", "count", "speed", "cores", "comment"};
    JsonPlatform platform;
    if (kind == "star") {
        check_keys(root, top, keys);
        platform.hosts =
            read_hosts(root, top, {"name", "count", "speed", "cores", "bandwidth", "latency", "comment"}, 0, "");
    } else if (kind == "tree") {
        keys.emplace_back("switches");
        check_keys(root, top, keys);
        if (!root.contains("hosts")) top.fail("expected \"hosts\", each \"under\" one of \"switches\"");
        platform.hosts = read_hosts(
            root, top, {"name", "count", "under", "speed", "cores", "bandwidth", "latency", "comment"}, 0, "");
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

JsonPlatform read_platform_json(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw PlatformError(path + ": cannot open the platform file");
    std::string text;
    for (char part[65536]; text.size() <= file_max && (in.read(part, sizeof part), in.gcount() > 0);)
        text.append(part, static_cast<std::size_t>(in.gcount()));
    if (in.bad()) throw PlatformError(path + ": cannot be read");
    if (text.size() > file_max) throw PlatformError(path + ": is larger than 64 MiB");
    return parse_platform_json(text, path);
}

}  // namespace rubato::sim
