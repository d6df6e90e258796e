#include "learn/onednn_plan.hpp"

#include <omp.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace rubato::learn {
namespace {

using dnnl::memory;
using dnnl::primitive_attr;
using Dims = memory::dims;
using Tag = memory::format_tag;

constexpr int kernel = 5, padding = 2;
constexpr int window = 3, window_stride = 2;

memory::desc floats(const Dims& dims, Tag tag) {
    return {dims, memory::data_type::f32, tag};
}

Dims filter_dims(const StageShape& shape) {
    return {shape.out_channels, shape.in_channels, kernel, kernel};
}

/// How far the last windows of the pool leave the image: rows, columns.
Dims beyond(const StageShape& shape) {
    const auto side = [](int length, int pooled) { return (pooled - 1) * window_stride + window - length; };
    return {side(shape.height, shape.pooled_height), side(shape.width, shape.pooled_width)};
}

/// The library's own scratchpad belongs to the thread that makes a primitive; ours goes where the plan goes.
primitive_attr attributes() {
    primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attr;
}

const dnnl::engine& cpu() {
    static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return engine;
}

}  // namespace

OneDnnThreads::OneDnnThreads(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
}
OneDnnThreads::~OneDnnThreads() {
    omp_set_num_threads(before_);
}

int pooled_side(int side) {
    return side < window ? 1 : (side - window + window_stride - 1) / window_stride + 1;
}

OneDnnPlan::OneDnnPlan(const std::vector<StageShape>& shapes, int images) : engine_(cpu()), stream_(engine_) {
    const StageShape& first = shapes.front();
    const StageShape& last = shapes.back();
    // The handle is the caller's, set before each forward pass.
    input_ = memory(floats({images, first.in_channels, first.height, first.width}, Tag::nchw), engine_, nullptr);
    memories_.push_back(input_);
    memory top = input_;
    stages_.reserve(shapes.size());
    for (const StageShape& shape : shapes) {
        Stage& stage = stages_.emplace_back();
        stage.shape = shape;
        add_convolution(stage, top, images);
        add_pool(stage, images);
        top = stage.pooled;
    }
    const auto feature_desc = floats({images, last.out_channels, last.pooled_height, last.pooled_width}, Tag::nchw);
    features_ = in_format(top, feature_desc, forward_);
    slopes_ = allocate(feature_desc);
    memory slopes = slopes_;
    for (std::size_t s = stages_.size(); s-- > 0;) {
        slopes = add_pool_backward(stages_[s], slopes);
        slopes = add_convolution_backward(stages_[s], slopes, s > 0);
    }
    share_scratchpad();
}

/// One scratchpad for all calls, as large as the greediest wants.
void OneDnnPlan::share_scratchpad() {
    std::vector<Calls*> lists{&forward_};
    for (Stage& stage : stages_) lists.push_back(&stage.backward);
    const auto wanted = [](const Call& call) {
        return memory::desc(
            *dnnl_primitive_desc_query_md(call.primitive.get_primitive_desc(), dnnl_query_scratchpad_md, 0));
    };
    std::size_t bytes = 0;
    for (const Calls* calls : lists)
        for (const Call& call : *calls) bytes = std::max(bytes, wanted(call).get_size());
    if (bytes == 0) return;
    const memory pad = allocate({{static_cast<memory::dim>(bytes)}, memory::data_type::u8, Tag::a});
    for (Calls* calls : lists) {
        for (Call& call : *calls) {
            const memory::desc desc = wanted(call);
            if (desc.get_size() == 0) continue;
            memories_.emplace_back(desc, engine_, pad.get_data_handle());
            call.arguments.push_back({DNNL_ARG_SCRATCHPAD, memories_.back().get()});
        }
    }
}

memory OneDnnPlan::allocate(const memory::desc& desc) {
    memories_.emplace_back(desc, engine_);
    return memories_.back();
}

void OneDnnPlan::append(Calls& calls, const dnnl::primitive& primitive, const Arguments& arguments) {
    Call& call = calls.emplace_back();
    call.primitive = primitive;
    for (const auto& [index, argument] : arguments) {
        memories_.push_back(argument);
        call.arguments.push_back({index, argument.get()});
    }
}

