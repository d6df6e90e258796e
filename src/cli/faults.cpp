#include "cli/faults.hpp"

#include "cli/complete.hpp"
#include "cli/estimate.hpp"
#include "cli/node_value.hpp"
#include "cli/protocol_text.hpp"
#include "cli/spells.hpp"

#include <fmt/format.h>

#include <algorithm>
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

/// "host a", "hosts a, b and 3 more".
template <class T>
std::string members_text(const std::string& kind, const std::vector<T>& members) {
    constexpr std::size_t names_max = 8;
    std::string text = kind + (members.size() == 1 ? " " : "s ");
    for (std::size_t i = 0; i < std::min(members.size(), names_max); ++i)
        text += fmt::format("{}{}", i == 0 ? "" : ", ", members[i]);
    return members.size() <= names_max ? text : text + fmt::format(" and {} more", members.size() - names_max);
}

std::string crash_text(const FaultSpec& fault) {
    const bool one = fault.workers.size() + fault.hosts.size() == 1;
    const std::string crash = one ? " crashes" : " crash";
    const std::string who = fault.hosts.empty() ? members_text("worker", fault.workers) + crash
                                                : members_text("host", fault.hosts) + crash +
                                                      " with all that runs on " + (one ? "it" : "them");
    if (fault.every_s > 0)
        return who + fmt::format(" at random: {}up {} and down {}, means of exponential times", one ? "" : "each ",
                                 seconds_text(fault.every_s), seconds_text(fault.for_s));
    const std::string end = fault.until_s > 0 ? "back at " + seconds_text(fault.until_s) : "for good";
    return who + fmt::format(" at {}, {}", seconds_text(fault.at_s), end);
}

std::string link_text(const FaultSpec& fault) {
    std::string what, when;
    if (fault.bandwidth_factor != 1) what = fmt::format("bandwidth times {:g}", fault.bandwidth_factor);
    if (fault.latency_factor != 1)
        what += fmt::format("{}latency times {:g}", what.empty() ? "" : ", ", fault.latency_factor);
    if (fault.every_s > 0)
        when =
            fmt::format("at random{}, for {} after every {}, means of exponential times",
                        fault.links.size() == 1 ? "" : " each", seconds_text(fault.for_s), seconds_text(fault.every_s));
    else
        when = fmt::format("from {} {}", seconds_text(fault.at_s),
                           fault.until_s > 0 ? "until " + seconds_text(fault.until_s) : "on");
    return fmt::format("{}, {}: {}", members_text("link", fault.links), when, what.empty() ? "as ever" : what);
}

}  // namespace

std::vector<std::string> fault_sentences(const Scenario& scenario) {
    std::vector<std::string> sentences;
    bool crashes = false;
    for (const FaultSpec& fault : scenario.faults) {
        crashes = crashes || fault.links.empty();
        sentences.push_back(fault.links.empty() ? crash_text(fault) : link_text(fault));
    }
    if (crashes && traits_of(scenario).rounds)
        sentences.emplace_back("a round waits for all: the first crash ends the run as peer_lost");
    else if (crashes && scenario.protocol.warm_epochs > 0)
        sentences.emplace_back("a round waits for all: a crash within the warm start ends the run as peer_lost");
    return sentences;
}

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
