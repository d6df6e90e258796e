#include "cli/calibrate/use_profile.hpp"

#include "cli/json_reader.hpp"
#include "cli/suggest.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;
namespace fs = std::filesystem;

/// The points of a sweep read the same file again and again.
std::shared_ptr<const Profile> shared_profile(const std::string& path) {
    struct Entry {
        std::string text;
        std::shared_ptr<const Profile> profile;
    };
    static std::mutex mutex;
    static std::map<std::string, Entry> known;
    const std::string text = read_file(path);
    const std::lock_guard lock(mutex);
    Entry& entry = known[path];
    if (!entry.profile || entry.text != text)
        entry = {text, std::make_shared<const Profile>(parse_profile(text, path))};
    return entry.profile;
}

std::string path_of(const Node& node) {
    const fs::path folder = node.where.line > 0 ? fs::path(*node.where.file).parent_path() : fs::path();
    return (folder / node.text).lexically_normal().string();
}

std::shared_ptr<const Profile> read_at(const Node& node, const std::string& place) {
    const std::string path = path_of(node);
    std::error_code error;
    if (!fs::exists(path, error)) throw InputError(node.where, place, "there is no file " + path);
    return shared_profile(path);
}

/// A string that names something; anything else is left for the walk to refuse.
const Node* file_name(const Node& object, std::string_view key) {
    const Node* node = object.find(key);
    return node && node->is(Kind::string) && !node->text.empty() ? node : nullptr;
}

const DeviceProfile& device_named(const Profile& profile, const std::string& name, bool any_name, const Where& where,
                                  const std::string& place) {
    const auto found = profile.compute.find(name);
    if (found != profile.compute.end()) return found->second;
    if (profile.compute.size() == 1 && (any_name || name == "default" || profile.compute.contains("default")))
        return profile.compute.begin()->second;
    std::vector<std::string> names;
    for (const auto& [other, device] : profile.compute) names.push_back("\"" + other + "\"");
    throw InputError(where, place,
                     "the profile has no times of device class \"" + name + "\", only of " +
                         (names.empty() ? "none" : one_of(names, "and")));
}

Node list_of(const std::vector<double>& values, const Where& where) {
    Node list;
    list.kind = Kind::array;
    list.where = where;
    for (const double value : values) {
        list.items.push_back(Node::of(value));
        list.items.back().where = where;
    }
    return list;
}

/// Keys are given in turn; those that the scenario has stay, unless they are to be replaced.
class Writer {
public:
    Writer(const Where& where, bool replace) : where_(where), replace_(replace) {}

    bool may_set(const Node& object, std::initializer_list<std::string_view> keys) const {
        if (replace_) return true;
        for (const auto key : keys) {
            if (object.find(key)) return false;
        }
        return true;
    }
    /// The same for figures that are missed where they stay away: `place` is told.
    bool may_give(const Node& object, std::initializer_list<std::string_view> keys, const std::string& place) {
        const bool may = may_set(object, keys);
        if (!may) stayed_.push_back(place);
        return may;
    }
    std::vector<std::string> stayed() { return std::move(stayed_); }
    void set(Node& object, std::string_view key, Node value) const {
        value.where = where_;
        object.set(key, std::move(value), where_);
    }
    /// The object at a key, made where it is missing; null where something else is there.
    Node* object_at(Node& parent, std::string_view key) const {
        Node* found = parent.find(key);
        if (!found) {
            set(parent, key, Node::object());
            found = parent.find(key);
        }
        return found->is(Kind::object) ? found : nullptr;
    }
    const Where& where() const { return where_; }

private:
    Where where_;
    bool replace_;
    std::vector<std::string> stayed_;
};

std::string origin(const Profile& profile, const std::string& source) {
    std::string text = source == "measured" ? "measured" : source == "run" ? "from a run" : "from a table of " + source;
    if (!profile.host.empty()) text += " on " + profile.host;
    if (!profile.date.empty()) text += ", " + profile.date;
    return text;
}

