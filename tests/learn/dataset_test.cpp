#include "learn/dataset.hpp"

#include "helpers.hpp"
#include "learn/idx.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace rubato::learn {
namespace {

DataSpec idx(const Folder& folder) {
    DataSpec spec;
    spec.dataset = "idx";
    spec.path = folder.path.string();
    return spec;
}

void put_good_files(const Folder& folder) {
    folder.put("ok-images-idx3-ubyte", "train-images-idx3-ubyte");
    folder.put("ok-labels-idx1-ubyte", "train-labels-idx1-ubyte");
    folder.put("gz-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz");
    folder.put("ok-labels-idx1-ubyte", "t10k-labels.idx1-ubyte");
}

DataSpec synthetic(std::int64_t samples) {
    DataSpec spec;
    spec.samples = samples;
    spec.test_samples = samples / 4;
    spec.shape = {6, 5, 3};
    spec.classes = 7;
    return spec;
}

}  // namespace

TEST_CASE("an IDX folder is read, scaled to [0, 1] and freed of its mean") {
    const Folder folder;
    put_good_files(folder);
    DataSpec spec = idx(folder);
    const Dataset data = load_dataset(spec, 1);
    CHECK(data.shape == ImageShape{28, 28, 1});
    CHECK(data.train.count() == 20);
    CHECK(data.test.count() == 20);
    CHECK(data.training_ids.size() == 20);
    CHECK(data.validation_ids.empty());

    std::vector<float> images(20 * 784);
    copy_images(data, data.train, data.training_ids, images.data());
    for (std::size_t p = 0; p < 784; p += 13) {
        double sum = 0;
        for (std::size_t i = 0; i < 20; i++) sum += images[i * 784 + p];
        CHECK(std::abs(sum) < 1e-5);
    }
    spec.subtract_mean = false;
    const Dataset plain = load_dataset(spec, 1);
    const std::int32_t ids[] = {3, 0};
    copy_images(plain, plain.train, ids, images.data());
    CHECK(images[784] == doctest::Approx(0x44 / 255.0));
    CHECK(images[0] == doctest::Approx(plain.train.pixels[3 * 784] / 255.0));
}

TEST_CASE("broken IDX folders are refused with the file's name") {
    const Folder folder;
    const auto load = [&] { return error_of([&] { load_dataset(idx(folder), 1); }); };
    CHECK(contains(load(), "train-images-idx3-ubyte: expected an IDX file, also as train-images.idx3-ubyte"));
    put_good_files(folder);
    CHECK(load().empty());
    folder.put("short-labels-idx1-ubyte", "train-labels-idx1-ubyte");
    CHECK(contains(load(), "train-labels-idx1-ubyte: expected 20 labels, one an image, found 19"));
    folder.put("badlabel-labels-idx1-ubyte", "train-labels-idx1-ubyte");
    CHECK(contains(load(), "found 11"));
    folder.put("ok-labels-idx1-ubyte", "train-labels-idx1-ubyte");
    for (const char* bad : {"trunc", "headeronly", "hugecount", "littleendian"}) {
        folder.put(std::string(bad) + "-images-idx3-ubyte", "train-images-idx3-ubyte");
        CHECK(one_line(load()));
        CHECK(contains(load(), (folder.path / "train-images-idx3-ubyte").string() + ": expected "));
    }
    folder.put("ok-images-idx3-ubyte", "train-images-idx3-ubyte");
    // Half a test set is a mistake; none at all is somebody's choice, but not with Fashion-MNIST.
    std::filesystem::remove(folder.path / "t10k-labels.idx1-ubyte");
    CHECK(contains(load(), "t10k-labels-idx1-ubyte: expected an IDX file"));
    std::filesystem::remove(folder.path / "t10k-images-idx3-ubyte.gz");
    CHECK(load().empty());
    CHECK(load_dataset(idx(folder), 1).test.count() == 0);
    DataSpec fashion = idx(folder);
    fashion.dataset = "fashion-mnist";
    CHECK(contains(error_of([&] { load_dataset(fashion, 1); }), "t10k-images-idx3-ubyte: expected an IDX file"));
    DataSpec nowhere = idx(folder);
    nowhere.path.clear();
    CHECK(contains(error_of([&] { load_dataset(nowhere, 1); }), "data.path"));
}

TEST_CASE("validation samples are a random subset, left out of training and of the mean") {
    DataSpec spec = synthetic(1000);
    spec.validation = 0.1;
    const Dataset data = load_dataset(spec, 1);
    CHECK(data.validation_ids.size() == 100);
    CHECK(data.training_ids.size() == 900);
    std::set<std::int32_t> all(data.training_ids.begin(), data.training_ids.end());
    all.insert(data.validation_ids.begin(), data.validation_ids.end());
    CHECK(all.size() == 1000);
    CHECK(*all.rbegin() == 999);
    // Neither a block nor a stride.
    CHECK(data.validation_ids.back() - data.validation_ids.front() > 900);
    CHECK(load_dataset(spec, 1).validation_ids == data.validation_ids);
    CHECK(load_dataset(spec, 2).validation_ids != data.validation_ids);

    double sum = 0;
    for (std::int32_t id : data.training_ids) sum += data.train.pixels[static_cast<std::size_t>(id) * 90 + 5];
    CHECK(data.mean[5] == doctest::Approx(sum / 900 / 255));

    CHECK(validation_count(0.1, 5) == 1);  // 0.5 rounds away from zero
    CHECK(contains(error_of([] { validation_count(0.999, 100); }), "data.validation"));
    CHECK(contains(error_of([] { validation_count(-0.1, 100); }), "data.validation"));
}

