#include "cli/hostfile.hpp"

#include "cli/backends.hpp"
#include "cli/error.hpp"
#include "cli/json_reader.hpp"
#include "cli/sweep/ranks.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <sstream>

namespace rubato::cli {
namespace {

[[noreturn]] void refuse(const std::string& path, int line, const std::string& what) {
    throw InputError(path + ":" + std::to_string(line) + ": " + what);
}

int slots_in(const std::string& text, const std::string& path, int line) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > 1'000'000)
        refuse(path, line, "expected a number of slots of at least 1, found \"" + text + "\"");
    return value;
}

/// Launchers have a meaning of their own for a + that begins a name.
bool names_host(const std::string& name) {
    const auto printable = [](char c) { return c > ' ' && c <= '~'; };
    return !name.empty() && name.front() != '+' && name.find_first_of("=,") == name.npos &&
           std::ranges::all_of(name, printable);
}

/// What can be shown of a name.
std::string shown(std::string name) {
    for (char& c : name)
        if (c < ' ' || c > '~') c = '?';
    return name;
}

/// Slots of the words behind a host's name.
int named_slots(std::istringstream& words, const std::string& path, int line) {
    int slots = 1;
    for (std::string word; words >> word;) {
        const auto equals = word.find('=');
        const std::string key = word.substr(0, equals);
        if (equals == word.npos || (key != "slots" && key != "max_slots" && key != "max-slots"))
            refuse(path, line, "expected NAME, NAME slots=N or NAME:N, found \"" + word + "\" behind the name");
        const int value = slots_in(word.substr(equals + 1), path, line);
        if (key == "slots") slots = value;
    }
    return slots;
}

}  // namespace

std::vector<HostSlots> read_hostfile(const std::string& path) {
    const std::string all = read_file(path);
    require_plain_text(all, {std::make_shared<const std::string>(path), 1, 0}, "a file of hosts",
                       "the name of a host a line");
    std::istringstream in(all);
    std::vector<HostSlots> hosts;
    int line = 0;
    for (std::string text; std::getline(in, text);) {
        ++line;
        std::istringstream words(text.substr(0, text.find('#')));
        std::string name;
        if (!(words >> name)) continue;  // the CR of a blank line is white space, too
        int slots = 1;
        if (const auto colon = name.find(':'); colon != name.npos) {
            slots = slots_in(name.substr(colon + 1), path, line);
            name.erase(colon);
            if (std::string more; words >> more)
                refuse(path, line, "expected nothing behind NAME:N, found \"" + more + '"');
        } else {
            slots = named_slots(words, path, line);
        }
        if (!names_host(name)) refuse(path, line, "expected the name of a host, found \"" + shown(name) + "\"");
        const auto known = std::find_if(hosts.begin(), hosts.end(), [&](const auto& it) { return it.name == name; });
        if (known != hosts.end())
            known->slots += slots;
        else
            hosts.push_back({name, slots});
    }
    if (hosts.empty()) throw InputError(path + ": names no host: expected one a line, such as node-1 slots=4");
    return hosts;
}

std::vector<std::string> rank_hosts(int ranks, const std::vector<HostSlots>& hosts) {
    std::vector<std::string> names;
    while (static_cast<int>(names.size()) < ranks)
        for (const auto& host : hosts)
            for (int i = 0; i < host.slots && static_cast<int>(names.size()) < ranks; ++i) names.push_back(host.name);
    return names;
}

std::string launch_command(const Scenario& scenario, const std::string& path, const std::vector<HostSlots>& hosts) {
    const int ranks = ranks_needed(scenario);
    std::string command = "mpirun -n " + std::to_string(ranks), list;
    int slots = 0;
    for (const auto& host : hosts) {
        list += (list.empty() ? "" : ",") + host.name + ":" + std::to_string(host.slots);
        slots += host.slots;
    }
    if (hosts.empty()) slots = usable_cores();
    if (!list.empty()) command += " --host " + list;
    if (slots < ranks) command += " --oversubscribe";
    // By default a rank has one core for itself, which its two threads would share.
    if (slots < 2 * ranks) command += " --bind-to none";
    if (::geteuid() == 0) command += " --allow-run-as-root";
    return command + " rubato run " + path + " --backend mpi";
}

}  // namespace rubato::cli
