// Events, actions and rows as one line of text each, through the `each` lists of the core.
//
//     delivered from=3 channel=gradient message{push read_version=4 ... batch{epoch=0 first=32 count=32}} sent_ns=17
//     ...
//
// A line begins with the kind. Whole numbers are in full, doubles in the shortest form that reads back exactly,
// channels and outcomes by name, an empty optional figure is "-", a nested value stands in braces.
#pragma once

#include "core/action.hpp"

#include <string>
#include <string_view>

namespace rubato::trace {

/// One line for an event, e.g. "taken id=3 started_ns=12"; doubles round-trip exactly.
std::string to_text(const Event& event);
std::string to_text(const Action& action);
/// Inverse of to_text. Throws std::invalid_argument with what was expected.
Event event_from_text(const std::string& text);

/// The same for the parts of Actions that are not of the list; the kind is "step", "part", "gradient-row", ...
std::string to_text(const Step& step);
std::string to_text(const Part& part);
std::string to_text(const GradientRow& row);
std::string to_text(const UpdateRow& row);
std::string to_text(const EvalRow& row);
std::string to_text(const WorkerRow& row);
std::string to_text(const ControllerRow& row);
std::string to_text(const ShardRow& row);
std::string to_text(const RoundRow& row);
std::string to_text(const ExchangeRow& row);
std::string to_text(const IterationRow& row);
std::string to_text(const BucketRow& row);

/// The kind of an event, e.g. "gradient-ready".
std::string_view event_kind(const Event& event);

/// Calls line('A', text) for each action, step and part, then line('R', text) for each row: the lines that follow an
/// event in events.log, in their order.
template <class Line>
void each_line(const Actions& actions, Line&& line) {
    for (const auto& action : actions.list) line('A', to_text(action));
    for (const auto& step : actions.steps) line('A', to_text(step));
    for (const auto& part : actions.parts) line('A', to_text(part));
    for (const auto& row : actions.gradients) line('R', to_text(row));
    for (const auto& row : actions.updates) line('R', to_text(row));
    for (const auto& row : actions.evals) line('R', to_text(row));
    for (const auto& row : actions.workers) line('R', to_text(row));
    for (const auto& row : actions.controller) line('R', to_text(row));
    for (const auto& row : actions.shards) line('R', to_text(row));
    for (const auto& row : actions.rounds) line('R', to_text(row));
    for (const auto& row : actions.exchanges) line('R', to_text(row));
    for (const auto& row : actions.iterations) line('R', to_text(row));
    for (const auto& row : actions.buckets) line('R', to_text(row));
}

}  // namespace rubato::trace
