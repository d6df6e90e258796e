// Names of the enumerations that events, actions and rows carry, in the order of their values.
#pragma once

#include "core/action.hpp"
#include "core/scenario.hpp"

#include <array>
#include <string_view>

namespace rubato::trace {

template <class Enum>
inline constexpr int enum_names = 0;

template <>
inline constexpr std::array<std::string_view, 3> enum_names<Channel>{"control", "gradient", "weights"};

template <>
inline constexpr std::array enum_names<Outcome>{name(Outcome::applied), name(Outcome::dropped),
                                                name(Outcome::cancelled), name(Outcome::leftover)};

template <>
inline constexpr std::array enum_names<Status>{
    name(Status::finished),  name(Status::diverged),    name(Status::deadlock), name(Status::stalled),
    name(Status::peer_lost), name(Status::interrupted), name(Status::disk_full)};

template <>
inline constexpr std::array<std::string_view, 3> enum_names<DsspSpec::Mode>{"literal_next", "literal_full", "strict"};

template <>
inline constexpr std::array<std::string_view, 3> enum_names<DsspSpec::Slowest>{"count", "oldest", "interval"};

template <>
inline constexpr std::array<std::string_view, 3> enum_names<Admit>{"pace", "discard", "withhold"};

template <>
inline constexpr std::array<std::string_view, 5> enum_names<Mix::Work>{"move", "sum", "update", "copy", "adopt"};

}  // namespace rubato::trace
