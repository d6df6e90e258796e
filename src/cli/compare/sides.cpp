#include "cli/compare/sides.hpp"

#include "cli/compare/figures.hpp"

#include <algorithm>
#include <string_view>

namespace rubato::cli {
namespace {

const char* const mark = "\n--\n";

}  // namespace

std::vector<const char*> mark_sides(int argc, const char* const* argv) {
    std::vector<const char*> words(argv, argv + argc);
    if (argc < 2 || std::string_view(argv[1]) != "compare") return words;
    const auto found =
        std::find_if(words.begin(), words.end(), [](const char* word) { return std::string_view(word) == "--"; });
    if (found != words.end()) *found = mark;
    return words;
}

CompareOptions with_sides(CompareOptions options, const std::vector<std::string>& words) {
    const auto found = std::find(words.begin(), words.end(), mark);
    options.predicted.assign(words.begin(), found);
    if (found != words.end()) options.measured.assign(found + 1, words.end());
    return options;
}

std::string compare_footer() {
    std::string figures;
    for (const auto& kind : figure_kinds()) {
        const std::string name = std::string("  ") + kind.name;
        figures += name + std::string(20 - name.size(), ' ') + kind.about + "\n";
    }
    figures +=
        std::string("  ") + ks_name + "                Kolmogorov-Smirnov distance of the staleness histograms\n";
    return "Figures of --max:\n" + figures +
           "\nExit status 1: a figure is beyond its limit. docs/compare.md tells how to read the causes.\n\n"
           "Examples:\n"
           "  rubato compare runs/sim -- runs/real --explain\n"
           "  rubato compare runs/sim-* -- runs/real-* --max throughput=0.1 --max staleness=0.05 --max ks=0.1\n"
           "  rubato compare runs/sim -- runs/real --substitute compute --substitute network\n"
           "  rubato compare runs/sim -- runs/real --timeline both.json";
}

}  // namespace rubato::cli
