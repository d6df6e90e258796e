// Models whose sizes a simulated machine may be charged for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace rubato::cli {

struct CatalogueModel {
    std::string_view name;
    std::int64_t bytes;  ///< of a gradient and of a weights message
    std::int64_t parameters;
    double flops_per_sample;  ///< forward and backward (three times forward), two a multiply-add
    std::int64_t samples;     ///< training samples of its usual data set
};

std::span<const CatalogueModel> cost_catalogue();
/// Null where there is none of that name.
const CatalogueModel* find_cost_model(std::string_view name);

}  // namespace rubato::cli
