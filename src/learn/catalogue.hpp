// Cost models: the sizes of published networks, which a simulated machine can be charged with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::learn {

struct CatalogueLayer {
    std::string name;
    std::int64_t parameters = 0;
};

struct CatalogueEntry {
    std::string name;
    std::int64_t parameters = 0;
    std::int64_t bytes = 0;              ///< of a gradient or weights message
    double flops_per_sample = 0;         ///< forward and backward; a multiplication and an addition are two
    std::vector<CatalogueLayer> layers;  ///< from input to output, weights and biases together; empty: not known
    std::string source;
};

/// The entry, or null. The pointer stays valid.
const CatalogueEntry* find(std::string_view name);

/// All entries, by name.
const std::vector<CatalogueEntry>& all();

}  // namespace rubato::learn
