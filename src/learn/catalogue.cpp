#include "learn/catalogue.hpp"

#include <algorithm>
#include <utility>

namespace rubato::learn {
namespace {

// Training costs three forward passes: forward, gradient of the data, gradient of the weights; one multiply-accumulate
// (MAC) is two operations.
constexpr double training_flops(double forward_macs) {
    return 2 * 3 * forward_macs;
}

// A. Krizhevsky's cuda-convnet "layers-18pct" as Caffe's examples/cifar10/cifar10_full_train_test.prototxt has it. The
// message size is that of Gupta, Zhang, Milthorpe 2015 (Rudra), section 4: "about 90 K parameters, about 350 kB".
// 12.3 M MACs: 75*32*32^2 + 800*32*16^2 + 800*64*8^2 + 1024*10.
CatalogueEntry cifar10_full() {
    return {"cifar10-full",
            89'578,
            350'000,
            training_flops(12.3e6),
            {{"conv1", 2'432}, {"conv2", 25'632}, {"conv3", 51'264}, {"ip1", 10'250}},
            "Caffe cifar10_full; size of the message: Gupta, Zhang, Milthorpe 2015, section 4"};
}

// Krizhevsky, Sutskever, Hinton 2012, with the grouped convolutions of the original (Caffe's bvlc_alexnet); float32.
// 724 M MACs: 105 + 224 + 150 + 112 + 75 in the convolutions and 59 in the fully connected layers.
CatalogueEntry alexnet() {
    return {"alexnet",
            60'965'224,
            243'860'896,
            training_flops(724e6),
            {{"conv1", 34'944},
             {"conv2", 307'456},
             {"conv3", 885'120},
             {"conv4", 663'936},
             {"conv5", 442'624},
             {"fc6", 37'752'832},
             {"fc7", 16'781'312},
             {"fc8", 4'097'000}},
            "Krizhevsky, Sutskever, Hinton 2012 (Caffe bvlc_alexnet)"};
}

// Gupta, Zhang, Milthorpe 2015, section 4: an AlexNet of "72 million parameters", "289 MB". The paper gives neither
// layers nor operations; the operations are those of `alexnet`.
CatalogueEntry alexnet_rudra() {
    return {"alexnet-rudra",       72'000'000, 289'000'000,
            training_flops(724e6), {},         "Gupta, Zhang, Milthorpe 2015, section 4; operations as alexnet"};
}

// He, Zhang, Ren, Sun 2016, table 1, the 50-layer column; each layer is a convolution with its batch normalization
// (two parameters a channel). 4.1 G MACs forward at 224 x 224.
CatalogueEntry resnet50() {
    CatalogueEntry entry{"resnet50", 25'557'032, 102'228'128, training_flops(4.1e9), {}, "He, Zhang, Ren, Sun 2016"};
    const auto conv = [&](std::string name, std::int64_t in, std::int64_t out, std::int64_t side) {
        entry.layers.push_back({std::move(name), in * out * side * side + 2 * out});
    };
    conv("conv1", 3, 64, 7);
    std::int64_t channels = 64;
    const std::pair<int, std::int64_t> stages[] = {{3, 64}, {4, 128}, {6, 256}, {3, 512}};
    for (int s = 0; s < 4; s++) {
        const auto [blocks, middle] = stages[s];
        for (int b = 0; b < blocks; b++) {
            const std::string block = "conv" + std::to_string(s + 2) + "_" + std::to_string(b + 1);
            conv(block + "_a", channels, middle, 1);
            conv(block + "_b", middle, middle, 3);
            conv(block + "_c", middle, 4 * middle, 1);
            if (b == 0) conv(block + "_shortcut", channels, 4 * middle, 1);
            channels = 4 * middle;
        }
    }
    entry.layers.push_back({"fc", channels * 1000 + 1000});
    return entry;
}

}  // namespace

const std::vector<CatalogueEntry>& all() {
    static const std::vector<CatalogueEntry> entries = {alexnet(), alexnet_rudra(), cifar10_full(), resnet50()};
    return entries;
}

const CatalogueEntry* find(std::string_view name) {
    const auto entry = std::ranges::find(all(), name, &CatalogueEntry::name);
    return entry == all().end() ? nullptr : &*entry;
}

}  // namespace rubato::learn