memory OneDnnPlan::in_format(memory from, const memory::desc& desc, Calls& calls) {
    if (from.get_desc() == desc) return from;
    const memory to = allocate(desc);
    const dnnl::reorder::primitive_desc reorder(engine_, from.get_desc(), engine_, desc, attributes());
    append(calls, dnnl::reorder(reorder), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
    return to;
}

void OneDnnPlan::add_convolution(Stage& stage, memory input, int images) {
    const StageShape& shape = stage.shape;
    const auto bias_desc = floats({shape.out_channels}, Tag::x);
    const dnnl::convolution_forward::desc desc(
        dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
        floats({images, shape.in_channels, shape.height, shape.width}, Tag::any), floats(filter_dims(shape), Tag::any),
        bias_desc, floats({images, shape.out_channels, shape.height, shape.width}, Tag::any), Dims{1, 1},
        Dims{padding, padding}, Dims{padding, padding});
    primitive_attr attr = attributes();
    dnnl::post_ops relu;
    relu.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    attr.set_post_ops(relu);
    stage.convolution = dnnl::convolution_forward::primitive_desc(desc, attr, engine_);

    stage.filters = allocate(floats(filter_dims(shape), Tag::oihw));
    stage.biases = allocate(bias_desc);
    stage.filter_slopes = allocate(floats(filter_dims(shape), Tag::oihw));
    stage.bias_slopes = allocate(bias_desc);
    stage.input = in_format(std::move(input), stage.convolution.src_desc(), forward_);
    stage.output = allocate(stage.convolution.dst_desc());
    const memory filters = in_format(stage.filters, stage.convolution.weights_desc(), forward_);
    append(forward_, dnnl::convolution_forward(stage.convolution),
           {{DNNL_ARG_SRC, stage.input},
            {DNNL_ARG_WEIGHTS, filters},
            {DNNL_ARG_BIAS, stage.biases},
            {DNNL_ARG_DST, stage.output}});
}

void OneDnnPlan::add_pool(Stage& stage, int images) {
    const StageShape& shape = stage.shape;
    const dnnl::pooling_forward::desc desc(
        dnnl::prop_kind::forward_training,
        shape.max_pool ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding,
        stage.output.get_desc(),
        floats({images, shape.out_channels, shape.pooled_height, shape.pooled_width}, Tag::any),
        Dims{window_stride, window_stride}, Dims{window, window}, Dims{0, 0}, beyond(shape));
    stage.pool = dnnl::pooling_forward::primitive_desc(desc, attributes(), engine_);
    stage.pooled = allocate(stage.pool.dst_desc());
    Arguments arguments = {{DNNL_ARG_SRC, stage.output}, {DNNL_ARG_DST, stage.pooled}};
    if (shape.max_pool) {
        stage.pool_workspace = allocate(stage.pool.workspace_desc());
        arguments.emplace_back(DNNL_ARG_WORKSPACE, stage.pool_workspace);
    }
    append(forward_, dnnl::pooling_forward(stage.pool), arguments);
}

void OneDnnPlan::append_relu_slope(Stage& stage, const memory& output, const memory& slopes) {
    const auto algorithm = dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
    const dnnl::eltwise_forward::desc hint(dnnl::prop_kind::forward_training, algorithm, output.get_desc(), 0);
    const dnnl::eltwise_forward::primitive_desc hint_desc(hint, engine_);
    const dnnl::eltwise_backward::desc desc(algorithm, output.get_desc(), output.get_desc(), 0);
    const dnnl::eltwise_backward::primitive_desc relu(desc, attributes(), engine_, hint_desc);
    append(stage.backward, dnnl::eltwise_backward(relu),
           {{DNNL_ARG_DST, output}, {DNNL_ARG_DIFF_DST, slopes}, {DNNL_ARG_DIFF_SRC, slopes}});
}

/// From the gradient of the pooled output to that of the convolution before its ReLU.
memory OneDnnPlan::add_pool_backward(Stage& stage, memory slopes) {
    const StageShape& shape = stage.shape;
    slopes = in_format(std::move(slopes), stage.pooled.get_desc(), stage.backward);
    // ReLU and maximum commute, and there are four times fewer values after the pool.
    if (shape.max_pool) append_relu_slope(stage, stage.pooled, slopes);
    const dnnl::pooling_backward::desc desc(
        shape.max_pool ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding,
        stage.output.get_desc(), stage.pooled.get_desc(), Dims{window_stride, window_stride}, Dims{window, window},
        Dims{0, 0}, beyond(shape));
    const dnnl::pooling_backward::primitive_desc pool(desc, attributes(), engine_, stage.pool);
    const memory out = allocate(stage.output.get_desc());
    Arguments arguments = {{DNNL_ARG_DIFF_DST, slopes}, {DNNL_ARG_DIFF_SRC, out}};
    if (shape.max_pool) arguments.emplace_back(DNNL_ARG_WORKSPACE, stage.pool_workspace);
    append(stage.backward, dnnl::pooling_backward(pool), arguments);
    if (!shape.max_pool) append_relu_slope(stage, stage.output, out);
    return out;
}

memory OneDnnPlan::add_convolution_backward(Stage& stage, const memory& slopes, bool want_input_slopes) {
    const auto any = [](const memory& m) {
        return memory::desc(m.get_desc().dims(), memory::data_type::f32, Tag::any);
    };
    Calls& calls = stage.backward;
    const Dims strides{1, 1}, pads{padding, padding};
    const dnnl::convolution_backward_weights::desc weights_desc(dnnl::algorithm::convolution_direct, any(stage.input),
                                                                any(stage.filters), stage.biases.get_desc(),
                                                                any(stage.output), strides, pads, pads);
    const dnnl::convolution_backward_weights::primitive_desc weights(weights_desc, attributes(), engine_,
                                                                     stage.convolution);
    const memory blocked = weights.diff_weights_desc() == stage.filter_slopes.get_desc()
                               ? stage.filter_slopes
                               : allocate(weights.diff_weights_desc());
    append(calls, dnnl::convolution_backward_weights(weights),
           {{DNNL_ARG_SRC, in_format(stage.input, weights.src_desc(), calls)},
            {DNNL_ARG_DIFF_DST, in_format(slopes, weights.diff_dst_desc(), calls)},
            {DNNL_ARG_DIFF_WEIGHTS, blocked},
            {DNNL_ARG_DIFF_BIAS, stage.bias_slopes}});
    if (blocked != stage.filter_slopes) {
        const dnnl::reorder::primitive_desc reorder(engine_, blocked.get_desc(), engine_,
                                                    stage.filter_slopes.get_desc(), attributes());
        append(calls, dnnl::reorder(reorder), {{DNNL_ARG_FROM, blocked}, {DNNL_ARG_TO, stage.filter_slopes}});
    }
    if (!want_input_slopes) return {};

    const dnnl::convolution_backward_data::desc data_desc(dnnl::algorithm::convolution_direct, any(stage.input),
                                                          any(stage.filters), any(stage.output), strides, pads, pads);
    const dnnl::convolution_backward_data::primitive_desc data(data_desc, attributes(), engine_, stage.convolution);
    const memory out = allocate(data.diff_src_desc());
    append(calls, dnnl::convolution_backward_data(data),
           {{DNNL_ARG_DIFF_DST, in_format(slopes, data.diff_dst_desc(), calls)},
            {DNNL_ARG_WEIGHTS, in_format(stage.filters, data.weights_desc(), calls)},
            {DNNL_ARG_DIFF_SRC, out}});
    return out;
}

void OneDnnPlan::run(const Calls& calls) {
    for (const Call& call : calls) {
        dnnl::error::wrap_c_api(dnnl_primitive_execute(call.primitive.get(), stream_.get(),
                                                       static_cast<int>(call.arguments.size()), call.arguments.data()),
                                "could not run a oneDNN primitive");
    }
}

const float* OneDnnPlan::forward(const float* weights, const float* input) {
    input_.set_data_handle(const_cast<float*>(input));  // only ever read
    for (Stage& stage : stages_) {
        std::memcpy(stage.filters.get_data_handle(), weights + stage.shape.weights,
                    stage.filters.get_desc().get_size());
        std::memcpy(stage.biases.get_data_handle(), weights + stage.shape.biases, stage.biases.get_desc().get_size());
    }
    run(forward_);
    return static_cast<const float*>(features_.get_data_handle());
}

void OneDnnPlan::backward(float* gradient, bool add, const std::function<void(std::int64_t)>& done) {
    const auto put = [&](const memory& from, std::int64_t first) {
        const auto* values = static_cast<const float*>(from.get_data_handle());
        const auto count = static_cast<std::int64_t>(from.get_desc().get_size() / sizeof(float));
        float* to = gradient + first;
        if (add) {
            for (std::int64_t i = 0; i < count; i++) to[i] += values[i];
        } else {
            std::copy_n(values, count, to);
        }
    };
    for (std::size_t s = stages_.size(); s-- > 0;) {
        const Stage& stage = stages_[s];
        run(stage.backward);
        put(stage.filter_slopes, stage.shape.weights);
        put(stage.bias_slopes, stage.shape.biases);
        if (s > 0) done(stage.shape.weights);
    }
}

}  // namespace rubato::learn
