#include "sim/platform/suggest.hpp"

#include <algorithm>
#include <cctype>

namespace rubato::sim {
namespace {

double difference(char a, char b) {
    if (a == b) return 0;
    if (std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b))) return 0.5;
    const auto dash = [](char c) { return c == '-' || c == '_' || c == ' '; };
    return dash(a) && dash(b) ? 0.5 : 1;
}

}  // namespace

double edit_distance(std::string_view a, std::string_view b) {
    // Names are short; a text pasted in the place of a name must not cost its square.
    if (std::max(a.size(), b.size()) > 64) return a == b ? 0 : 64;
    std::vector<std::vector<double>> d(a.size() + 1, std::vector<double>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = static_cast<double>(i);
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = static_cast<double>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + difference(a[i - 1], b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[a.size()][b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
    std::string best;
    double best_distance = std::max(1.0, static_cast<double>(word.size()) / 3);
    for (const auto& candidate : candidates) {
        const double distance = edit_distance(word, candidate);
        // One letter for another is no near miss: everything would be near to a name of one letter.
        if (distance >= static_cast<double>(std::max(word.size(), candidate.size()))) continue;
        if (distance < best_distance || (distance == best_distance && best.empty())) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

std::string one_of(const std::vector<std::string>& words, std::string_view last) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0) text += i + 1 == words.size() ? " " + std::string(last) + " " : ", ";
        text += words[i];
    }
    return text;
}

}  // namespace rubato::sim
