#include "cli/faults.hpp"

#include "cli/complete.hpp"
#include "cli/node_value.hpp"
#include "cli/spells.hpp"

#include <string>

namespace rubato::cli {
namespace {

void check_times(const Node& fault, const std::string& path) {
    const Node* at = fault.find("at_s");
    const Node* until = fault.find("until_s");
    const bool spell = at || until, random = fault.find("every_s") || fault.find("for_s");
    if (spell == random) refuse(fault, path, "expected one of: at_s (and until_s), or every_s with for_s");
    check_spells(fault, path, "at_s");
    if (until && !at) refuse(fault, path, "expected at_s, the begin of the spell, with until_s");
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
        for (const char* key : {"workers", "hosts", "links"})
            if (const Node* members = fault.find(key)) check_members(*members, path + "." + key, lambda);
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
        spec.at_s = seconds_of(fault, "at_s");
        spec.until_s = seconds_of(fault, "until_s");
        spec.every_s = seconds_of(fault, "every_s");
        spec.for_s = seconds_of(fault, "for_s");
        if (const Node* factor = fault.find("bandwidth_factor")) spec.bandwidth_factor = factor->number;
        if (const Node* factor = fault.find("latency_factor")) spec.latency_factor = factor->number;
    }
    return specs;
}

}  // namespace rubato::cli
