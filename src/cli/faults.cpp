#include "cli/faults.hpp"

#include "cli/node_value.hpp"
#include "cli/suggest.hpp"

#include <set>
#include <string>

namespace rubato::cli {
namespace {

[[noreturn]] void refuse(const Node& node, const std::string& path, const std::string& why) {
    throw InputError(node.where, path, why);
}

void check_members(const Node& fault, const std::string& path, std::int64_t lambda) {
    for (const char* key : {"workers", "hosts", "links"}) {
        const Node* members = fault.find(key);
        std::set<std::string> seen;
        for (std::size_t i = 0; members && i < members->items.size(); ++i) {
            const Node& item = members->items[i];
            const std::string place = path + "." + key + "[" + std::to_string(i) + "]";
            if (item.is_number() && item.whole() >= lambda)
                refuse(item, place, "there is no such worker: they are 0 to " + std::to_string(lambda - 1));
            const std::string name = item.is_number() ? std::to_string(item.whole()) : item.text;
            if (!seen.insert(name).second) refuse(item, place, "stands there twice");
        }
    }
}

void check_times(const Node& fault, const std::string& path) {
    const Node* at = fault.find("at_s");
    const Node* until = fault.find("until_s");
    const bool spell = at || until, random = fault.find("every_s") || fault.find("for_s");
    if (spell == random) refuse(fault, path, "expected one of: at_s (and until_s), or every_s with for_s");
    if (random && !(fault.find("every_s") && fault.find("for_s")))
        refuse(fault, path, "expected every_s and for_s together: the mean times between spells and of spells");
    if (until && !at) refuse(fault, path, "expected at_s, the begin of the spell, with until_s");
    if (until && quantity(*until, Quantity::duration) <= quantity(*at, Quantity::duration))
        refuse(*until, path + ".until_s", "expected an end after the begin, at_s");
}

}  // namespace

void check_faults(const Node& faults, std::int64_t lambda) {
    for (std::size_t i = 0; i < faults.items.size(); ++i) {
        const Node& fault = faults.items[i];
        const std::string path = "faults[" + std::to_string(i) + "]";
        const Node* links = fault.find("links");
        if ((fault.find("workers") != nullptr) + (fault.find("hosts") != nullptr) + (links != nullptr) != 1)
            refuse(fault, path, "expected one of: workers, hosts or links");
        const Node* bandwidth = fault.find("bandwidth_factor");
        const Node* latency = fault.find("latency_factor");
        if (links && !bandwidth && !latency)
            refuse(fault, path, "expected bandwidth_factor or latency_factor with links");
        if (!links && bandwidth) refuse(*bandwidth, path + ".bandwidth_factor", "goes with links");
        if (!links && latency) refuse(*latency, path + ".latency_factor", "goes with links");
        check_times(fault, path);
        check_members(fault, path, lambda);
    }
}

std::vector<FaultSpec> build_faults(const Node& faults) {
    std::vector<FaultSpec> specs;
    for (const Node& fault : faults.items) {
        FaultSpec& spec = specs.emplace_back();
        if (const Node* workers = fault.find("workers"))
            for (const Node& item : workers->items) spec.workers.push_back(to_int(item));
        for (const auto& [key, names] : {std::pair{"hosts", &spec.hosts}, std::pair{"links", &spec.links}})
            if (const Node* list = fault.find(key))
                for (const Node& item : list->items) names->push_back(item.text);
        for (const auto& [key, seconds] : {std::pair{"at_s", &spec.at_s}, std::pair{"until_s", &spec.until_s},
                                           std::pair{"every_s", &spec.every_s}, std::pair{"for_s", &spec.for_s}})
            if (const Node* found = fault.find(key)) *seconds = quantity(*found, Quantity::duration);
        if (const Node* factor = fault.find("bandwidth_factor")) spec.bandwidth_factor = factor->number;
        if (const Node* factor = fault.find("latency_factor")) spec.latency_factor = factor->number;
    }
    return specs;
}

}  // namespace rubato::cli
