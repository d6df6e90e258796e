// All points of a sweep, resolved and checked before any of them runs.
#pragma once

#include "cli/sweep/point.hpp"

#include <map>
#include <string>
#include <vector>

namespace rubato::cli {

/// One combination of tuned values of a setting, or the setting itself where nothing is tuned.
struct PlannedChoice {
    std::int32_t choice = -1;
    bool forks = false;          ///< see Setting
    bool apart = false;          ///< see Setting
    std::uint64_t content = 0;   ///< see Setting
    std::uint64_t platform = 0;  ///< see Setting
};

struct PlannedSetting {
    std::uint32_t setting = 0;
    std::uint32_t first = 0, count = 0;  ///< among Plan::choices; one at least
};

struct Plan {
    const SweepFile* sweep = nullptr;
    std::vector<PlannedSetting> settings;
    std::vector<PlannedChoice> choices;
    std::vector<std::size_t> settings_of_variant;
    std::size_t left_out = 0;            ///< settings that "where" leaves out
    std::size_t merged = 0;              ///< settings that are the same as an earlier one of their variant
    std::map<std::string, int> remarks;  ///< what users should know, and of how many settings it holds
    bool simgrid = false;                ///< some setting runs on SimGrid's network

    const std::string& label(const PlannedSetting& setting) const;
    std::size_t report_points() const { return settings.size() * sweep->seeds.size(); }
    std::size_t tune_points() const;
};

/// Resolves every setting. Throws InputError for the first that is wrong, which names file, line, variant and key.
Plan make_plan(const SweepFile& sweep, Resolver& resolver);

}  // namespace rubato::cli
