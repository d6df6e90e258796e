// What a protocol does and what it promises, in words, for `rubato check`.
#pragma once

#include "core/policy.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// The traits of the scenario's policy.
PolicyTraits traits_of(const Scenario& scenario);

/// What comes before the protocol where there is a warm start.
std::string warm_start_text(const Scenario& scenario);

/// One line: when it updates.
std::string protocol_text(const Scenario& scenario);

/// Sentences on staleness and on who waits for whom.
std::vector<std::string> staleness_sentences(const Scenario& scenario);

/// What workers do between exchanges; empty where each gradient is pushed and followed by a pull.
std::string pipeline_text(const Scenario& scenario);
std::string communication_text(const Scenario& scenario);

}  // namespace rubato::cli
