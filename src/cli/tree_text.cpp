#include "cli/tree_text.hpp"

#include "cli/estimate.hpp"
#include "cli/protocol_text.hpp"
#include "core/relay.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rubato::cli {
namespace {

RelayConfig relay_of(const Scenario& scenario, const Tree::Relay& place) {
    RelayConfig relay;
    relay.place = place;
    relay.lambda = scenario.lambda();
    arrange(relay, traits_of(scenario));
    return relay;
}

std::string passed_on(const RelayConfig& relay) {
    if (relay.rounds) return "the sum of a round";
    if (relay.gradients > 1) return fmt::format("sums of {} gradients", relay.gradients);
    return "each gradient";
}

std::string counted(std::size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// "to relays 6-7".
std::string above(const Scenario& scenario, const Tree::Relay& first, const Tree::Relay& last) {
    if (last.parent == 0) return "to the server";
    const int own = scenario.lambda() + 1;
    if (first.parent == last.parent) return fmt::format("to relay {}", first.parent - own);
    return fmt::format("to relays {}-{}", first.parent - own, last.parent - own);
}

/// How far the last worker is from the root, and whom the root has to send to.
std::string downcast_text(const Tree& tree) {
    int depth = 0;
    for (WorkerId worker = 0; worker < tree.lambda(); ++worker) {
        int hops = 1;
        for (RoleId at = tree.feeder_of(worker); at != 0; at = tree.feeder_of(at - 1)) ++hops;
        depth = std::max(depth, hops);
    }
    return fmt::format("weights go from the server to {}, and from worker to worker, {} at most",
                       counted(tree.fed_by_root().size(), "worker"), counted(static_cast<std::size_t>(depth), "hop"));
}

}  // namespace

std::string topology_text(const Scenario& scenario) {
    const Tree tree = make_tree(scenario);
    if (scenario.topology == "sharded")
        return fmt::format("sharded: {}, split by {}, {} workers",
                           counted(static_cast<std::size_t>(scenario.shards.count), "server"),
                           scenario.shards.by_layers ? "layers" : "bytes", scenario.lambda());
    if (scenario.protocol.averages_in_rounds() || scenario.protocol.averages_in_parts())
        return fmt::format("a driver and {} workers: binomial broadcast, binary-tree reduce", scenario.lambda());
    if (scenario.protocol.gossips())
        return fmt::format("a monitor and {} workers, which hand models to each other", scenario.lambda());
    if (tree.star()) return fmt::format("{}: 1 server, {} workers", scenario.topology, scenario.lambda());
    std::size_t leaves = 0;
    for (const auto& relay : tree.relays()) leaves += relay.children.front() <= scenario.lambda();
    const std::size_t above = tree.relays().size() - leaves;
    std::string text = fmt::format(
        "{}: 1 server, {}{}, {} workers", scenario.topology, leaves == 1 ? "1 leaf" : fmt::format("{} leaves", leaves),
        above == 0 ? "" : " with " + counted(above, "relay") + " above them", scenario.lambda());
    if (tree.downcast()) text += "; " + downcast_text(tree);
    if (scenario.tree.broadcast) text += "; each new version is sent to the relays at once";
    return text;
}

std::vector<std::string> relay_lines(const Scenario& scenario, const sim::Placement& placement,
                                     const std::vector<sim::HostInfo>& hosts) {
    constexpr std::size_t lines_max = 12;
    const Tree tree = make_tree(scenario);
    const auto& relays = tree.relays();
    const auto host = [&](const Tree::Relay& relay) {
        return hosts[static_cast<std::size_t>(placement.host_of_role[static_cast<std::size_t>(relay.role)])].name;
    };
    const auto alike = [&](const Tree::Relay& a, const Tree::Relay& b) {
        return a.workers() == b.workers() && a.children.size() == b.children.size();
    };
    std::vector<std::string> lines;
    const auto siblings = [](const Tree::Relay& a, const Tree::Relay& b) {
        return (a.parent == 0) == (b.parent == 0);  // the server, or relays one after the other
    };
    for (std::size_t first = 0, last = 0; first < relays.size(); first = last + 1) {
        if (lines.size() == lines_max) {
            lines.push_back(fmt::format("... and {} more", relays.size() - first));
            break;
        }
        for (last = first; last + 1 < relays.size() && alike(relays[first], relays[last + 1]) &&
                           siblings(relays[first], relays[last + 1]);)
            ++last;
        const auto& one = relays[first];
        const bool leaf = one.children.front() <= scenario.lambda();
        lines.push_back(fmt::format(
            "{} on {}: {}{} below{}, passes {} {}",
            first == last ? fmt::format("relay {}", first) : fmt::format("relays {}-{}", first, last),
            host(one) == host(relays[last]) ? host(one) : host(one) + " to " + host(relays[last]),
            counted(static_cast<std::size_t>(one.workers()), "worker"),
            leaf ? "" : fmt::format(" and {}", counted(one.children.size(), "relay")), first == last ? "" : " each",
            passed_on(relay_of(scenario, one)), above(scenario, one, relays[last])));
    }
    return lines;
}

std::string feeds_text(const Scenario& scenario) {
    const Tree tree = make_tree(scenario);
    if (!tree.downcast()) return "";
    constexpr std::size_t senders_max = 4, names_max = 6;
    std::vector<std::vector<WorkerId>> fed(static_cast<std::size_t>(tree.lambda()) + 1);
    for (WorkerId worker = 0; worker < tree.lambda(); ++worker)
        fed[static_cast<std::size_t>(tree.feeder_of(worker))].push_back(worker);
    std::string text;
    std::size_t told = 0, others = 0;
    for (std::size_t role = 0; role < fed.size(); ++role) {
        if (fed[role].empty()) continue;
        if (told == senders_max) {
            ++others;
            continue;
        }
        ++told;
        text += (text.empty() ? "" : "; ") + (role == 0 ? std::string("server") : fmt::format("worker {}", role - 1)) +
                " to ";
        for (std::size_t i = 0; i < std::min(fed[role].size(), names_max); ++i)
            text += (i > 0 ? ", " : "") + std::to_string(fed[role][i]);
        if (fed[role].size() > names_max) text += fmt::format(" and {} more", fed[role].size() - names_max);
    }
    return others > 0 ? text + fmt::format("; and so on from {} more", others) : text;
}

int largest_shard(const Shards& shards) {
    int largest = 0;
    for (int shard = 1; shard < shards.count(); ++shard)
        if (shards.range(shard).count > shards.range(largest).count) largest = shard;
    return largest;
}

std::vector<std::string> shard_lines(const Scenario& scenario, std::int64_t parameters, const sim::Placement& placement,
                                     const std::vector<sim::HostInfo>& hosts) {
    constexpr int lines_max = 12;
    const Shards shards = make_shards(scenario, parameters);
    const auto host = [&](int shard) {
        return hosts[static_cast<std::size_t>(placement.host_of_role[static_cast<std::size_t>(shards.role(shard))])]
            .name;
    };
    std::vector<std::string> lines;
    for (int first = 0, last = 0; first < shards.used(); first = last + 1) {
        if (static_cast<int>(lines.size()) == lines_max) {
            lines.push_back(fmt::format("... and {} more", shards.used() - first));
            break;
        }
        const Range& range = shards.range(first);
        for (last = first; last + 1 < shards.used() && shards.range(last + 1).count == range.count;) ++last;
        const std::string size = bytes_text(static_cast<double>(shards.bytes(scenario.cost.push_bytes, range)));
        lines.push_back(fmt::format(
            "{} on {}: {} of a gradient{}, {:.3g} %",
            first == last ? fmt::format("shard {}", first) : fmt::format("shards {}-{}", first, last),
            first == last ? host(first) : host(first) + " to " + host(last), size, first == last ? "" : " each",
            100.0 * static_cast<double>(range.count) / static_cast<double>(shards.total())));
    }
    if (const int empty = shards.count() - shards.used(); empty > 0)
        lines.push_back(fmt::format("{} without parameters, as there are only {}: they take part in nothing",
                                    counted(static_cast<std::size_t>(empty), "shard"),
                                    scenario.shards.by_layers
                                        ? counted(scenario.layers.size(), "layer")
                                        : counted(static_cast<std::size_t>(shards.total()), "element")));
    return lines;
}

double relayed_messages(const Scenario& scenario, double pushes) {
    const Tree tree = make_tree(scenario);
    double messages = 0;
    for (const auto& place : tree.relays()) {
        const RelayConfig relay = relay_of(scenario, place);
        const double below = static_cast<double>(place.workers());
        messages += pushes * below / scenario.lambda() / (relay.rounds ? below : relay.gradients);
    }
    return messages;
}

bool relays_sum(const Scenario& scenario) {
    const Tree tree = make_tree(scenario);
    for (const auto& place : tree.relays()) {
        const RelayConfig relay = relay_of(scenario, place);
        if (relay.rounds || relay.gradients > 1) return true;
    }
    return false;
}

}  // namespace rubato::cli
