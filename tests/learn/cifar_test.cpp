// The binary CIFAR-10: sizes, labels, missing files, its look-alikes. The files in data/ hold five records each.
#include "learn/cifar.hpp"

#include "helpers.hpp"
#include "learn/error.hpp"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cmath>
#include <fstream>

namespace rubato::learn {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t record = 3073;

const char* const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                             "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

std::string bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
}

void pack(const fs::path& file, const std::string& bytes) {
    const gzFile out = gzopen(file.c_str(), "wb");
    gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(out);
}

/// Six files of five records each.
void put_small(const Folder& folder) {
    for (const char* name : names) folder.put("cifar_ok.bin", name);
}

std::string trouble(const Folder& folder, std::int64_t samples) {
    const std::string counted = error_of([&] { count_cifar10(folder.path, samples); });
    const std::string read = error_of([&] { read_cifar10(folder.path, samples); });
    // What the sizes of the files tell is told alike; the rest shows only when they are read.
    if (!counted.empty()) CHECK(counted == read);
    return read;
}

}  // namespace

TEST_CASE("a record is a label and three planes, red, green and blue") {
    const Folder folder;
    put_small(folder);
    const Cifar10 data = read_cifar10(folder.path, 25);
    REQUIRE(data.train.count() == 25);
    REQUIRE(data.test.count() == 5);
    CHECK(count_cifar10(folder.path, 25) == 25);
    const std::string raw = bytes_of(folder.path / "data_batch_1.bin");
    REQUIRE(raw.size() == 5 * record);
    CHECK(data.train.labels ==
          std::vector<std::uint8_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
    // Pixel (row 2, column 7) of the blue plane of record 3, in the file and in the samples.
    const auto blue = static_cast<std::uint8_t>(raw[3 * record + 1 + 2 * 1024 + 2 * 32 + 7]);
    CHECK(data.train.pixels[3 * 3072 + 2 * 1024 + 2 * 32 + 7] == blue);
    CHECK(data.train.pixels[0] == 0x67);
}

TEST_CASE("the folder may be the one above") {
    const Folder folder;
    fs::create_directory(folder.path / "cifar-10-batches-bin");
    for (const char* name : names) folder.put("cifar_ok.bin", std::string("cifar-10-batches-bin/") + name);
    CHECK(read_cifar10(folder.path, 25).train.count() == 25);
    CHECK(read_cifar10(folder.path / "cifar-10-batches-bin", 25).train.count() == 25);
}

TEST_CASE("a whole set has fifty thousand images, and a cut one says so") {
    const Folder folder;
    put_small(folder);
    CHECK(contains(trouble(folder, 0), "data_batch_1.bin: expected 10000 records as in every file of CIFAR-10"));
    CHECK(contains(trouble(folder, 0), "data.samples"));
    CHECK(contains(trouble(folder, 20),
                   "expected 20 training images in data_batch_1.bin to data_batch_5.bin, as "
                   "data.samples says, found 25"));
    const std::string batch(10000 * record, '\7');
    for (const char* name : names) write(folder.path / name, batch);
    CHECK(count_cifar10(folder.path, 0) == 50000);
    const Cifar10 data = read_cifar10(folder.path, 0);
    CHECK(data.train.count() == 50000);
    CHECK(data.test.count() == 10000);
    CHECK(data.train.labels.back() == 7);
    folder.put("cifar_ok.bin", "test_batch.bin");
    CHECK(contains(trouble(folder, 0), "test_batch.bin: expected 10000 records"));
}

TEST_CASE("a missing file is named, never trained without") {
    const Folder folder;
    put_small(folder);
    fs::remove(folder.path / "data_batch_5.bin");
    for (const std::int64_t samples : {0, 20, 25})
        CHECK(contains(trouble(folder, samples),
                       "data_batch_5.bin: expected the training files data_batch_1.bin to "
                       "data_batch_5.bin, raw or with .gz, found 4 of the 5"));
    folder.put("cifar_ok.bin", "data_batch_5.bin");
    fs::remove(folder.path / "test_batch.bin");
    CHECK(contains(trouble(folder, 25), "test_batch.bin: expected the test file, raw or with .gz, found none"));
}

TEST_CASE("a folder of something else is told what it looks like") {
    const Folder folder;
    CHECK(contains(trouble(folder, 0), "data_batch_1.bin: expected the training files"));
    write(folder.path / "train.bin", "");
    CHECK(contains(trouble(folder, 0), "it looks like CIFAR-100"));
    fs::remove(folder.path / "train.bin");
    write(folder.path / "data_batch_1", "");
    CHECK(contains(trouble(folder, 0), "the Python version"));
    fs::remove(folder.path / "data_batch_1");
    write(folder.path / "cifar-10-binary.tar.gz", "");
    CHECK(contains(trouble(folder, 0), "unpack cifar-10-binary.tar.gz first"));
}

TEST_CASE("a bad file is named with what was expected and found") {
    struct Row {
        const char *file, *found;
    };
    const Row rows[] = {
        {"cifar_trunc.bin",
         "expected 30730000 bytes, 10000 records of 3073, found 15358 bytes, 4 records and 3066 bytes"},
        {"cifar100_3074.bin", "found 15370 bytes, 5 records of 3074: it looks like CIFAR-100"},
        {"cifar_empty.bin", "found 0 bytes, an empty file"},
        {"cifar_label17.bin", "expected labels from 0 to 9, found 17 at record 0 (counted from 0)"},
    };
    for (const char* name : {"data_batch_3.bin", "test_batch.bin"}) {
        for (const Row& row : rows) {
            for (const std::int64_t samples : {0, 25}) {
                const Folder folder;
                put_small(folder);
                folder.put(row.file, name);
                const std::string error = trouble(folder, samples);
                CAPTURE(error);
                CHECK(one_line(error));
                CHECK(error.starts_with((folder.path / name).string() + ": "));
                CHECK(contains(error, row.found));
            }
        }
    }
}

TEST_CASE("files with gzip's magic are unpacked, whatever their name, and no more than may be there") {
    const Folder folder;
    put_small(folder);
    const Cifar10 raw = read_cifar10(folder.path, 25);
    const std::string bytes = bytes_of(folder.path / "data_batch_2.bin");
    fs::remove(folder.path / "data_batch_2.bin");
    pack(folder.path / "data_batch_2.bin.gz", bytes);
    pack(folder.path / "data_batch_4.bin", bytes);
    CHECK(read_cifar10(folder.path, 25).train.pixels == raw.train.pixels);
    CHECK(count_cifar10(folder.path, 25) == 25);
    CHECK(contains(trouble(folder, 26), "found 25"));
    pack(folder.path / "data_batch_4.bin", bytes.substr(0, record + 1));
    CHECK(contains(trouble(folder, 25), "30730000 bytes after unpacking, 10000 records of 3073, found 3074 bytes"));
    pack(folder.path / "data_batch_4.bin", std::string(10001 * record, '\0'));
    CHECK(contains(trouble(folder, 25), "after unpacking, 10000 records of 3073, found more"));
    const std::string packed = bytes_of(folder.path / "data_batch_2.bin.gz");
    write(folder.path / "data_batch_4.bin", packed.substr(0, packed.size() / 2));
    CHECK(contains(trouble(folder, 25), "data_batch_4.bin: expected a whole gzip stream"));
}

TEST_CASE("a file larger than memory is refused by its size alone") {
    const Folder folder;
    put_small(folder);
    fs::resize_file(folder.path / "data_batch_1.bin", std::uintmax_t{1} << 40);  // sparse
    CHECK(contains(trouble(folder, 25), "found 1099511627776 bytes"));
    fs::resize_file(folder.path / "data_batch_1.bin", std::uintmax_t{record} * 300'000'000);
    CHECK(contains(trouble(folder, 25), "300000000 records"));
}

TEST_CASE("each classifier takes CIFAR-10, of which a softmax finds an image's own label") {
    const Folder folder;
    put_small(folder);
    for (const char* model : {"softmax", "mlp", "cnn"}) {
        CAPTURE(model);
        Scenario scenario = small_scenario(model);
        scenario.data = {};
        scenario.data.dataset = "cifar-10";
        scenario.data.path = folder.path.string();
        scenario.data.samples = 25;
        const TaskSize size = task_size(scenario);
        CHECK(size.samples == 25);
        const auto task = make_task(scenario);
        CHECK(task->samples() == 25);
        CHECK(task->parameters() == size.parameters);
        if (scenario.model.name == "softmax") CHECK(task->parameters() == 3072 * 10 + 10);
        if (scenario.model.name == "cnn") CHECK(task->parameters() == 89578);
        std::vector<float> weights(static_cast<std::size_t>(task->parameters())), gradient(weights.size());
        task->initialize(weights);
        const auto workspace = task->workspace();
        Backwards parallel;
        const double before = *task->evaluate(weights, parallel).test_loss;
        for (std::int64_t step = 0; step < 30; step++) {
            CHECK(std::isfinite(task->gradient(weights, 0, step, {0, 25, 0}, gradient, *workspace)));
            for (std::size_t i = 0; i < weights.size(); i++) weights[i] -= 0.005f * gradient[i];
        }
        // The test images are the training images.
        CHECK(*task->evaluate(weights, parallel).test_loss < before);
        if (scenario.model.name == "softmax") CHECK(*task->evaluate(weights, parallel).test_error == 0);
    }
}

TEST_CASE("timing alone knows the size of CIFAR-10 without its files") {
    DataSpec spec;
    spec.dataset = "cifar-10";
    CHECK(dataset_size(spec, false).samples == 50000);
    CHECK(dataset_size(spec, false).shape == ImageShape{32, 32, 3});
    spec.samples = 300;
    CHECK(dataset_size(spec, false).samples == 300);
    CHECK(contains(error_of([&] { dataset_size(spec, true); }), "data.path"));
}

}  // namespace rubato::learn
