// The gradient of the convolutional network against the bare oneDNN primitives of its layers, each timed alone in the
// memory formats that it likes best. One JSON object a line.
#include "learn/network.hpp"
#include "learn/onednn_plan.hpp"

#include <dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

using namespace rubato;
using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;

namespace {

constexpr int images = 32;

double seconds_of(const std::function<void()>& call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// A primitive with memory of its own for each argument.
class Bare {
public:
    Bare(const dnnl::engine& engine, const dnnl::primitive& primitive,
         const std::vector<std::pair<int, memory::desc>>& descs)
        : primitive_(primitive), stream_(engine) {
        for (const auto& [argument, desc] : descs) {
            memory place(desc, engine);
            std::fill_n(static_cast<char*>(place.get_data_handle()), desc.get_size(), 0);
            arguments_.emplace(argument, place);
        }
    }
    void operator()() {
        primitive_.execute(stream_, arguments_);
        stream_.wait();
    }

private:
    dnnl::primitive primitive_;
    dnnl::stream stream_;
    std::unordered_map<int, memory> arguments_;
};

memory::desc any(const Dims& dims) {
    return {dims, memory::data_type::f32, Tag::any};
}

memory::desc vector_of(memory::dim size) {
    return {{size}, memory::data_type::f32, Tag::x};
}

/// Convolution 5x5 with padding 2, ReLU and a 3x3 pool of stride 2 that rounds up: forward and backward.
void add_stage(std::vector<Bare>& all, const dnnl::engine& engine, int in, int out, int side, bool max_pool,
               bool first) {
    const Dims source{images, in, side, side}, filters{out, in, 5, 5}, target{images, out, side, side};
    const Dims strides{1, 1}, pads{2, 2};
    const auto direct = dnnl::algorithm::convolution_direct;
    dnnl::post_ops relu;
    relu.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    dnnl::primitive_attr fused;
    fused.set_post_ops(relu);
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, direct, any(source), any(filters), vector_of(out), any(target), strides,
         pads, pads},
        fused, engine);
    all.emplace_back(engine, dnnl::convolution_forward(forward),
                     std::vector<std::pair<int, memory::desc>>{{DNNL_ARG_SRC, forward.src_desc()},
                                                               {DNNL_ARG_WEIGHTS, forward.weights_desc()},
                                                               {DNNL_ARG_BIAS, vector_of(out)},
                                                               {DNNL_ARG_DST, forward.dst_desc()}});
    const int pooled = learn::pooled_side(side);
    const Dims beyond{(pooled - 1) * 2 + 3 - side, (pooled - 1) * 2 + 3 - side};
    const auto kind = max_pool ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
    const Dims stride{2, 2}, window{3, 3}, none{0, 0};
    const dnnl::pooling_forward::primitive_desc pool({dnnl::prop_kind::forward_training, kind, forward.dst_desc(),
                                                      any({images, out, pooled, pooled}), stride, window, none, beyond},
                                                     engine);
    std::vector<std::pair<int, memory::desc>> pool_arguments{{DNNL_ARG_SRC, forward.dst_desc()},
                                                             {DNNL_ARG_DST, pool.dst_desc()}};
    if (max_pool) pool_arguments.emplace_back(DNNL_ARG_WORKSPACE, pool.workspace_desc());
    all.emplace_back(engine, dnnl::pooling_forward(pool), pool_arguments);
    const dnnl::pooling_backward::primitive_desc pool_back(
        {kind, forward.dst_desc(), pool.dst_desc(), stride, window, none, beyond}, engine, pool);
    std::vector<std::pair<int, memory::desc>> back_arguments{{DNNL_ARG_DIFF_SRC, forward.dst_desc()},
                                                             {DNNL_ARG_DIFF_DST, pool.dst_desc()}};
    if (max_pool) back_arguments.emplace_back(DNNL_ARG_WORKSPACE, pool.workspace_desc());
    all.emplace_back(engine, dnnl::pooling_backward(pool_back), back_arguments);

