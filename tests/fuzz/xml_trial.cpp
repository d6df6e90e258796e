// SimGrid XML files with altered bytes and lines, each opened as `rubato` does, the trial in a child process included:
// it is accepted, or refused in one line that names the file.
//
//     xml_trial ROUNDS SEED FOLDER...
#include "fuzz/check.hpp"
#include "sim/network.hpp"
#include "support/random.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

using namespace rubato;
using rubato::test::Random;

namespace {

namespace fs = std::filesystem;

const std::string pieces[] = {"\"",
                              "'",
                              "<",
                              ">",
                              "/>",
                              "&amp;",
                              "&#0;",
                              "<!--",
                              "-1Gf",
                              "0Bps",
                              "1e999f",
                              "nan",
                              "inf",
                              "1Gbps",
                              "1gbps",
                              "  ",
                              "\xff",
                              "core",
                              "\"0\"",
                              "\"-3\"",
                              "radical",
                              "0-3",
                              "3-0",
                              "0-99999",
                              "id",
                              "Full",
                              "Cluster",
                              "Floyd",
                              "symmetrical",
                              "NO",
                              "<host/>",
                              "</zone>",
                              "1e-400s",
                              "prefix",
                              "torus",
                              "2;2,2;1,2;1,2",
                              "FAT_TREE",
                              "topology=\"TORUS\"",
                              "topo_parameters=\"2,0\"",
                              "loopback_bw=\"0Bps\" loopback_lat=\"0\""};

std::string altered(std::string text, Random& random) {
    // The head is altered seldom: SimGrid would see no further.
    const std::size_t platform = std::min(text.find("<zone"), text.find("<cluster"));
    const std::size_t body = platform == text.npos || random.below(10) == 0 ? 0 : platform;
    for (auto changes = 1 + random.below(3); changes > 0 && text.size() > body + 1; --changes) {
        const std::size_t at = body + random.below(text.size() - body);
        // Values of attributes are where people err.
        const std::size_t quote = text.find('"', at);
        const std::size_t close = quote == text.npos ? text.npos : text.find('"', quote + 1);
        switch (random.below(9)) {
            case 0: text[at] = static_cast<char>(random.below(256)); break;
            case 1: text.erase(at, 1 + random.below(30)); break;
            case 2: text.insert(at, pieces[random.below(std::size(pieces))]); break;
            case 3: text.insert(at, text.substr(random.below(text.size()), random.below(80))); break;
            default:
                if (close == text.npos) break;
                text.replace(quote + 1, close - quote - 1, pieces[random.below(std::size(pieces))]);
        }
    }
    return text;
}

/// In a child, as a platform that is accepted stays in its process. Exit status 0: accepted, 1: refused as it should
/// be.
int open_in_child(const std::string& path) {
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        Scenario scenario;
        scenario.cluster.platform = path;
        try {
            const auto network = sim::open_network({&scenario, 0});
            for (const auto& warning : network->warnings()) fuzz::demand_one_line(warning);
            fuzz::demand(!network->hosts().empty(), "a platform has hosts");
            _exit(0);
        } catch (const sim::PlatformError& error) {
            fuzz::demand_one_line(error.what());
            if (!std::string(error.what()).starts_with(path + ":"))
                fuzz::complain("the file is not named: ", error.what());
            _exit(1);
        }
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    std::vector<std::string> seeds;
    for (int i = 3; i < argc; ++i)
        for (const auto& entry : fs::directory_iterator(argv[i]))
            if (entry.path().extension() == ".xml") {
                std::ifstream in(entry.path(), std::ios::binary);
                seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
            }
    const fs::path folder = fs::temp_directory_path() / ("rubato-xml-" + std::to_string(getpid()));
    fs::create_directories(folder);
    const std::string path = (folder / "altered.xml").string();
    const auto outcome_of = [&](const std::string& text) {
        std::ofstream(path, std::ios::binary) << text;
        return open_in_child(path);
    };
    std::vector<std::string> good;
    for (const auto& seed : seeds)
        if (outcome_of(seed) == 0) good.push_back(seed);
    if (good.empty()) return 2;
    Random random{std::stoull(argv[2])};
    int count[2] = {0, 0};
    for (long round = 0, rounds = std::stol(argv[1]); round < rounds; ++round) {
        const auto& from = random.below(4) == 0 ? seeds : good;
        const int outcome = outcome_of(altered(from[random.below(from.size())], random));
        if (outcome != 0 && outcome != 1) {
            std::printf("round %ld: ended with %d; the file is %s\n", round, outcome, path.c_str());
            return 1;
        }
        ++count[outcome];
    }
    fs::remove_all(folder);
    std::printf("%d accepted, %d refused\n", count[0], count[1]);
    return 0;
}
