#include "sim/platform_json.hpp"

#include "sim/network.hpp"
#include "sim/units.hpp"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace rubato::sim {

namespace {

using nlohmann::json;

/// A place in the file, for messages: "p.json: /hosts/3/bandwidth: ".
struct Place {
    std::string file;
    std::string path;
    Place operator/(const std::string& key) const { return {file, path + "/" + key}; }
    [[noreturn]] void fail(const std::string& message) const {
        throw PlatformError(file + ": " + (path.empty() ? "" : path + ": ") + message);
    }
};

std::string quoted_list(std::initializer_list<const char*> keys) {
    std::string text;
    for (const char* key : keys) text += (text.empty() ? "" : ", ") + std::string(key);
    return text;
}

void check_keys(const json& object, const Place& place, std::initializer_list<const char*> allowed) {
    if (!object.is_object()) place.fail("expected an object");
    for (const auto& [key, value] : object.items())
        if (std::find(allowed.begin(), allowed.end(), key) == allowed.end())
            (place / key).fail("unknown key; expected one of " + quoted_list(allowed));
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
            (place / key).fail("is " + found->dump() + "; expected a value above zero");
        }
    } catch (const UnitError& error) {
        (place / key).fail(error.what());
    }
    (place / key).fail("expected a string with a unit, or a number");
}

int count(const json& object, const char* key, const Place& place, int otherwise) {
    const auto found = object.find(key);
    if (found == object.end()) return otherwise;
    if (!found->is_number_integer() || *found < 1 || *found > std::numeric_limits<int>::max())
        (place / key).fail("is " + found->dump() + "; expected a whole number of at least 1");
    return found->get<int>();
}

StarHost read_host(const json& object, const Place& place, const StarHost& otherwise) {
    StarHost host = otherwise;
    host.speed = quantity(object, "speed", place, Quantity::speed, otherwise.speed);
    host.cores = count(object, "cores", place, otherwise.cores);
    host.bandwidth = quantity(object, "bandwidth", place, Quantity::bandwidth, otherwise.bandwidth);
    host.latency = quantity(object, "latency", place, Quantity::duration, otherwise.latency);
    if (const auto name = object.find("name"); name != object.end()) {
        if (!name->is_string() || name->get<std::string>().empty()) (place / "name").fail("expected a name");
        host.name = name->get<std::string>();
    }
    return host;
}

/// One entry of "hosts": one host, or `count` hosts NAME0, NAME1, ... of the same make.
void append(const json& object, const Place& place, const StarHost& otherwise, std::vector<StarHost>& hosts) {
    check_keys(object, place, {"name", "count", "speed", "cores", "bandwidth", "latency", "comment"});
    const StarHost host = read_host(object, place, otherwise);
    const bool several = object.contains("count");
    if (host.name.empty()) {
        if (!several) place.fail("a host without name; expected \"name\", or \"count\" for hosts named by number");
        place.fail("hosts without name; expected \"name\", to which the number is appended");
    }
    for (int i = 0, n = count(object, "count", place, 1); i < n; ++i) {
        hosts.push_back(host);
        if (several) hosts.back().name += std::to_string(i);
    }
}

json parse(const std::string& path) {
    std::ifstream in(path);
    if (!in) throw PlatformError(path + ": cannot open the platform file");
    try {
        return json::parse(in);
    } catch (const json::parse_error& error) {
        std::string text = error.what();
        const auto message = text.find("parse error");
        throw PlatformError(path + ": " + (message == std::string::npos ? text : text.substr(message)));
    }
}

}  // namespace

StarPlatform read_platform_json(const std::string& path) {
    const json root = parse(path);
    const Place top{path, ""};
    if (!root.is_object() || !root.contains("kind")) top.fail("expected an object with \"kind\": \"star\"");
    const json& kind = root.at("kind");
    if (!kind.is_string() || kind != "star")
        (top / "kind")
            .fail("is " + kind.dump() +
                  "; only \"star\" can be read so far, other kinds not yet (a SimGrid "
                  "XML file describes any platform)");
    check_keys(root, top, {"kind", "name", "hosts", "count", "speed", "cores", "bandwidth", "latency", "comment"});
    StarHost otherwise = read_host(root, top, StarHost{});
    StarPlatform star;
    if (const auto hosts = root.find("hosts"); hosts != root.end()) {
        if (root.contains("count")) (top / "count").fail("stands beside \"hosts\"; expected one of the two");
        if (!hosts->is_array()) (top / "hosts").fail("expected an array of hosts");
        otherwise.name.clear();
        for (std::size_t i = 0; i < hosts->size(); ++i)
            append(hosts->at(i), top / "hosts" / std::to_string(i), otherwise, star.hosts);
    } else {
        if (!root.contains("count")) top.fail("expected \"hosts\", or \"count\" for hosts that are all alike");
        if (otherwise.name.empty()) otherwise.name = "host-";
        for (int i = 0, n = count(root, "count", top, 0); i < n; ++i) {
            star.hosts.push_back(otherwise);
            star.hosts.back().name += std::to_string(i);
        }
    }
    if (star.hosts.empty()) (top / "hosts").fail("is empty; expected at least one host");
    std::set<std::string> names;
    for (const StarHost& host : star.hosts)
        if (!names.insert(host.name).second) (top / "hosts").fail("two hosts are named \"" + host.name + "\"");
    return star;
}

}  // namespace rubato::sim
