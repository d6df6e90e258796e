// SCALE-Sim's topology.
#include "cli/layer_table_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rubato::cli {
namespace {

constexpr std::string_view scale_header =
    "\"Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides\"";
constexpr std::string_view scale_columns[] = {"input height", "input width", "filter height", "filter width",
                                              "channels",     "filters",     "stride",        "second stride"};
constexpr double scale_max = 1e6;

/// 8, or 9 with a stride for each direction.
std::size_t scale_width(const TextTable& input) {
    const TextLine& line = input.lines[0];
    const auto cells = cells_of(line.text);
    const bool header = std::none_of(cells.begin(), cells.end(), [](auto cell) { return number_of(cell).has_value(); });
    if (!header)
        input.refuse(line.number, fmt::format("expected the header {}, found a line with numbers", scale_header));
    if (cells.size() == 4)
        input.refuse(line.number, fmt::format("expected the header {}, found 4 columns: topologies of matrix products "
                                              "(M, N, K) are not read",
                                              scale_header));
    if (cells.size() != 8 && cells.size() != 9)
        input.refuse(line.number, fmt::format("expected the header {} (or with two strides), found {} column{}",
                                              scale_header, cells.size(), cells.size() == 1 ? "" : "s"));
    return cells.size();
}

void add_scale_layer(const TextTable& input, const TextLine& line, std::size_t width, LayerTable& table) {
    const auto cells = cells_of(line.text);
    if (cells.size() != width)
        input.refuse(line.number, fmt::format("expected {} fields, as the header has, found {}", width, cells.size()));
    if (cells[0].empty()) input.refuse(line.number, "field 1 (layer name): expected some text, found nothing");
    double size[8] = {};
    for (std::size_t i = 0; i + 1 < width; ++i) {
        const auto value = number_of(cells[i + 1]);
        if (!value || !is_whole(*value) || *value < 1 || *value > scale_max)
            input.refuse(line.number,
                         fmt::format("field {} ({}): expected an integer from 1 to 1000000, found {}", i + 2,
                                     scale_columns[i], cells[i + 1].empty() ? "nothing" : shown(cells[i + 1])));
        size[i] = *value;
    }
    if (table.layers.size() == table_layers_max) input.refuse(line.number, "expected at most 2000 layers, found more");
    const double stride[] = {size[6], width == 9 ? size[7] : size[6]};
    double places = 1;
    for (const std::size_t side : {0u, 1u}) {
        if (size[2 + side] > size[side])
            input.refuse(line.number,
                         fmt::format("field {} ({}): expected at most the {} of {}, found {}", 4 + side,
                                     scale_columns[2 + side], scale_columns[side], size[side], size[2 + side]));
        places *= std::ceil((size[side] - size[2 + side] + stride[side]) / stride[side]);
    }
    const double weights = size[2] * size[3] * size[4] * size[5];
    if (weights > table_bytes_max / 4)
        input.refuse(line.number, fmt::format("expected at most 2.5e14 parameters, found {:g}", weights));
    table.layers.push_back({std::string(cells[0]), static_cast<std::int64_t>(weights), 0, 0});
    table.forward_flops.push_back(2 * weights * places);
}

}  // namespace

LayerTable parse_scale(const TextTable& input) {
    LayerTable table;
    table.format = LayerTable::Format::scale_sim;
    table.source = "a topology of SCALE-Sim";
    const std::size_t width = scale_width(input);
    for (std::size_t i = 1; i < input.lines.size(); ++i) add_scale_layer(input, input.lines[i], width, table);
    if (table.layers.empty())
        input.refuse(input.lines[0].number, "expected lines of layers below the header, found none");
    return table;
}

}  // namespace rubato::cli
