// Platform files in JSON: stars, trees, fat trees, tori and full graphs with units, for those who do not need SimGrid's
// XML.
#pragma once

#include "sim/platform/star_platform.hpp"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rubato::sim {

/// A full-duplex link: each direction has the bandwidth for itself.
struct LinkFigures {
    double bandwidth = 1.25e9;  ///< bytes/s of each direction
    double latency = 1e-5;      ///< s
    bool operator==(const LinkFigures&) const = default;
};

/// Each host has the private link that stands with it.
struct StarShape {
    bool operator==(const StarShape&) const = default;
};

/// Each pair of hosts has a link of its own.
struct FullShape {
    struct Pair {
        int a = 0, b = 0;  ///< numbers of hosts, a < b
        LinkFigures link;
        bool operator==(const Pair&) const = default;
    };
    LinkFigures link;         ///< of all pairs but these
    std::vector<Pair> pairs;  ///< each pair once
    bool operator==(const FullShape&) const = default;
};

/// A parallel generalized fat tree (Zahavi 2010), level by level from the hosts up, as SimGrid's FAT_TREE.
struct FatTreeShape {
    LinkFigures link;
    std::vector<unsigned> down;      ///< nodes below each switch of the level; their product is the number of hosts
    std::vector<unsigned> up;        ///< switches of the level above each node below
    std::vector<unsigned> parallel;  ///< links between the two
    bool operator==(const FatTreeShape&) const = default;
};

/// A grid that is closed in each dimension; the first varies fastest from host to host.
struct TorusShape {
    LinkFigures link;
    std::vector<unsigned long> dimensions;  ///< their product is the number of hosts
    bool operator==(const TorusShape&) const = default;
};

/// Switches in a tree, and hosts below any of them, each with a link of its own to the switch above.
struct TreeShape {
    struct Switch {
        std::string name;
        int under = -1;    ///< number of the switch above, a smaller one than its own; -1: the root
        LinkFigures link;  ///< to that one
        bool operator==(const Switch&) const = default;
    };
    std::vector<Switch> switches;     ///< the root first
    std::vector<int> switch_of_host;  ///< whose link's figures stand with the host, as of a star
    bool operator==(const TreeShape&) const = default;
};

struct JsonPlatform {
    std::vector<StarHost> hosts;  ///< bandwidth and latency count for stars and trees alone
    std::variant<StarShape, FullShape, FatTreeShape, TorusShape, TreeShape> shape;
};

/// Reads a platform (docs: platforms/README.md). Throws PlatformError, one line with file and path.
JsonPlatform read_platform_json(const std::string& path);

/// What SimGrid can still build in some seconds and a few GB (about 3 kB a host, 2 kB a link).
struct PlatformLimits {
    double hosts = 1'000'001;  ///< a million workers and the server
    double links = 500'000;
};

/// The same from the text of a file; `name` stands for the file in messages.
JsonPlatform parse_platform_json(std::string_view text, const std::string& name, const PlatformLimits& limits = {});

}  // namespace rubato::sim
