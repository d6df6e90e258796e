#include "trace/event_text.hpp"

#include "trace/text_reader.hpp"
#include "trace/text_writer.hpp"

namespace rubato::trace {
namespace {

template <class Value>
std::string labelled(std::string_view label, const Value& value) {
    TextWriter writer;
    writer.kind(label);
    Value::each(value, writer);
    return writer.take();
}

template <class Variant>
std::string alternative(const Variant& value) {
    TextWriter writer;
    writer.alternative(value);
    return writer.take();
}

}  // namespace

std::string to_text(const Event& event) {
    return alternative(event);
}
std::string to_text(const Action& action) {
    return alternative(action);
}
std::string to_text(const Step& step) {
    return labelled("step", step);
}
std::string to_text(const Part& part) {
    return labelled("part", part);
}
std::string to_text(const GradientRow& row) {
    return labelled("gradient-row", row);
}
std::string to_text(const UpdateRow& row) {
    return labelled("update-row", row);
}
std::string to_text(const EvalRow& row) {
    return labelled("eval-row", row);
}
std::string to_text(const WorkerRow& row) {
    return labelled("worker-row", row);
}
std::string to_text(const ControllerRow& row) {
    return labelled("controller-row", row);
}
std::string to_text(const ShardRow& row) {
    return labelled("shard-row", row);
}
std::string to_text(const RoundRow& row) {
    return labelled("round-row", row);
}
std::string to_text(const ExchangeRow& row) {
    return labelled("exchange-row", row);
}
std::string to_text(const IterationRow& row) {
    return labelled("iteration-row", row);
}
std::string to_text(const BucketRow& row) {
    return labelled("bucket-row", row);
}

std::string_view event_kind(const Event& event) {
    return std::visit([](const auto& alternative) { return std::remove_cvref_t<decltype(alternative)>::kind; }, event);
}

Event event_from_text(const std::string& text) {
    TextReader reader(text);
    Event event = reader.alternative<Event>();
    reader.end();
    return event;
}

}  // namespace rubato::trace
