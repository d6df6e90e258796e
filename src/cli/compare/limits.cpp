#include "cli/compare/limits.hpp"

#include "cli/error.hpp"
#include "cli/suggest.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace rubato::cli {
namespace {

std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& kind : figure_kinds()) out.emplace_back(kind.name);
    out.emplace_back(ks_name);
    return out;
}

}  // namespace

std::vector<Limit> parse_limits(const std::vector<std::string>& words) {
    std::vector<Limit> limits;
    for (const auto& word : words) {
        const auto equals = word.find('=');
        if (equals == word.npos)
            throw InputError("compare: --max " + word + ": expected FIGURE=LIMIT, such as throughput=0.1");
        Limit limit{word.substr(0, equals), 0};
        const auto known = names();
        if (std::find(known.begin(), known.end(), limit.name) == known.end()) {
            const std::string near = nearest(limit.name, known);
            throw InputError("compare: --max " + word + ": there is no figure " + limit.name +
                             (near.empty() ? "; there is " + one_of(known) : "; did you mean " + near + "?"));
        }
        const char* const end = word.data() + word.size();
        const auto [read, error] = std::from_chars(word.data() + equals + 1, end, limit.at_most);
        if (error != std::errc() || read != end || !(limit.at_most >= 0) || std::isinf(limit.at_most))
            throw InputError("compare: --max " + word + ": expected a limit of at least 0, such as 0.1 for 10 %");
        for (const auto& other : limits)
            if (other.name == limit.name) throw InputError("compare: --max " + limit.name + " is given twice");
        limits.push_back(limit);
    }
    return limits;
}

std::vector<Judged> judge(const std::vector<Limit>& limits, const std::vector<ComparedFigure>& figures, double ks) {
    std::vector<Judged> out;
    for (const auto& limit : limits) {
        Judged judged{limit, ks, false};
        if (limit.name != ks_name) {
            const auto figure = std::find_if(figures.begin(), figures.end(),
                                             [&](const ComparedFigure& it) { return it.kind->name == limit.name; });
            if (figure == figures.end() || !figure->predicted || !figure->measured)
                throw InputError("compare: --max " + limit.name + ": " +
                                 (figure == figures.end() ? "the runs have" : "one of the sides has") +
                                 " no such figure; expected one that the comparison shows for both sides");
            judged.found = figure->error ? std::fabs(*figure->error) : std::numeric_limits<double>::infinity();
        }
        judged.kept = judged.found <= limit.at_most;
        out.push_back(judged);
    }
    return out;
}

}  // namespace rubato::cli