TEST_CASE("synthetic samples depend on the seed and their number alone") {
    const Samples few = synthetic_samples({6, 5, 3}, 7, 10, 1, 0), many = synthetic_samples({6, 5, 3}, 7, 50, 1, 0);
    CHECK(std::equal(few.pixels.begin(), few.pixels.end(), many.pixels.begin()));
    CHECK(few.pixels != synthetic_samples({6, 5, 3}, 7, 10, 2, 0).pixels);
    CHECK(few.pixels != synthetic_samples({6, 5, 3}, 7, 10, 1, 1).pixels);
    for (int label = 0; label < 7; label++) CHECK(std::ranges::count(many.labels, label) >= 7);
}

TEST_CASE("synthetic test samples belong to the classes of the training samples") {
    // The nearest class mean of the training samples, measured on the test samples.
    const Dataset data = load_dataset(synthetic(700), 1);
    std::vector<float> train(700 * 90), test(175 * 90);
    std::vector<std::int32_t> ids(175);
    for (std::int32_t i = 0; i < 175; i++) ids[static_cast<std::size_t>(i)] = i;
    copy_images(data, data.train, data.training_ids, train.data());
    copy_images(data, data.test, ids, test.data());
    std::vector<double> means(7 * 90);
    for (std::size_t i = 0; i < 700; i++)
        for (std::size_t p = 0; p < 90; p++) means[data.train.labels[i] * 90u + p] += train[i * 90 + p] / 100;
    int errors = 0;
    for (std::size_t i = 0; i < 175; i++) {
        double best = INFINITY;
        int guess = 0;
        for (int k = 0; k < 7; k++) {
            double distance = 0;
            for (std::size_t p = 0; p < 90; p++)
                distance += std::pow(means[static_cast<std::size_t>(k) * 90 + p] - test[i * 90 + p], 2);
            if (distance < best) guess = k;
            best = std::min(best, distance);
        }
        errors += guess != data.test.labels[i];
    }
    CHECK(errors < 175 * 0.05);
}

TEST_CASE("the size of a dataset needs at most a header") {
    const Folder folder;
    put_good_files(folder);
    DataSpec spec = idx(folder);
    spec.validation = 0.25;
    CHECK(dataset_size(spec, true).samples == 15);
    CHECK(dataset_size(spec, true).shape == ImageShape{28, 28, 1});
    CHECK(dataset_size(spec, false).samples == 15);
    spec.samples = 1000;  // what timing is asked for; real gradients have what there is
    CHECK(dataset_size(spec, false).samples == 750);
    CHECK(dataset_size(spec, true).samples == 15);

    spec = synthetic(0);
    CHECK(dataset_size(spec, true).samples == 60000);
    spec.dataset = "fashion-mnist";
    CHECK(dataset_size(spec, false).samples == 60000);  // with or without the package
    spec.path = (folder.path / "nowhere").string();
    CHECK(contains(error_of([&] { dataset_size(spec, false); }), "nowhere"));
    spec.samples = 500;
    CHECK(dataset_size(spec, false).samples == 500);
    CHECK(contains(error_of([&] { dataset_size(spec, true); }), "nowhere"));
}

TEST_CASE("data that make no sense are refused") {
    const auto refused = [](auto change) {
        DataSpec spec = synthetic(10);
        change(spec);
        return error_of([&] { load_dataset(spec, 1); });
    };
    CHECK(contains(refused([](DataSpec& s) { s.dataset = "cifar"; }), "found cifar"));
    CHECK(contains(refused([](DataSpec& s) { s.classes = 1; }), "data.classes"));
    CHECK(contains(refused([](DataSpec& s) { s.shape = {3, 4}; }), "found [3, 4]"));
    CHECK(contains(refused([](DataSpec& s) { s.samples = -1; }), "data.samples"));
}

TEST_CASE("Fashion-MNIST, where its package is installed") {
    const std::filesystem::path folder = "/usr/share/datasets/fashion-mnist";
    if (!std::filesystem::exists(folder)) {
        MESSAGE("skipped: no " << folder.string());
        return;
    }
    DataSpec spec;
    spec.dataset = "fashion-mnist";
    spec.validation = 0.1;
    CHECK(dataset_size(spec, true).samples == 54000);
    const Dataset data = load_dataset(spec, 1);
    CHECK(data.train.count() == 60000);
    CHECK(data.test.count() == 10000);
    for (int label = 0; label < 10; label++) CHECK(std::ranges::count(data.test.labels, label) == 1000);
}

}  // namespace rubato::learn
