#include "sim/noise.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::sim {
namespace {

learn::Stream stream_of(const Scenario& scenario, RoleId role, std::int64_t worker_seq) {
    return {scenario.seeds.timing, static_cast<std::uint32_t>(role), learn::Purpose::noise_compute,
            static_cast<std::uint64_t>(worker_seq)};
}

/// Weights of the draws before and after a point between them, 0 <= part < 1: linear, with squares that add up to 1.
std::array<double, 2> weights_at(double part) {
    const double norm = std::sqrt((1 - part) * (1 - part) + part * part);
    return {(1 - part) / norm, part / norm};
}

/// Mean of z * factor(z) for a standard normal z: the middles of 1200 intervals out to 6.
template <class Factor>
double moment_of(const Factor& factor) {
    double sum = 0;
    for (int i = 0; i < 1200; ++i) {
        const double z = (i + 0.5) / 100 - 6;
        sum += z * factor(z) * learn::exp_portable(-z * z / 2) / 100;
    }
    return sum / 2.5066282746310002;
}

/// The factor that belongs to a standard normal score, for kinds other than lognormal.
double from_score(const NoiseSpec& noise, double score) {
    constexpr double least = 0.05;  // a normal factor may not be 0 or less
    if (noise.kind == NoiseSpec::Kind::normal) return std::max(least, 1 + noise.cv * score);
    return 1 - noise.cv - noise.cv * learn::log_portable(learn::normal_cdf(-score));
}

}  // namespace

double noise_factor(const Scenario& scenario, RoleId role, std::int64_t worker_seq) {
    const NoiseSpec& noise = scenario.cluster.noise;
    if (noise.cv == 0) return 1;
    learn::Stream stream = stream_of(scenario, role, worker_seq);
    return noise.kind == NoiseSpec::Kind::lognormal ? stream.lognormal(noise.cv) : from_score(noise, stream.normal());
}

double common_normal(std::uint64_t seed, double time_s, HostId host, Time at_ns) {
    const double place = static_cast<double>(at_ns) * 1e-9 / time_s;
    const double before = std::floor(place);
    const auto [left, right] = weights_at(place - before);
    const auto draw = [&](double index) {
        return learn::Stream(seed, static_cast<std::uint32_t>(host), learn::Purpose::noise_common,
                             static_cast<std::uint64_t>(index))
            .normal();
    };
    return left * draw(before) + right * draw(before + 1);
}

double common_correlation(double x) {
    constexpr int points = 64;  // of the place between two draws, over which it is averaged
    double sum = 0;
    for (int i = 0; i < points; ++i) {
        const double part = (i + 0.5) / points, there = part + x;
        const auto [left, right] = weights_at(part);
        if (there < 1) {
            const auto [there_left, there_right] = weights_at(there);
            sum += left * there_left + right * there_right;
        } else if (there < 2) {
            sum += right * weights_at(there - 1)[0];
        }
    }
    return sum / points;
}

Noise::Noise(const Scenario& scenario, const Placement* placement) : scenario_(scenario), placement_(placement) {
    const NoiseSpec& noise = scenario.cluster.noise;
    const auto& groups = scenario.workers.groups;
    if (std::any_of(groups.begin(), groups.end(), [](const WorkerGroup& group) { return group.devices > 1; })) {
        devices_.push_back(nullptr);
        for (const WorkerGroup& group : groups)
            devices_.insert(devices_.end(), static_cast<std::size_t>(group.count), &group);
    }
    if (placement) {
        const auto& devices = placement->device_of_role;
        measured_ = std::any_of(devices.begin(), devices.end(),
                                [](const DeviceSpec* device) { return device != nullptr && !device->shapes.empty(); });
        common_ = noise.common.share > 0;
        for (const DeviceSpec* device : devices) {
            if (!common_ || !device || device->shapes.empty() || moments_.contains(device)) continue;
            for (const TimeShape& shape : device->shapes)
                moments_[device].push_back(
                    moment_of([&](double z) { return shape_factor(*device, shape.batch, learn::normal_cdf(z)); }));
        }
    }
    if (noise.cv == 0) return;
    if (noise.kind != NoiseSpec::Kind::lognormal) {
        moment_ = moment_of([&](double z) { return from_score(noise, z); });
        return;
    }
    lognormal_.emplace(noise.cv);
    blocks_.resize(static_cast<std::size_t>(scenario.lambda()) + 1);
}

// Device d of g draws as a worker alone would for its gradient g * worker_seq + d.
double Noise::of_slowest(const Draw& draw) {
    const WorkerGroup& group = *devices_[static_cast<std::size_t>(draw.role)];
    Draw one = draw;
    one.batch = group.part(draw.batch);
    one.worker_seq = draw.worker_seq * group.devices;
    double slowest = of_one(one);
    for (int device = 1; device < std::min(group.devices, draw.batch); ++device) {
        ++one.worker_seq;
        slowest = std::max(slowest, of_one(one));
    }
    return slowest;
}

double Noise::drawn(const DeviceSpec& device, const Draw& draw) const {
    return shape_factor(device, draw.batch, stream_of(scenario_, draw.role, draw.worker_seq).uniform());
}

double Noise::correlated(const Draw& draw) const {
    const auto role = static_cast<std::size_t>(draw.role);
    const DeviceSpec& device = *placement_->device_of_role[role];
    const bool measured = !device.shapes.empty();
    const NoiseSpec& noise = scenario_.cluster.noise;
    if (!measured && noise.cv == 0) return 1;
    const double moment = measured     ? between_shapes(device, draw.batch, moments_.at(&device))
                          : lognormal_ ? lognormal_->deviation()
                                       : moment_;
    const CommonNoise& common = noise.common;
    const double score = std::sqrt(common.share) * (common_normal(scenario_.seeds.timing, common.time_s,
                                                                  placement_->host_of_role[role], draw.begin_ns) +
                                                    shift(moment, draw.mean_s)) +
                         std::sqrt(1 - common.share) * stream_of(scenario_, draw.role, draw.worker_seq).normal();
    if (measured) return shape_factor(device, draw.batch, learn::normal_cdf(score));
    return lognormal_ ? lognormal_->from_normal(score) : from_score(noise, score);
}

// With correlation exp(-y) from one gradient to the next, the mean m of the common part over gradients obeys
// m = exp(-y) m - y exp(-y) s to first order, where s is its mean weighted with time.
double Noise::shift(double moment, double mean_s) const {
    const CommonNoise& common = scenario_.cluster.noise.common;
    const double y = 1.25 * mean_s / common.time_s;  // common_correlation(1) = exp(-1.25)
    return std::sqrt(common.share) * moment * (y > 1e-6 ? y / (learn::exp_portable(std::min(y, 100.0)) - 1) : 1);
}

double Noise::plain(RoleId role, std::int64_t worker_seq) {
    if (!lognormal_) return noise_factor(scenario_, role, worker_seq);
    auto& block = blocks_[static_cast<std::size_t>(role)];
    if (block.first != worker_seq / 4 * 4) {
        block.first = worker_seq / 4 * 4;
        block.factors = lognormal_->four(scenario_.seeds.timing, static_cast<std::uint32_t>(role),
                                         learn::Purpose::noise_compute, static_cast<std::uint64_t>(block.first));
    }
    return block.factors[static_cast<std::size_t>(worker_seq % 4)];
}

}  // namespace rubato::sim