/// seconds, quantiles and levels, and host_sharing where the device does not give its own.
void put_device(Node& object, const Profile& profile, const DeviceProfile& device, const Writer& writer) {
    Node seconds = Node::object();
    Node quantiles = Node::object();
    std::int64_t n = 0;
    for (const auto& [batch, times] : device.batches) {
        writer.set(seconds, std::to_string(batch), Node::of(times.mean + device.dispatch_s));
        n += times.n;
        if (times.quantiles.empty()) continue;
        std::vector<double> values = times.quantiles;
        for (double& value : values) value += device.dispatch_s;
        writer.set(quantiles, std::to_string(batch), list_of(values, writer.where()));
    }
    for (const char* key : {"c", "p", "b0", "a", "b", "profile", "quantiles", "levels"}) object.erase(key);
    if (writer.may_set(object, {"comment"}))
        writer.set(object, "comment",
                   Node::of("Times of " + std::to_string(n) + " gradients " + origin(profile, device.source) + "."));
    writer.set(object, "seconds", std::move(seconds));
    if (!quantiles.members.empty()) {
        writer.set(object, "quantiles", std::move(quantiles));
        writer.set(object, "levels", list_of(profile.levels, writer.where()));
    }
    if (device.host_sharing.empty() || !writer.may_set(object, {"host_sharing"})) return;
    Node sharing = Node::object();
    for (const auto& [workers, factor] : device.host_sharing)
        writer.set(sharing, std::to_string(workers), Node::of(factor));
    writer.set(object, "host_sharing", std::move(sharing));
}

/// Classes that workers name.
std::set<std::string> classes_of(const Node& root) {
    const auto name_of = [](const Node& group) {
        const Node* device = group.find("device");
        return device && device->is(Kind::string) ? device->text : std::string("default");
    };
    const Node* workers = root.find("workers");
    if (!workers || !workers->is(Kind::object)) return {};
    const Node* groups = workers->find("groups");
    if (!groups) return {name_of(*workers)};
    std::set<std::string> names;
    for (const Node& group : groups->items) names.insert(name_of(group));
    return names;
}

/// Slow moments are those of the scatter that the profile gives.
void put_common(Node& cluster, const CommonNoise& common, const Writer& writer) {
    Node* noise = writer.object_at(cluster, "noise");
    if (!noise || !writer.may_set(*noise, {"common"})) return;
    Node value = Node::object();
    writer.set(value, "share", Node::of(common.share));
    writer.set(value, "time_s", Node::of(common.time_s));
    writer.set(*noise, "common", std::move(value));
}

void put_server(Node& cluster, const ServerProfile& profile, Writer& writer) {
    Node* server = writer.object_at(cluster, "server");
    if (!server) return;
    bool used = false;
    const auto put = [&](const std::string& key, const std::optional<OperationCost>& cost) {
        if (!cost || !writer.may_give(*server, {key + "_s", key + "_s_per_byte"}, "server." + key + "_s")) return;
        writer.set(*server, key + "_s", Node::of(cost->fixed_s));
        writer.set(*server, key + "_s_per_byte", Node::of(cost->per_byte_s));
        used = true;
    };
    put("push", profile.push);
    put("pull", profile.pull);
    put("update", profile.update);
    if (used && writer.may_set(*server, {"measured_bytes"}))
        writer.set(*server, "measured_bytes", list_of({profile.bytes.smallest, profile.bytes.largest}, writer.where()));
}

/// A message crosses two links of a star, with half of the latency each.
void put_star(Node& cluster, const NetworkProfile& profile, Writer& writer) {
    if (cluster.find("platform")) return;
    Node* network = writer.object_at(cluster, "network");
    Node* star = network ? writer.object_at(*network, "star") : nullptr;
    if (!star) return;
    bool used = false;
    if (writer.may_give(*star, {"bandwidth", "server_bandwidth"}, "network.star.bandwidth")) {
        writer.set(*star, "bandwidth", Node::of(profile.bandwidth));
        star->erase("server_bandwidth");
        if (profile.server_bandwidth) writer.set(*star, "server_bandwidth", Node::of(*profile.server_bandwidth));
        used = true;
    }
    if (writer.may_give(*star, {"latency"}, "network.star.latency")) {
        writer.set(*star, "latency", Node::of(profile.latency_s / 2));
        used = true;
    }
    if (used && writer.may_set(*star, {"measured_bytes"}))
        writer.set(*star, "measured_bytes", list_of({profile.bytes.smallest, profile.bytes.largest}, writer.where()));
}

