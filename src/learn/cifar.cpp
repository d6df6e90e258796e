#include "learn/cifar.hpp"

#include "learn/byte_file.hpp"
#include "learn/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace rubato::learn {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t record = 1 + 3072;
constexpr std::int64_t cifar100_record = 2 + 3072;  // a coarse and a fine label
constexpr std::int64_t batch_records = 10000;
constexpr int batches = 5;
constexpr int classes = 10;
constexpr const char* cifar_file = "a binary CIFAR-10 file";

/// The folder that holds the files: `folder` itself, or what the archive of CIFAR-10 unpacks to.
fs::path root_of(const fs::path& folder) {
    std::error_code error;
    const fs::path inner = folder / "cifar-10-batches-bin";
    const bool own =
        fs::exists(folder / "data_batch_1.bin", error) || fs::exists(folder / "data_batch_1.bin.gz", error);
    return !own && fs::is_directory(inner, error) ? inner : folder;
}

std::optional<fs::path> find(const fs::path& root, const std::string& name) {
    for (const char* suffix : {"", ".gz"}) {
        std::error_code error;
        fs::path file = root / (name + suffix);
        if (fs::exists(file, error)) return file;
    }
    return std::nullopt;
}

/// What a folder without the right files has instead.
std::string hint(const fs::path& root) {
    std::error_code error;
    if (fs::exists(root / "train.bin", error)) return "; with train.bin it looks like CIFAR-100";
    if (fs::exists(root / "data_batch_1", error)) return "; it has the Python version, and the binary one is needed";
    if (fs::exists(root / "cifar-10-binary.tar.gz", error)) return "; unpack cifar-10-binary.tar.gz first";
    return "";
}

std::array<fs::path, batches> find_training(const fs::path& root) {
    std::array<fs::path, batches> files;
    std::string missing;
    int found = 0;
    for (int b = 0; b < batches; b++) {
        const std::string name = fmt::format("data_batch_{}.bin", b + 1);
        if (const auto file = find(root, name)) {
            files[static_cast<std::size_t>(b)] = *file;
            found++;
        } else if (missing.empty()) {
            missing = name;
        }
    }
    if (found < batches)
        fail_input(root / missing, "the training files data_batch_1.bin to data_batch_5.bin, raw or with .gz",
                   fmt::format("{} of the {}{}", found, batches, hint(root)));
    return files;
}

fs::path find_test(const fs::path& root) {
    if (const auto file = find(root, "test_batch.bin")) return *file;
    fail_input(root / "test_batch.bin", "the test file, raw or with .gz", "none" + hint(root));
}

[[noreturn]] void fail_size(const fs::path& file, bool packed, const std::string& found) {
    const char* unpacked = packed ? " after unpacking" : "";
    fail_input(file,
               fmt::format("{} bytes{}, {} records of {}", batch_records * record, unpacked, batch_records, record),
               found);
}

/// Records of a file of `bytes` bytes: whole ones, one at least, and no more than a file of CIFAR-10 holds.
std::int64_t check_size(const fs::path& file, std::int64_t bytes, bool packed) {
    const std::int64_t records = bytes / record;
    std::string found = fmt::format("{} bytes", bytes);
    if (bytes == 0) fail_size(file, packed, found + ", an empty file");
    if (bytes % record != 0 && bytes % cifar100_record == 0)
        fail_size(file, packed,
                  fmt::format("{}, {} records of {}: it looks like CIFAR-100", found, bytes / cifar100_record,
                              cifar100_record));
    if (bytes % record != 0)
        fail_size(file, packed, fmt::format("{}, {} records and {} bytes", found, records, bytes % record));
    if (records > batch_records) fail_size(file, packed, fmt::format("{}, {} records", found, records));
    return records;
}

/// All bytes of a packed file, of which no more is unpacked than there may be.
std::vector<std::uint8_t> unpack(ByteFile& bytes, const fs::path& file) {
    constexpr std::int64_t step = 4 << 20;
    constexpr std::int64_t most = batch_records * record;
    std::vector<std::uint8_t> data;
    while (true) {
        const auto old = static_cast<std::int64_t>(data.size());
        const std::int64_t want = std::min(step, most + 1 - old);
        data.resize(static_cast<std::size_t>(old + want));
        const std::int64_t got = bytes.read(data.data() + old, want);
        data.resize(static_cast<std::size_t>(old + got));
        if (old + got > most) fail_size(file, true, "more");
        if (got < want) break;
    }
    check_size(file, static_cast<std::int64_t>(data.size()), true);
    return data;
}

/// Appends the images of one file; returns their number.
std::int64_t append(const fs::path& file, Samples& samples) {
    ByteFile bytes(file, cifar_file);
    std::vector<std::uint8_t> data;
    if (bytes.packed()) {
        data = unpack(bytes, file);
    } else {
        check_size(file, bytes.file_size(), false);
        data = bytes.rest(bytes.file_size(), "as when it was opened");
    }
    const auto count = static_cast<std::int64_t>(data.size()) / record;
    samples.labels.reserve(samples.labels.size() + static_cast<std::size_t>(count));
    samples.pixels.reserve(samples.pixels.size() + data.size());
    for (std::int64_t r = 0; r < count; r++) {
        const std::uint8_t* from = data.data() + r * record;
        if (*from >= classes)
            fail_input(file, fmt::format("labels from 0 to {}", classes - 1),
                       fmt::format("{} at record {} (counted from 0)", int{*from}, r));
        samples.labels.push_back(*from);
        samples.pixels.insert(samples.pixels.end(), from + 1, from + record);
    }
    return count;
}

[[noreturn]] void fail_count(const fs::path& file, std::int64_t records) {
    fail_input(file,
               fmt::format("{} records as in every file of CIFAR-10 (of a cut set data.samples tells the number "
                           "of training images)",
                           batch_records),
               std::to_string(records));
}

}  // namespace

Cifar10 read_cifar10(const fs::path& folder, std::int64_t samples) {
    const fs::path root = root_of(folder);
    const auto files = find_training(root);
    const fs::path test = find_test(root);
    Cifar10 data;
    std::array<std::int64_t, batches> counts{};
    for (std::size_t b = 0; b < files.size(); b++) counts[b] = append(files[b], data.train);
    const std::int64_t test_count = append(test, data.test);
    if (samples > 0) {
        if (data.train.count() == samples) return data;
        fail_input(
            root,
            fmt::format("{} training images in data_batch_1.bin to data_batch_5.bin, as data.samples says", samples),
            std::to_string(data.train.count()));
    }
    for (std::size_t b = 0; b < files.size(); b++)
        if (counts[b] != batch_records) fail_count(files[b], counts[b]);
    if (test_count != batch_records) fail_count(test, test_count);
    return data;
}

std::int64_t count_cifar10(const fs::path& folder, std::int64_t samples) {
    const fs::path root = root_of(folder);
    std::int64_t total = 0;
    bool packed = false;
    const auto look = [&](const fs::path& file) {
        const ByteFile bytes(file, cifar_file);
        packed |= bytes.packed();
        return bytes.packed() ? 0 : check_size(file, bytes.file_size(), false);
    };
    for (const fs::path& file : find_training(root)) total += look(file);
    const std::int64_t test = look(find_test(root));
    const std::int64_t wanted = samples > 0 ? samples : cifar10_samples;
    const bool good = total == wanted && (samples > 0 || test == batch_records);
    // What packed files hold shows when they are read. What is wrong with the number, or more than that, too.
    if (!packed && !good) static_cast<void>(read_cifar10(folder, samples));
    return wanted;
}

}  // namespace rubato::learn
