#include "learn/catalogue.hpp"

#include "learn/network.hpp"

#include <doctest/doctest.h>

namespace rubato::learn {

TEST_CASE("the layers of an entry add up to its parameters") {
    CHECK(all().size() == 4);
    for (const CatalogueEntry& entry : all()) {
        CAPTURE(entry.name);
        CHECK(find(entry.name) == &entry);
        CHECK(!entry.source.empty());
        CHECK(entry.flops_per_sample > 0);
        std::int64_t sum = 0;
        for (const CatalogueLayer& layer : entry.layers) sum += layer.parameters;
        if (entry.layers.empty()) {
            CHECK(entry.name == "alexnet-rudra");
        } else {
            CHECK(sum == entry.parameters);
        }
        CHECK(static_cast<double>(entry.bytes) ==
              doctest::Approx(4.0 * static_cast<double>(entry.parameters)).epsilon(0.03));
    }
    CHECK(find("resnet") == nullptr);
}

TEST_CASE("sizes are the published ones") {
    CHECK(find("cifar10-full")->bytes == 350'000);
    CHECK(find("cifar10-full")->parameters == make_cnn({32, 32, 3}, 10, 1)->parameters());
    CHECK(find("alexnet-rudra")->bytes == 289'000'000);
    CHECK(find("resnet50")->bytes == 4 * find("resnet50")->parameters);
    CHECK(find("resnet50")->layers.size() == 54);
    CHECK(find("resnet50")->flops_per_sample == doctest::Approx(24.6e9));
    // FC6 holds 62 % of AlexNet.
    CHECK(static_cast<double>(find("alexnet")->layers[5].parameters) / 60'965'224 ==
          doctest::Approx(0.62).epsilon(0.01));
}

}  // namespace rubato::learn