// Workers that slow each other down in the profile do not where each has a host of its own, which is the default.
void note_placement(const Node& root, const Profile& profile, std::vector<std::string>& notes) {
    std::int64_t most = 1;
    for (const auto& name : classes_of(root)) {
        const auto found = profile.compute.find(name);
        const auto& device = found == profile.compute.end() ? profile.compute.begin()->second : found->second;
        if (!device.host_sharing.empty()) most = std::max(most, device.host_sharing.rbegin()->first);
    }
    const Node* workers = root.find("workers");
    const Node* groups = workers ? workers->find("groups") : nullptr;
    bool placed = !workers || workers->find("hosts") || workers->find("per_host");
    for (const Node& group : groups ? groups->items : std::vector<Node>{}) placed = placed || group.find("per_host");
    if (most == 1 || placed) return;
    notes.push_back("cluster.profile: its times were taken with up to " + std::to_string(most) +
                    " workers on a host, and here each worker has one of its own; workers.hosts=1 puts all on one");
}

}  // namespace

std::vector<std::string> put_profile(Node& root, const Profile& profile, const Where& where, const ProfileParts& parts,
                                     bool replace) {
    Writer writer(where, replace);
    Node* cluster = writer.object_at(root, "cluster");
    if (!cluster) return {};
    Node* devices = parts.compute && !profile.compute.empty() ? writer.object_at(*cluster, "devices") : nullptr;
    bool scatters = false;
    if (devices) {
        for (const auto& name : classes_of(root)) {
            if (!writer.may_give(*devices, {name}, "devices." + name)) continue;
            const DeviceProfile& device = device_named(profile, name, false, where, "cluster.profile");
            if (Node* object = writer.object_at(*devices, name)) put_device(*object, profile, device, writer);
            scatters = true;
        }
    }
    if (scatters && profile.common) put_common(*cluster, *profile.common, writer);
    if (parts.server && profile.server) put_server(*cluster, *profile.server, writer);
    if (parts.network && profile.network) put_star(*cluster, *profile.network, writer);
    return writer.stayed();
}

void use_profiles(Node& root, std::vector<std::string>& notes) {
    Node* cluster = root.find("cluster");
    if (!cluster || !cluster->is(Kind::object)) return;
    if (Node* devices = cluster->find("devices")) {
        for (auto& [name, key_where, device] : devices->members) {
            const Node* file = device.is(Kind::object) ? file_name(device, "profile") : nullptr;
            bool alone = file != nullptr;
            for (const char* key : {"seconds", "c", "p", "b0", "a", "b", "quantiles", "levels"})
                alone = alone && !device.find(key);
            if (!alone) continue;
            const std::string place = "cluster.devices." + name + ".profile";
            const auto profile = read_at(*file, place);
            const Where where = file->where;
            put_device(device, *profile, device_named(*profile, name, true, where, place), Writer(where, false));
        }
    }
    const Node* file = file_name(*cluster, "profile");
    if (!file) return;
    const auto profile = read_at(*file, "cluster.profile");
    const Where where = file->where;
    const std::string name = file->text;
    cluster->erase("profile");
    const auto stayed = put_profile(root, *profile, where);
    if (!profile->compute.empty()) note_placement(root, *profile, notes);
    if (!stayed.empty())
        notes.push_back("cluster.profile: the scenario gives " + one_of(stayed, "and") + " itself, so that " + name +
                        " does not");
}

void drop_profiles(Node& root) {
    const Writer writer({}, false);
    Node* cluster = root.find("cluster");
    if (!cluster || !cluster->is(Kind::object)) return;
    const bool named = file_name(*cluster, "profile") != nullptr;
    if (named) cluster->erase("profile");
    Node* devices = writer.object_at(*cluster, "devices");
    if (!devices) return;
    for (auto& member : devices->members) {
        if (member.value.is(Kind::object) && file_name(member.value, "profile")) member.value.erase("profile");
    }
    for (const auto& name : named ? classes_of(root) : std::set<std::string>()) writer.object_at(*devices, name);
}

}  // namespace rubato::cli
