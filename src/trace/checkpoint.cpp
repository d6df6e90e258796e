// A checkpoint is lines of text, then arrays of float32, then eight bytes of checksum over all of it.
#include "trace/checkpoint.hpp"

#include "trace/line_file.hpp"
#include "trace/text_reader.hpp"
#include "trace/text_writer.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <unistd.h>

namespace rubato::trace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view checkpoint_magic = "rubato-checkpoint 3";
constexpr std::string_view weights_magic = "rubato-weights 1";
constexpr std::string_view checkpoint_suffix = ".ckpt", weights_suffix = ".weights";

/// FNV-1a over words of eight bytes, rotated so that all bits take part. It guards against slips, not against forgers.
class Checksum {
public:
    void add(const void* data, std::size_t bytes) {
        const auto* at = static_cast<const unsigned char*>(data);
        mix(bytes);
        for (; bytes >= 8; at += 8, bytes -= 8) {
            std::uint64_t word;
            std::memcpy(&word, at, 8);
            mix(word);
        }
        std::uint64_t rest = 0;
        if (bytes > 0) std::memcpy(&rest, at, bytes);  // nothing may lie nowhere
        mix(rest);
    }
    std::uint64_t value() const { return state_; }

private:
    void mix(std::uint64_t word) { state_ = std::rotl((state_ ^ word) * 0x100000001b3, 29); }
    std::uint64_t state_ = 0xcbf29ce484222325;
};

template <class Value>
std::string line_of(std::string_view name, const Value& value) {
    TextWriter writer;
    writer(name, value);
    return writer.take() + '\n';
}

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

template <class Value>
void read_line_of(std::string_view name, std::string_view line, Value& value) {
    const std::string spaced = ' ' + std::string(line);
    TextReader reader(spaced);
    reader(name, value);
    reader.end();
}

/// Sizes of the arrays that follow the text.
struct Arrays {
    std::int64_t weights = 0, velocity = 0, trend = 0;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("weights", self.weights);
        field("velocity", self.velocity);
        field("trend", self.trend);
    }
};

std::string text_of(const CheckpointView& view) {
    const auto& head = view.head;
    std::string text(checkpoint_magic);
    text += "\nprogram " + head.program + "\nbackend " + head.backend + "\nscenario " + one_line(head.scenario) + '\n';
    text += line_of("roles", head.roles) + line_of("totals", head.totals) + line_of("tables", head.recorder.tables);
    text += "figures " + head.recorder.figures + '\n';
    return text + line_of("arrays", Arrays{static_cast<std::int64_t>(view.weights.size()),
                                           static_cast<std::int64_t>(view.velocity.size()),
                                           static_cast<std::int64_t>(view.trend.size())});
}

[[noreturn]] void fail(const std::string& path, int error) {
    throw OutputError("cannot write " + path + ": " + std::strerror(error),
                      error == ENOSPC || error == EDQUOT || error == EFBIG);
}

void force_to_disk(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);  // folders of some file systems refuse it; then there is nothing more to do
    ::close(descriptor);
}

void write_sealed(const std::string& path, const std::string& text, const std::vector<std::span<const float>>& arrays) {
    const std::string other = path + ".part";
    const int descriptor = ::open(other.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) fail(other, errno);
    Checksum sum;
    sum.add(text.data(), text.size());
    int error = write_all(descriptor, text);
    for (const auto& array : arrays) {
        if (error != 0) break;
        const std::string_view bytes(reinterpret_cast<const char*>(array.data()), array.size_bytes());
        sum.add(bytes.data(), bytes.size());
        error = write_all(descriptor, bytes);
    }
    const std::uint64_t seal = sum.value();
    if (error == 0) error = write_all(descriptor, {reinterpret_cast<const char*>(&seal), sizeof seal});
    if (error == 0 && ::fsync(descriptor) != 0) error = errno;
    if (::close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
    if (error == 0 && ::rename(other.c_str(), path.c_str()) != 0) error = errno;
    if (error == 0) return;
    ::unlink(other.c_str());
    fail(path, error);
}

std::string file_of(const std::string& folder, Version version, std::string_view suffix) {
    return folder + "/" + std::to_string(version) + std::string(suffix);
}

/// Files NUMBER.SUFFIX of a folder.
std::vector<Version> numbered(const std::string& folder, std::string_view suffix) {
    std::vector<Version> out;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        Version version = 0;
        const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), version);
        if (problem == std::errc() && std::string_view(end) == suffix) out.push_back(version);
    }
    return out;
}

