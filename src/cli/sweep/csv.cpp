#include "cli/sweep/csv.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

void put_text(std::string& out, const std::string& text) {
    std::string quoted = to_json(Node::of(text));
    quoted.pop_back();
    out += quoted;
}

void put_json(std::string& out, const Node& node) {
    char number[40];
    bool first = true;
    const auto separate = [&] {
        if (!first) out += ',';
        first = false;
    };
    switch (node.kind) {
        case Kind::null: out += "null"; break;
        case Kind::boolean: out += node.boolean ? "true" : "false"; break;
        case Kind::integer: out.append(number, std::to_chars(number, number + sizeof number, node.integer).ptr); break;
        case Kind::number: out.append(number, std::to_chars(number, number + sizeof number, node.number).ptr); break;
        case Kind::string: put_text(out, node.text); break;
        case Kind::array:
            out += '[';
            for (const Node& item : node.items) {
                separate();
                put_json(out, item);
            }
            out += ']';
            break;
        case Kind::object:
            out += '{';
            for (const auto& member : node.members) {
                if (member.key == "comment") continue;
                separate();
                put_text(out, member.key);
                out += ':';
                put_json(out, member.value);
            }
            out += '}';
            break;
    }
}

}  // namespace

std::string csv_cell(std::string_view text) {
    if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
    std::string quoted = "\"";
    for (const char c : text) {
        // One line a row, whatever a label holds: readers that look for a broken last line count on it.
        quoted += c == '\n' || c == '\r' ? ' ' : c;
        if (c == '"') quoted += '"';
    }
    return quoted + "\"";
}

std::string cell_text(const Node* value) {
    if (!value) return {};
    if (value->is(Kind::string)) return value->text;
    std::string text;
    put_json(text, *value);
    return text;
}

std::string csv_cell(const Node* value) {
    return csv_cell(cell_text(value));
}

double cell_number(const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && !text.empty() ? value : std::numeric_limits<double>::quiet_NaN();
}

bool split_csv(std::string_view line, std::vector<std::string>& cells) {
    std::size_t count = 0;
    std::size_t at = 0;
    const auto next = [&]() -> std::string& {
        if (cells.size() == count) cells.emplace_back();
        cells[count].clear();
        return cells[count++];
    };
    for (;;) {
        std::string& cell = next();
        if (at < line.size() && line[at] == '"') {
            for (++at;; ++at) {
                if (at >= line.size()) return false;
                if (line[at] == '"' && (at + 1 >= line.size() || line[at + 1] != '"')) break;
                if (line[at] == '"') ++at;
                cell += line[at];
            }
            ++at;
        }
        const std::size_t end = std::min(line.find(',', at), line.size());
        cell.append(line.substr(at, end - at));
        if (end == line.size()) break;
        at = end + 1;
    }
    cells.resize(count);
    return true;
}

}  // namespace rubato::cli
