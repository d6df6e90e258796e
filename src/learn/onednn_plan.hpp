// Forward and backward pass of the convolutional stack for one number of images, as lists of oneDNN primitives.
// Private to src/learn: includes dnnl.hpp.
#pragma once

#include <dnnl.hpp>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace rubato::learn {

/// Has oneDNN (OpenMP) use `threads` threads in calls of this thread, and restores what was set before.
class OneDnnThreads {
public:
    explicit OneDnnThreads(int threads);
    ~OneDnnThreads();
    OneDnnThreads(const OneDnnThreads&) = delete;
    OneDnnThreads& operator=(const OneDnnThreads&) = delete;

private:
    int before_;
};

/// One convolution (5x5, pad 2) with ReLU and the 3x3 pool of stride 2 after it.
struct StageShape {
    int in_channels, height, width;  ///< of the input, and of the convolution's output
    int out_channels;
    bool max_pool;                    ///< else average over the pixels inside the image
    int pooled_height, pooled_width;  ///< sizes rounded up, as in Caffe
    std::int64_t weights, biases;     ///< first elements in the flat vector: [out][in][5][5], [out]
};

/// Length of one side after a pool of 3 with stride 2 that rounds up (Caffe, pooling_layer.cpp).
int pooled_side(int side);

/// Owns the activations of `images` images. Not shared between threads; made and run under OneDnnThreads.
class OneDnnPlan {
public:
    OneDnnPlan(const std::vector<StageShape>& stages, int images);

    /// input: [images][channels][height][width]. Returns the features, [images][channels][row][column], own memory.
    const float* forward(const float* weights, const float* input);

    /// Gradient of the feature, to be filled in before `backward`; same shape.
    float* feature_slopes() { return static_cast<float*>(slopes_.get_data_handle()); }

    /// Gradients of the stages' weights and biases to the last `forward`: written (add false) or added to `gradient`.
    /// done(first): elements of the gradient from `first` on do not change any more; the last stage is done with the
    /// call.
    void backward(float* gradient, bool add, const std::function<void(std::int64_t)>& done);

private:
    struct Call {
        dnnl::primitive primitive;
        std::vector<dnnl_exec_arg_t> arguments;
    };
    using Calls = std::vector<Call>;
    using Arguments = std::vector<std::pair<int, dnnl::memory>>;
    /// What the backward pass of a stage needs of its forward pass.
    struct Stage {
        StageShape shape;
        dnnl::convolution_forward::primitive_desc convolution;
        dnnl::pooling_forward::primitive_desc pool;
        dnnl::memory input, output, pooled, pool_workspace;
        dnnl::memory filters, biases;  ///< filters: [out][in][5][5]
        dnnl::memory filter_slopes, bias_slopes;
        Calls backward;
    };

    dnnl::memory allocate(const dnnl::memory::desc& desc);
    dnnl::memory in_format(dnnl::memory from, const dnnl::memory::desc& desc, Calls& calls);
    void append(Calls& calls, const dnnl::primitive& primitive, const Arguments& arguments);
    void append_relu_slope(Stage& stage, const dnnl::memory& output, const dnnl::memory& slopes);
    void add_convolution(Stage& stage, dnnl::memory input, int images);
    void add_pool(Stage& stage, int images);
    dnnl::memory add_pool_backward(Stage& stage, dnnl::memory slopes);
    dnnl::memory add_convolution_backward(Stage& stage, const dnnl::memory& slopes, bool want_input_slopes);
    void share_scratchpad();
    void run(const Calls& calls);

    dnnl::engine engine_;
    dnnl::stream stream_;
    std::vector<dnnl::memory> memories_;  ///< keeps alive what the arguments of calls point to
    std::vector<Stage> stages_;
    dnnl::memory input_, features_, slopes_;
    Calls forward_;
};

}  // namespace rubato::learn