/// A file taken apart; the checksum holds.
class Sealed {
public:
    explicit Sealed(const std::string& path) : path_(path) {
        std::ifstream in(path, std::ios::binary);
        if (!in) refuse(std::strerror(errno));
        bytes_.assign(std::istreambuf_iterator<char>(in), {});
        rest_ = bytes_;
    }
    std::string_view line() {
        const auto end = rest_.find('\n');
        if (end == std::string_view::npos) refuse("is cut off");
        const std::string_view out = rest_.substr(0, end);
        rest_.remove_prefix(end + 1);
        return out;
    }
    std::string_view line(std::string_view name) {
        std::string_view out = line();
        if (!out.starts_with(name) || out.size() <= name.size()) refuse("was altered, or is none");
        out.remove_prefix(name.size() + 1);
        return out;
    }
    /// The rest: arrays of so many numbers each.
    std::vector<std::vector<float>> arrays(const std::vector<std::int64_t>& counts) {
        std::size_t expected = sizeof(std::uint64_t);
        for (const auto count : counts) {
            if (count < 0 || count > (std::int64_t{1} << 40)) refuse("was altered");
            expected += static_cast<std::size_t>(count) * sizeof(float);
        }
        if (rest_.size() < expected)
            refuse("is cut off: " + std::to_string(expected - rest_.size()) + " bytes are missing");
        if (rest_.size() > expected) refuse("was altered: it is too long");
        Checksum sum;
        sum.add(bytes_.data(), bytes_.size() - rest_.size());
        std::vector<std::vector<float>> out;
        for (const auto count : counts) {
            auto& array = out.emplace_back(static_cast<std::size_t>(count));
            const std::size_t size = array.size() * sizeof(float);
            if (size > 0) std::memcpy(array.data(), rest_.data(), size);
            sum.add(rest_.data(), size);
            rest_.remove_prefix(size);
        }
        std::uint64_t seal;
        std::memcpy(&seal, rest_.data(), sizeof seal);
        if (seal != sum.value()) refuse("was altered: its checksum is another");
        return out;
    }
    [[noreturn]] void refuse(const std::string& what) const { throw std::invalid_argument(path_ + ": " + what); }

private:
    std::string path_, bytes_;
    std::string_view rest_;
};

std::vector<float> read_weights(const std::string& path) {
    Sealed file(path);
    if (file.line() != weights_magic) file.refuse("is no file of weights");
    Arrays sizes;
    try {
        read_line_of("arrays", file.line(), sizes);
    } catch (const std::invalid_argument&) {
        file.refuse("was altered");
    }
    return std::move(file.arrays({sizes.weights}).front());
}

}  // namespace

std::int64_t CheckpointView::bytes() const {
    auto count = static_cast<std::int64_t>(weights.size() + velocity.size() + trend.size());
    for (const auto& it : evaluated) count += static_cast<std::int64_t>(it.second.size());
    return count * static_cast<std::int64_t>(sizeof(float)) + static_cast<std::int64_t>(head.recorder.figures.size());
}

std::string checkpoint_folder(const std::string& run_directory) {
    return run_directory + "/checkpoints";
}

void write_checkpoint(const std::string& run_directory, const CheckpointView& view) {
    const std::string folder = checkpoint_folder(run_directory);
    make_directory(folder);
    for (const char* table :
         {"gradients.csv", "updates.csv", "evals.csv", "timeline.csv", "controller.csv", "rounds.csv", "exchanges.csv"})
        force_to_disk(run_directory + "/" + table);
    for (const auto& [version, weights] : view.evaluated) {
        const std::string path = file_of(folder, version, weights_suffix);
        if (fs::exists(path)) continue;
        const Arrays sizes{static_cast<std::int64_t>(weights.size()), 0, 0};
        write_sealed(path, std::string(weights_magic) + '\n' + line_of("arrays", sizes), {weights});
    }
    write_sealed(file_of(folder, view.head.version(), checkpoint_suffix), text_of(view),
                 {view.weights, view.velocity, view.trend});
    force_to_disk(folder);
    force_to_disk(run_directory);
}

