#include "sim/platform_fields.hpp"

#include "sim/network.hpp"
#include "sim/suggest.hpp"

#include <algorithm>
#include <limits>
#include <sstream>

namespace rubato::sim {

using nlohmann::json;

namespace {

constexpr std::size_t message_max = 300;

}  // namespace

void Place::fail(const std::string& message) const {
    std::string text = (path.empty() ? "" : path + ": ") + message;
    if (text.size() > message_max) text = text.substr(0, message_max) + "...";
    text.insert(0, file + ": ");
    // Keys and names of the file must not break the one line.
    for (char& c : text)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    throw PlatformError(text);
}

std::string found_text(const json& value) {
    std::string text = value.dump();
    constexpr std::size_t most = 60;
    if (text.size() > most) text = text.substr(0, most) + "...";
    return text;
}

void check_keys(const json& object, const Place& place, const Keys& allowed) {
    if (!object.is_object()) place.fail("is " + found_text(object) + "; expected an object");
    for (const auto& [key, value] : object.items()) {
        if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
        const std::string near = nearest(key, allowed);
        (place / key)
            .fail("unknown key; " +
                  (near.empty() ? "expected one of " + one_of(allowed, "and") : "did you mean \"" + near + "\"?"));
    }
}

double quantity(const json& object, const char* key, const Place& place, Quantity kind, double otherwise) {
    const auto found = object.find(key);
    if (found == object.end()) return otherwise;
    try {
        if (found->is_string()) return parse_physical(found->get<std::string>(), kind);
        if (found->is_number()) {
            const double value = found->get<double>();
            if (value > 0 || (value == 0 && kind == Quantity::duration)) return value;
            (place / key)
                .fail("is " + found->dump() +
                      (kind == Quantity::duration ? "; expected zero or more" : "; expected a value above zero"));
        }
    } catch (const UnitError& error) {
        (place / key).fail(error.what());
    }
    (place / key).fail("expected a string with a unit, or a number");
}

int whole(const json& value, const Place& place) {
    constexpr int most = std::numeric_limits<int>::max();
    if (value.is_number_integer() && value > most)
        place.fail("is " + found_text(value) + "; expected at most " + std::to_string(most));
    if (!value.is_number_integer() || value < 1)
        place.fail("is " + found_text(value) + "; expected a whole number of at least 1");
    return value.get<int>();
}

int count(const json& object, const char* key, const Place& place, int otherwise) {
    const auto found = object.find(key);
    return found == object.end() ? otherwise : whole(*found, place / key);
}

namespace {

void check_most(double found, double most, const char* what, const Place& place) {
    if (found <= most) return;
    std::ostringstream text;
    text.precision(12);
    text << "makes " << found << " " << what << "; expected at most " << most;
    place.fail(text.str());
}

}  // namespace

void check_hosts(double hosts, const Place& place) {
    check_most(hosts, place.limits.hosts, "hosts", place);
}

void check_links(double links, const Place& place) {
    check_most(links, place.limits.links, "links", place);
}

std::string read_name(const json& object, const Place& place, const std::string& otherwise) {
    const auto name = object.find("name");
    if (name == object.end()) return otherwise;
    if (!name->is_string() || name->get<std::string>().empty())
        (place / "name").fail("is " + found_text(*name) + "; expected a name");
    return name->get<std::string>();
}

LinkFigures read_link(const json& object, const Place& place, const LinkFigures& otherwise) {
    return {quantity(object, "bandwidth", place, Quantity::bandwidth, otherwise.bandwidth),
            quantity(object, "latency", place, Quantity::duration, otherwise.latency)};
}

}  // namespace rubato::sim
