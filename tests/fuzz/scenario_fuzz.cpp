// Scenario files: whatever stands in one, it is read or refused in one line; and what was read can be written and read
// again. An input may go on behind a byte 1e (record separator) with values of --set, with 1e between.
#include "cli/estimate.hpp"
#include "cli/expression.hpp"
#include "cli/guarantees.hpp"
#include "cli/load.hpp"
#include "fuzz/check.hpp"
#include "learn/error.hpp"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

using namespace rubato;

namespace {

namespace fs = std::filesystem;

/// A folder of the process's own, so that a path in an input finds little.
class Home {
public:
    Home() : folder_(fs::temp_directory_path() / ("rubato-fuzz-" + std::to_string(getpid()))) {
        fs::create_directories(folder_);
    }
    ~Home() {
        std::error_code error;
        fs::remove_all(folder_, error);
    }
    Home(const Home&) = delete;
    Home& operator=(const Home&) = delete;
    std::string write(const char* name, std::string_view text) const {
        const fs::path file = folder_ / name;
        std::ofstream(file, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
        return file.string();
    }

private:
    fs::path folder_;
};

void read(const std::string& path, const std::vector<std::string>& sets, const Home& home) {
    try {
        cli::Loaded loaded = cli::read_scenario(path, sets);
        const cli::Loaded again = cli::read_scenario(home.write("again.json", loaded.resolved_json));
        fuzz::demand(again.resolved_json == loaded.resolved_json, "a resolved scenario reads as itself");
        fuzz::demand(cli::hash8(again) == cli::hash8(loaded), "and has the same hash");
        fuzz::demand(!cli::guarantees(loaded.scenario).empty(), "every scenario has guarantees");
        cli::complete_sizes(loaded);
        const cli::Estimate plan = cli::estimate(loaded);
        fuzz::demand(plan.last_slice >= 1 && plan.last_slice <= loaded.samples, "the last slice holds samples");
        for (const auto& note : loaded.notes) fuzz::demand_one_line(note);
    } catch (const cli::InputError& error) {
        fuzz::demand_one_line(error.what());
    } catch (const cli::ExpressionError& error) {
        fuzz::demand_one_line(error.what());
    } catch (const learn::InputError& error) {
        fuzz::demand_one_line(error.what());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Home home;
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    std::vector<std::string> parts;
    for (bool more = true; more;) {
        const auto end = rest.find('\x1e');
        more = end != rest.npos;
        parts.emplace_back(rest.substr(0, end));
        if (more) rest.remove_prefix(end + 1);
    }
    const std::string path = home.write("scenario.json", parts.front());
    parts.erase(parts.begin());
    read(path, parts, home);
    return 0;
}
