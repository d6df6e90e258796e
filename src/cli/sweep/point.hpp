// From the numbers of a point to its resolved scenario.
#pragma once

#include "cli/load.hpp"
#include "cli/sweep/sweep_file.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace rubato::cli {

enum class Phase : std::uint8_t { report, tune };
std::string_view name(Phase phase);

/// Which scenario a point is, but for its seed. `setting` counts the variants and the combinations of axes, seeds and
/// tuned values apart; `choice` the combinations of the tuned values, -1 where nothing is tuned.
struct SettingId {
    std::uint32_t setting = 0;
    std::int32_t choice = -1;
    bool operator==(const SettingId&) const = default;
};

/// A setting, resolved and checked.
struct Setting {
    Loaded loaded;               ///< with the sweep's first seed
    std::uint64_t content = 0;   ///< hash of the resolved scenario without seed, name and comments
    std::uint64_t platform = 0;  ///< equal where the modelled machine is the same
    bool forks = false;          ///< each run needs a process of its own (SimGrid)
    bool apart = false;          ///< its platform needs a process that has opened no other (SimGrid's XML files)
    std::string label;
    std::vector<std::string> cells;  ///< values of the swept keys, as CSV cells; empty: the scenario has no such key
};

/// Resolves settings out of the layers that were read once. The last one is kept: points that differ only in their seed
/// come one after another.
class Resolver {
public:
    /// The sweep must outlive it.
    explicit Resolver(const SweepFile& sweep) : sweep_(sweep) {}

    /// Throws InputError, which names file, line, key, variant and axes.
    const Setting& at(SettingId id);
    /// "variant "hardsync", workers.batch_size = 4"; with the resolved scenario only keys that it has.
    std::string describe(SettingId id, const Node* resolved = nullptr) const;

    std::uint32_t settings() const;  ///< variants times combinations
    std::int32_t choices() const;    ///< combinations of tuned values; 1 where nothing is tuned
    std::size_t variant_of(std::uint32_t setting) const { return setting / combinations(); }
    /// Index into the values of each tuned axis.
    std::vector<std::size_t> tuned_values(std::int32_t choice) const;

private:
    std::uint32_t combinations() const;
    std::vector<std::pair<const Axis*, std::size_t>> values_of(SettingId id) const;
    Setting resolve(SettingId id) const;

    const SweepFile& sweep_;
    SettingId last_id_{~0u, -2};
    Setting last_;
};

/// The cells of a setting for which no tuned value could be chosen: those of the tuned keys are empty.
std::vector<std::string> cells_without_choice(const SweepFile& sweep, std::vector<std::string> cells);

/// Identity of a point: 64 bits of its resolved scenario (content and seed), the program's version, label and phase.
std::uint64_t identity_of(std::uint64_t content, const std::string& label, Phase phase, std::int64_t seed);
/// Sixteen hexadecimal digits.
std::string identity_text(std::uint64_t identity);

/// The scenario with another seed, as "seed" of its file would give it.
Scenario with_seed(const Loaded& loaded, std::int64_t seed);

}  // namespace rubato::cli