std::vector<Version> checkpoint_versions(const std::string& run_directory) {
    auto out = numbered(checkpoint_folder(run_directory), checkpoint_suffix);
    std::sort(out.rbegin(), out.rend());
    return out;
}

Checkpoint read_checkpoint(const std::string& run_directory, Version version) {
    const std::string folder = checkpoint_folder(run_directory);
    Sealed file(file_of(folder, version, checkpoint_suffix));
    if (file.line() != checkpoint_magic) file.refuse("is no checkpoint of this format");
    Checkpoint out;
    auto& head = out.head;
    Arrays sizes;
    try {
        head.program = file.line("program");
        head.backend = file.line("backend");
        head.scenario = file.line("scenario");
        read_line_of("roles", file.line(), head.roles);
        read_line_of("totals", file.line(), head.totals);
        read_line_of("tables", file.line(), head.recorder.tables);
        head.recorder.figures = file.line("figures");
        read_line_of("arrays", file.line(), sizes);
    } catch (const std::invalid_argument& problem) {
        const std::string text = problem.what();
        file.refuse(text.find("is cut off") != std::string::npos ? "is cut off" : "was altered");
    }
    auto arrays = file.arrays({sizes.weights, sizes.velocity, sizes.trend});
    out.weights = std::move(arrays[0]);
    out.velocity = std::move(arrays[1]);
    out.trend = std::move(arrays[2]);
    if (head.version() != version) file.refuse("is of version " + std::to_string(head.version()));
    if (sizes.weights == 0) return out;
    for (const auto& it : head.roles.server.evaluations)
        if (it.row.version != version && !out.evaluated.contains(it.row.version))
            out.evaluated[it.row.version] = read_weights(file_of(folder, it.row.version, weights_suffix));
    return out;
}

std::optional<Checkpoint> newest_checkpoint(const std::string& run_directory,
                                            const std::function<void(const std::string&)>& refused) {
    for (const Version version : checkpoint_versions(run_directory)) {
        try {
            return read_checkpoint(run_directory, version);
        } catch (const std::invalid_argument& problem) {
            refused(problem.what());
        }
    }
    return std::nullopt;
}

void prune_checkpoints(const std::string& run_directory, const std::vector<Version>& needed,
                       std::optional<Version> also) {
    const std::string folder = checkpoint_folder(run_directory);
    const auto versions = checkpoint_versions(run_directory);
    std::error_code error;
    for (std::size_t i = 2; i < versions.size(); ++i)
        if (versions[i] != also) fs::remove(file_of(folder, versions[i], checkpoint_suffix), error);
    for (const Version version : numbered(folder, weights_suffix))
        if (std::find(needed.begin(), needed.end(), version) == needed.end())
            fs::remove(file_of(folder, version, weights_suffix), error);
}

void begin_after(const std::string& run_directory, Version version) {
    const std::string folder = checkpoint_folder(run_directory);
    std::error_code error;
    for (const Version newer : checkpoint_versions(run_directory)) {
        const std::string path = file_of(folder, newer, checkpoint_suffix);
        if (newer > version) fs::rename(path, path + ".refused", error);
    }
    // Of another course of events, perhaps.
    for (const Version newer : numbered(folder, weights_suffix))
        if (newer > version) fs::remove(file_of(folder, newer, weights_suffix), error);
    std::vector<fs::path> parts;
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (entry.path().extension() == ".part") parts.push_back(entry.path());
    for (const auto& part : parts) fs::remove(part, error);
}

std::string to_text(const RunState& state) {
    TextWriter writer;
    RunState::each(state, writer);
    return writer.take();
}

RunState run_state_from_text(const std::string& text) {
    const std::string spaced = ' ' + text;
    TextReader reader(spaced);
    RunState state;
    RunState::each(state, reader);
    reader.end();
    return state;
}

}  // namespace rubato::trace
