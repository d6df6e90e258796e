#include "cli/cost_catalogue.hpp"

namespace rubato::cli {
namespace {

// Bytes and parameters of cifar10-full and alexnet-rudra: Gupta et al. 2015, section 4. FLOPs from the layers: 12.3
// million multiply-adds forward for cifar10_full, 0.72 billion for AlexNet, 4.1 billion for ResNet-50 at 224 x 224.
constexpr CatalogueModel models[] = {
    {"cifar10-full", 350'000, 89'578, 7.4e7, 50'000},
    {"alexnet", 244'000'000, 61'000'000, 4.3e9, 1'281'167},
    {"alexnet-rudra", 289'000'000, 72'000'000, 4.3e9, 1'281'167},
    {"resnet50", 102'228'128, 25'557'032, 2.46e10, 1'281'167},
};

}  // namespace

std::span<const CatalogueModel> cost_catalogue() {
    return models;
}

const CatalogueModel* find_cost_model(std::string_view name) {
    for (const auto& model : models) {
        if (model.name == name) return &model;
    }
    return nullptr;
}

}  // namespace rubato::cli
