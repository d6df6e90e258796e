#include "sim/platform/platform_place.hpp"

#include "sim/network.hpp"

#include <fstream>
#include <sstream>

namespace rubato::sim {

namespace {

constexpr std::size_t file_max = 64u << 20;
constexpr std::size_t message_max = 300;

void check_most(double found, double most, const char* what, const Place& place) {
    if (found <= most) return;
    std::ostringstream text;
    text.precision(12);
    text << "makes " << found << " " << what << "; expected at most " << most;
    place.fail(text.str());
}

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

void check_hosts(double hosts, const Place& place) {
    check_most(hosts, place.limits.hosts, "hosts", place);
}

void check_links(double links, const Place& place) {
    check_most(links, place.limits.links, "links", place);
}

JsonPlatform read_platform_json(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw PlatformError(path + ": cannot open the platform file");
    std::string text;
    for (char part[65536]; text.size() <= file_max && (in.read(part, sizeof part), in.gcount() > 0);)
        text.append(part, static_cast<std::size_t>(in.gcount()));
    if (in.bad()) throw PlatformError(path + ": cannot be read");
    if (text.size() > file_max) throw PlatformError(path + ": is larger than 64 MiB");
    return parse_platform_json(text, path);
}

}  // namespace rubato::sim
