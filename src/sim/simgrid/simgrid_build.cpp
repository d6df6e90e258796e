#include "sim/simgrid/simgrid_build.hpp"

#include <map>
#include <utility>

namespace rubato::sim {

namespace s4u = simgrid::s4u;

namespace {

using Hosts = std::vector<s4u::Host*>;

s4u::Host* create_host(s4u::NetZone& zone, const StarHost& spec) {
    s4u::Host* host = zone.create_host(spec.name, spec.speed);
    host->set_core_count(spec.cores);
    return host;
}

s4u::LinkInRoute create_link(s4u::NetZone& zone, const std::string& name, const LinkFigures& figures) {
    const auto* link =
        zone.create_split_duplex_link("link-" + name, figures.bandwidth)->set_latency(figures.latency)->seal();
    return {dynamic_cast<const s4u::SplitDuplexLink*>(link), s4u::LinkInRoute::Direction::UP};
}

// Without links of their own the workers' hosts are one to the solver, so one stands for all: with ten thousand each
// would be cold whenever its turn comes.
Hosts build_star(const std::vector<StarHost>& specs, const StarLinks& links) {
    Hosts hosts;
    hosts.reserve(specs.size());
    s4u::NetZone* zone = s4u::create_star_zone("star");
    for (const StarHost& spec : specs) {
        if (!links.workers && hosts.size() > 1) {
            hosts.push_back(hosts[1]);
            continue;
        }
        s4u::Host* host = create_host(*zone, spec);
        const auto add = [&](const std::vector<s4u::LinkInRoute>& up) {
            zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, up, true);
        };
        const bool server = hosts.empty();
        hosts.push_back(host);
        if (server ? links.server : links.workers)
            add({create_link(*zone, spec.name,
                             {spec.bandwidth, spec.latency * (links.server && links.workers ? 1 : 2)})});
        else
            add({});
    }
    zone->seal();
    return hosts;
}

Hosts build_full(const FullShape& full, const std::vector<StarHost>& specs) {
    Hosts hosts;
    s4u::NetZone* zone = s4u::create_full_zone("full");
    for (const StarHost& spec : specs) hosts.push_back(create_host(*zone, spec));
    std::map<std::pair<std::size_t, std::size_t>, LinkFigures> apart;
    for (const auto& pair : full.pairs)
        apart[{static_cast<std::size_t>(pair.a), static_cast<std::size_t>(pair.b)}] = pair.link;
    for (std::size_t a = 0; a < hosts.size(); ++a) {
        for (std::size_t b = a + 1; b < hosts.size(); ++b) {
            const auto other = apart.find({a, b});
            const auto link = create_link(*zone, specs[a].name + "-" + specs[b].name,
                                          other == apart.end() ? full.link : other->second);
            zone->add_route(hosts[a]->get_netpoint(), hosts[b]->get_netpoint(), nullptr, nullptr, {link}, true);
        }
    }
    zone->seal();
    return hosts;
}

/// What the zones of clusters call for each leaf, in the order of their numbers.
s4u::ClusterCallbacks leaves(const std::vector<StarHost>& specs, Hosts& hosts) {
    return s4u::ClusterCallbacks([&](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long) {
        hosts.push_back(create_host(*zone, specs.at(hosts.size())));
        return std::pair<simgrid::kernel::routing::NetPoint*, simgrid::kernel::routing::NetPoint*>(
            hosts.back()->get_netpoint(), nullptr);
    });
}

Hosts build_fat_tree(const FatTreeShape& tree, const std::vector<StarHost>& specs) {
    Hosts hosts;
    const s4u::FatTreeParams parameters(static_cast<unsigned>(tree.down.size()), tree.down, tree.up, tree.parallel);
    s4u::create_fatTree_zone("fat-tree", nullptr, parameters, leaves(specs, hosts), tree.link.bandwidth,
                             tree.link.latency, s4u::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
    return hosts;
}

/// SimGrid's zones hold either hosts or other zones. So a switch has a star zone for what is below it: the zones of
/// switches, each with its link upwards, and, without links of its own, one for hosts, whose router is the way out.
Hosts build_tree(const TreeShape& tree, const std::vector<StarHost>& specs) {
    struct Zones {
        s4u::NetZone *all, *hosts;
        simgrid::kernel::routing::NetPoint* router;
    };
    const std::vector<s4u::LinkInRoute> none;
    std::vector<Zones> zones;
    for (const auto& each : tree.switches) {
        s4u::NetZone* all = s4u::create_star_zone("switch-" + each.name);
        if (each.under >= 0) all->set_parent(zones[static_cast<std::size_t>(each.under)].all);
        s4u::NetZone* leaf = s4u::create_star_zone("hosts-" + each.name);
        leaf->set_parent(all);
        zones.push_back({all, leaf, leaf->create_router("router-" + each.name)});
        leaf->add_route(zones.back().router, nullptr, nullptr, nullptr, none, true);
    }
    Hosts hosts;
    for (std::size_t i = 0; i < specs.size(); ++i) {
        s4u::NetZone& leaf = *zones[static_cast<std::size_t>(tree.switch_of_host[i])].hosts;
        hosts.push_back(create_host(leaf, specs[i]));
        leaf.add_route(hosts.back()->get_netpoint(), nullptr, nullptr, nullptr,
                       {create_link(leaf, "host-" + specs[i].name, {specs[i].bandwidth, specs[i].latency})}, true);
    }
    // From the leaves up: a switch stands behind the one above it.
    for (std::size_t i = zones.size(); i-- > 0;) {
        zones[i].hosts->seal();
        zones[i].all->add_route(zones[i].hosts->get_netpoint(), nullptr, zones[i].router, nullptr, none, true);
        zones[i].all->seal();
        if (tree.switches[i].under < 0) continue;
        s4u::NetZone& above = *zones[static_cast<std::size_t>(tree.switches[i].under)].all;
        above.add_route(zones[i].all->get_netpoint(), nullptr, zones[i].router, nullptr,
                        {create_link(above, "switch-" + tree.switches[i].name, tree.switches[i].link)}, true);
    }
    return hosts;
}

Hosts build_torus(const TorusShape& torus, const std::vector<StarHost>& specs) {
    Hosts hosts;
    s4u::create_torus_zone("torus", nullptr, torus.dimensions, leaves(specs, hosts), torus.link.bandwidth,
                           torus.link.latency, s4u::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
    return hosts;
}

}  // namespace

Hosts build(const JsonPlatform& plan, const StarLinks& links) {
    if (std::holds_alternative<StarShape>(plan.shape)) return build_star(plan.hosts, links);
    if (const auto* full = std::get_if<FullShape>(&plan.shape)) return build_full(*full, plan.hosts);
    if (const auto* tree = std::get_if<FatTreeShape>(&plan.shape)) return build_fat_tree(*tree, plan.hosts);
    if (const auto* tree = std::get_if<TreeShape>(&plan.shape)) return build_tree(*tree, plan.hosts);
    return build_torus(std::get<TorusShape>(plan.shape), plan.hosts);
}

}  // namespace rubato::sim