    // Before the maximum or after it is the same; after it there are fewer values.
    const memory::desc active = max_pool ? pool.dst_desc() : forward.dst_desc();
    const auto relu_slope = dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
    const dnnl::eltwise_forward::primitive_desc hint({dnnl::prop_kind::forward_training, relu_slope, active, 0},
                                                     engine);
    const dnnl::eltwise_backward::primitive_desc relu_back({relu_slope, active, active, 0}, engine, hint);
    all.emplace_back(engine, dnnl::eltwise_backward(relu_back),
                     std::vector<std::pair<int, memory::desc>>{
                         {DNNL_ARG_DST, active}, {DNNL_ARG_DIFF_DST, active}, {DNNL_ARG_DIFF_SRC, active}});
    const dnnl::convolution_backward_weights::primitive_desc weights(
        {direct, any(source), any(filters), vector_of(out), any(target), strides, pads, pads}, engine, forward);
    all.emplace_back(engine, dnnl::convolution_backward_weights(weights),
                     std::vector<std::pair<int, memory::desc>>{{DNNL_ARG_SRC, weights.src_desc()},
                                                               {DNNL_ARG_DIFF_DST, weights.diff_dst_desc()},
                                                               {DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc()},
                                                               {DNNL_ARG_DIFF_BIAS, vector_of(out)}});
    if (first) return;  // nobody needs the gradient of the images
    const dnnl::convolution_backward_data::primitive_desc data(
        {direct, any(source), any(filters), any(target), strides, pads, pads}, engine, forward);
    all.emplace_back(engine, dnnl::convolution_backward_data(data),
                     std::vector<std::pair<int, memory::desc>>{{DNNL_ARG_DIFF_DST, data.diff_dst_desc()},
                                                               {DNNL_ARG_WEIGHTS, data.weights_desc()},
                                                               {DNNL_ARG_DIFF_SRC, data.diff_src_desc()}});
}

/// The fully connected layer, whose products the network computes with Eigen.
void add_inner(std::vector<Bare>& all, const dnnl::engine& engine, int features, int classes) {
    const Dims source{images, features}, filters{classes, features}, target{images, classes};
    const dnnl::inner_product_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, any(source), any(filters), vector_of(classes), any(target)}, engine);
    all.emplace_back(engine, dnnl::inner_product_forward(forward),
                     std::vector<std::pair<int, memory::desc>>{{DNNL_ARG_SRC, forward.src_desc()},
                                                               {DNNL_ARG_WEIGHTS, forward.weights_desc()},
                                                               {DNNL_ARG_BIAS, vector_of(classes)},
                                                               {DNNL_ARG_DST, forward.dst_desc()}});
    const dnnl::inner_product_backward_weights::primitive_desc weights(
        {any(source), any(filters), vector_of(classes), any(target)}, engine, forward);
    all.emplace_back(engine, dnnl::inner_product_backward_weights(weights),
                     std::vector<std::pair<int, memory::desc>>{{DNNL_ARG_SRC, weights.src_desc()},
                                                               {DNNL_ARG_DIFF_DST, weights.diff_dst_desc()},
                                                               {DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc()},
                                                               {DNNL_ARG_DIFF_BIAS, vector_of(classes)}});
    const dnnl::inner_product_backward_data::primitive_desc data({any(source), any(filters), any(target)}, engine,
                                                                 forward);
    all.emplace_back(engine, dnnl::inner_product_backward_data(data),
                     std::vector<std::pair<int, memory::desc>>{{DNNL_ARG_DIFF_DST, data.diff_dst_desc()},
                                                               {DNNL_ARG_WEIGHTS, data.weights_desc()},
                                                               {DNNL_ARG_DIFF_SRC, data.diff_src_desc()}});
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 60;
    const learn::OneDnnThreads one(1);
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    std::vector<Bare> bare;
    add_stage(bare, engine, 3, 32, 32, true, true);
    add_stage(bare, engine, 32, 32, 16, false, false);
    add_stage(bare, engine, 32, 64, 8, false, false);
    add_inner(bare, engine, 64 * 4 * 4, 10);

    const auto network = learn::make_cnn({32, 32, 3}, 10, 1);
    const auto scratch = network->scratch();
    std::vector<float> weights(static_cast<std::size_t>(network->parameters())), gradient(weights.size());
    network->initialize(weights, 1);
    std::vector<float> pixels(std::size_t{images} * 3 * 32 * 32);
    for (std::size_t i = 0; i < pixels.size(); ++i)
        pixels[i] = static_cast<float>(i * 2654435761u % 1000) / 1000 - 0.5f;
    std::vector<std::uint8_t> labels(images);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint8_t>(i % 10);

    // Alternating, so that a machine that changes its speed does so for both; the fastest of each counts.
    std::vector<double> fastest(bare.size(), 1e9);
    double whole = 1e9;
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < bare.size(); ++i) fastest[i] = std::min(fastest[i], seconds_of(std::ref(bare[i])));
        whole = std::min(whole, seconds_of([&] {
                             network->gradient(weights.data(), pixels.data(), labels.data(), images, gradient.data(),
                                               *scratch);
                         }));
    }
    double sum = 0;
    for (const double seconds : fastest) sum += seconds;
    std::printf(
        "{\"name\": \"cnn gradient / bare oneDNN primitives\", \"value\": %.3f, \"target\": \"<= 1.3\", "
        "\"detail\": \"%.3f ms against %.3f ms, 32 images of 3 x 32 x 32, one thread\"}\n",
        whole / sum, whole * 1e3, sum * 1e3);
    return 0;
}
