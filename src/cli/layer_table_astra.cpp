// ASTRA-sim's DNN workload.
#include "cli/layer_table_text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace rubato::cli {
namespace {

constexpr double time_ns_max = 1e15;

/// The fields of a layer in their order; the last one stands only beside parallelism HYBRID_CUSTOMIZED.
constexpr std::string_view astra_fields[] = {
    "name",
    "dependency",
    "forward time",
    "forward communication",
    "forward bytes",
    "time of the input gradient",
    "communication of the input gradient",
    "bytes of the input gradient",
    "time of the weight gradient",
    "communication of the weight gradient",
    "bytes of the weight gradient",
    "time of the update",
    "parallelism",
};

/// One layer's line.
class AstraLine {
public:
    AstraLine(const TextTable& input, const TextLine& line, bool customized) : input_(input), line_(line) {
        fields_ = words_of(line.text);
        const std::size_t most = customized ? 13 : 12, least = customized ? 13 : 11;
        if (fields_.size() >= least && fields_.size() <= most) return;
        input.refuse(line.number, fmt::format("expected the {} fields of a layer (name, dependency, then time, "
                                              "communication and bytes three times, {}), found {}",
                                              customized ? "13" : "11 or 12",
                                              customized ? "time of the update, parallelism" : "time of the update",
                                              fields_.size()));
    }

    std::string name() const { return std::string(fields_[0]); }
    double time_ns(std::size_t field) const { return number(field, time_ns_max, false); }
    double bytes(std::size_t field) const { return number(field, table_bytes_max, true); }
    /// Those that are not used, too: a field that is amiss shifts all that follow.
    void check() const {
        if (const auto value = number_of(fields_[1]); !value || !is_whole(*value) || *value < -1)
            wrong(1, "an integer of at least -1");
        for (const std::size_t field : {3u, 6u, 9u}) {
            const auto word = fields_[field];
            if (word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != word.npos || number_of(word))
                wrong(field, "a kind such as NONE or ALLREDUCE");
        }
        for (const std::size_t field : {4u, 7u, 10u}) bytes(field);
        for (const std::size_t field : {2u, 5u, 8u}) time_ns(field);
        if (fields_.size() > 11) time_ns(11);
    }

private:
    [[noreturn]] void wrong(std::size_t field, const std::string& expected) const {
        input_.refuse(line_.number, fmt::format("field {} ({}): expected {}, found {}", field + 1, astra_fields[field],
                                                expected, shown(fields_[field])));
    }
    double number(std::size_t field, double most, bool whole) const {
        const auto value = number_of(fields_[field]);
        if (!value || *value < 0 || *value > most || (whole && !is_whole(*value)))
            wrong(field, whole ? "whole bytes from 0 to 1e15" : "nanoseconds from 0 to 1e15");
        return *value;
    }

    const TextTable& input_;
    const TextLine& line_;
    std::vector<std::string_view> fields_;
};

}  // namespace

const std::vector<std::string>& astra_parallelisms() {
    static const std::vector<std::string> names{"DATA",
                                                "MODEL",
                                                "HYBRID",
                                                "HYBRID_DATA_MODEL",
                                                "HYBRID_MODEL_DATA",
                                                "HYBRID_DLRM",
                                                "HYBRID_DLRM_ENHANCED",
                                                "HYBRID_TRANSFORMER",
                                                "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
                                                "HYBRID_CUSTOMIZED",
                                                "DISTRIBUTED_INFERENCE",
                                                "MICRO"};
    return names;
}

LayerTable parse_astra(const TextTable& input) {
    LayerTable table;
    table.format = LayerTable::Format::astra_sim;
    table.source = "a workload of ASTRA-sim";
    const bool customized = words_of(input.lines[0].text)[0] == "HYBRID_CUSTOMIZED";
    if (input.lines.size() < 2) input.refuse(input.lines[0].number, "expected a line with the number of layers next");
    const TextLine& second = input.lines[1];
    const auto count = number_of(second.text);
    if (!count || !is_whole(*count) || *count < 1 || *count > table_layers_max)
        input.refuse(second.number, "expected the number of layers, 1 to 2000, found " + shown(second.text));
    for (std::size_t i = 2; i < input.lines.size(); ++i) {
        const TextLine& line = input.lines[i];
        if (static_cast<double>(i - 1) > *count)
            input.refuse(line.number,
                         fmt::format("expected {} layers, as line {} says, found one more", *count, second.number));
        const AstraLine layer(input, line, customized);
        layer.check();
        table.layers.push_back({layer.name(), static_cast<std::int64_t>(std::ceil(layer.bytes(10) / 4)),
                                layer.time_ns(2) * 1e-9, (layer.time_ns(5) + layer.time_ns(8)) * 1e-9});
    }
    if (static_cast<double>(table.layers.size()) < *count)
        input.refuse(second.number,
                     fmt::format("expected {} layers, as this line says, found {}", *count, table.layers.size()));
    return table;
}

}  // namespace rubato::cli
