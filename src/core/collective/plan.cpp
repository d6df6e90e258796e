#include "core/collective/plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace rubato {

namespace {

constexpr double forward_part = 1.0 / 3;  // a backward pass is two forward ones, where nobody says better

/// Layers from input to output, each with its part of a gradient's seconds.
struct Layers {
    std::vector<Range> ranges;
    double forward = forward_part;
    std::vector<double> backward;  ///< by layer
};

Layers layers_of(const Scenario& scenario, std::int64_t total) {
    Layers out;
    std::vector<std::int64_t> sizes = scenario.layers;
    if (sizes.empty()) sizes = {total};
    const auto sum = static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
    double before = 0;
    for (const std::int64_t size : sizes) {
        const auto at = [&](double so_far) { return std::llround(static_cast<double>(total) * (so_far / sum)); };
        const std::int64_t first = at(before);
        before += static_cast<double>(size);
        out.ranges.push_back({first, at(before) - first});
        out.backward.push_back((1 - forward_part) * static_cast<double>(size) / sum);
    }
    if (scenario.layer_times.size() != sizes.size()) return out;
    double seconds = 0, forward = 0;
    for (const LayerTime& it : scenario.layer_times) {
        forward += it.forward_s;
        seconds += it.forward_s + it.backward_s;
    }
    out.forward = forward / seconds;
    for (std::size_t i = 0; i < sizes.size(); ++i) out.backward[i] = scenario.layer_times[i].backward_s / seconds;
    return out;
}

}  // namespace

double bytes_of_element(const Scenario& scenario, std::int64_t parameters) {
    if (parameters <= 0) return 1;
    if (scenario.cost.push_bytes <= 0) return sizeof(float);
    return static_cast<double>(scenario.cost.push_bytes) / static_cast<double>(parameters);
}

std::vector<Bucket> make_buckets(const Scenario& scenario, std::int64_t parameters) {
    const bool timing = parameters <= 0;
    const std::int64_t total = timing ? scenario.cost.push_bytes : parameters;
    const CollectiveSpec& spec = scenario.protocol.collective;
    if (!scenario.protocol.by_layers()) return {{{0, total}, 0, 1}};
    const Layers layers = layers_of(scenario, total);
    const double bytes_of_one = bytes_of_element(scenario, parameters);
    std::vector<Bucket> buckets;
    double at = layers.forward;
    bool full = true;
    for (std::size_t i = layers.ranges.size(); i-- > 0;) {
        const Range& range = layers.ranges[i];
        if (full) buckets.push_back({{range.end(), 0}, at, at});
        Bucket& bucket = buckets.back();
        bucket.range = {range.first, bucket.range.count + range.count};
        bucket.end = at += layers.backward[i];
        full = bucket.range.count > 0 &&
               static_cast<double>(bucket.range.count) * bytes_of_one >= static_cast<double>(spec.bucket_bytes);
    }
    buckets.back().end = 1;
    return buckets;
}

int sums_at_once(const CollectiveSpec& spec) {
    return 1 + (spec.adaptive ? spec.max_delay : spec.mode == CollectiveMode::delayed ? spec.delay : 0);
}

int gradient_slots(const ProtocolSpec& protocol) {
    return protocol.reduces() ? 2 * sums_at_once(protocol.collective) : 1;
}

AllreduceAlgorithm algorithm_for(const CollectiveSpec& spec, std::int64_t bytes) {
    return bytes <= spec.small_bytes ? spec.small : spec.algorithm;
}

namespace {

/// Iterations of an epoch, after which batches are as many, and as large, as before.
std::int64_t iterations_of_epoch(const DealerConfig& data) {
    if (data.sampling == Sampling::random) return 1;
    const bool sharded = data.sampling == Sampling::sharded;
    const std::int64_t all = sharded ? shard_samples(data.samples, data.lambda, 0) : data.samples;
    const std::int64_t step = sharded ? data.batch_size : std::int64_t{data.batch_size} * data.lambda;
    return std::max<std::int64_t>(1, (all + step - 1) / step);
}

}  // namespace

Batch batch_of(const DealerConfig& data, WorkerId worker, std::int64_t iteration) {
    if (data.sampling == Sampling::random) return own_batch(data, worker, iteration);
    const std::int64_t size = data.batch_size;
    const bool sharded = data.sampling == Sampling::sharded;
    // Where the worker's batches begin and end in what is shared out in an epoch.
    const std::int64_t step = sharded ? size : size * data.lambda;
    const std::int64_t rounds = iterations_of_epoch(data);
    const std::int64_t first = iteration % rounds * step + (sharded ? 0 : worker * size);
    const std::int64_t end = sharded ? shard_samples(data.samples, data.lambda, worker) : data.samples;
    if (first >= end) return {};
    return {static_cast<std::int32_t>(iteration / rounds), static_cast<std::int32_t>(std::min(size, end - first)),
            first};
}

std::int64_t samples_of(const DealerConfig& data, std::int64_t iteration) {
    std::int64_t samples = 0;
    for (WorkerId worker = 0; worker < data.lambda; ++worker) samples += batch_of(data, worker, iteration).count;
    return samples;
}

int computing_in(const DealerConfig& data, std::int64_t iteration) {
    int workers = 0;
    for (WorkerId worker = 0; worker < data.lambda; ++worker) workers += batch_of(data, worker, iteration).count > 0;
    return workers;
}

std::optional<std::int64_t> last_iteration(const DealerConfig& data, const StopSpec& stop) {
    if (!stop.gradients && !stop.epochs) return stop.updates;
    const std::int64_t wanted = stop.epochs ? std::llround(*stop.epochs * static_cast<double>(data.samples))
                                            : std::numeric_limits<std::int64_t>::max();
    const std::int64_t most = stop.gradients.value_or(std::numeric_limits<std::int64_t>::max());
    std::int64_t samples = 0, gradients = 0, iterations = 0;
    const auto goes_on = [&] {
        return samples < wanted && gradients < most && (!stop.updates || iterations < *stop.updates);
    };
    for (const std::int64_t epoch = iterations_of_epoch(data); iterations < epoch && goes_on(); ++iterations) {
        samples += samples_of(data, iterations);
        gradients += computing_in(data, iterations);
    }
    if (!goes_on()) return iterations;
    // All whole epochs but the last are like the first.
    std::int64_t epochs = std::min((wanted - 1) / samples, (most - 1) / gradients);
    if (stop.updates) epochs = std::min(epochs, (*stop.updates - 1) / iterations);
    samples *= epochs;
    gradients *= epochs;
    iterations *= epochs;
    while (goes_on()) {
        samples += samples_of(data, iterations);
        gradients += computing_in(data, iterations++);
    }
    return iterations;
}

}  // namespace rubato
