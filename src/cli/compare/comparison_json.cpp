// A comparison as JSON.
#include "cli/compare/comparison.hpp"

#include <cmath>

namespace rubato::cli {
namespace {

class Object {
public:
    Object& set(const char* key, Node value) {
        node_.set(key, std::move(value), {});
        return *this;
    }
    /// null where there is no number.
    Object& set(const char* key, double value) { return set(key, number(value)); }
    Object& set(const char* key, const std::optional<double>& value) {
        return set(key, value ? number(*value) : Node{});
    }
    Object& set(const char* key, const std::string& value) { return set(key, Node::of(value)); }
    Node done() { return std::move(node_); }

    static Node number(double value) { return std::isfinite(value) ? Node::of(value) : Node{}; }

private:
    Node node_ = Node::object();
};

template <class Items, class F>
Node list(const Items& items, F&& to_node) {
    Node node;
    node.kind = Node::Kind::array;
    for (const auto& item : items) node.items.push_back(to_node(item));
    return node;
}

Node value_of(const std::optional<Statistics>& value) {
    if (!value) return {};
    return Object().set("mean", value->mean).set("std", value->std).set("n", Node::of(std::int64_t{value->n})).done();
}

Node figures(const Comparison& comparison) {
    Node out = Node::object();
    for (const auto& it : comparison.figures)
        out.set(it.kind->name,
                Object()
                    .set("unit", std::string(it.kind->unit))
                    .set("predicted", value_of(it.predicted))
                    .set("measured", value_of(it.measured))
                    .set("error", it.error)
                    .done(),
                {});
    return out;
}

Node gap_line(const GapLine& line) {
    const char* const who[] = {"some", "others", "all"};
    return Object()
        .set("cause", std::string(cause_names[static_cast<std::size_t>(line.cause)]))
        .set("who", std::string(who[static_cast<int>(line.who)]))
        .set("workers", list(line.workers, [](WorkerId w) { return Node::of(std::int64_t{w}); }))
        .set("label", line_text(line))
        .set("predicted", line.predicted)
        .set("measured", line.measured)
        .set("difference", line.difference())
        .set("own", line.own)
        .set("total", line.total)
        .set("noise", line.noise)
        .set("share", line.share)
        .done();
}

Node explanation(const Explanation& it) {
    return Object()
        .set("unit", std::string("s"))
        .set("predicted", it.predicted)
        .set("measured", it.measured)
        .set("gap", it.gap())
        .set("steady", Node::of(it.steady))
        .set("followed", Node::of(it.followed))
        .set("causes", list(it.lines, gap_line))
        .set("by_worker", list(it.by_worker, gap_line))
        .set("by_cause", list(it.by_cause, gap_line))
        .set("reading", it.reading)
        .done();
}

Node side(const std::vector<std::string>& runs, const std::string& backend, const std::vector<double>& staleness) {
    return Object()
        .set("runs", list(runs, [](const std::string& run) { return Node::of(run); }))
        .set("backend", backend)
        .set("staleness", list(staleness, Object::number))
        .done();
}

Node substitution(const Substitution& it) {
    return Object()
        .set("part", it.part)
        .set("seconds", it.seconds)
        .set("samples_per_s", it.samples_per_s)
        .set("staleness", it.staleness)
        .set("closed", it.closed)
        .set("notes", list(it.notes, [](const std::string& note) { return Node::of(note); }))
        .done();
}

Node judged(const Judged& it) {
    return Object()
        .set("figure", it.limit.name)
        .set("at_most", it.limit.at_most)
        .set("found", it.found)
        .set("kept", Node::of(it.kept))
        .done();
}

}  // namespace

std::string comparison_json(const Comparison& it) {
    Object out;
    out.set("scenario", it.scenario)
        .set("predicted", side(it.predicted, it.predicted_backend, it.predicted_staleness))
        .set("measured", side(it.measured, it.measured_backend, it.measured_staleness))
        .set("figures", figures(it))
        .set("ks", it.ks)
        .set("limits", list(it.limits, judged))
        .set("within_limits", it.limits.empty() ? Node{} : Node::of(it.within_limits()));
    out.set("explanation", it.explanation ? explanation(*it.explanation) : Node{});
    out.set("substitutions", list(it.substitutions, substitution));
    return to_json(out.done());
}

}  // namespace rubato::cli
