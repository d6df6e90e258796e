#!/usr/bin/python3
"""Writes the layer tables under scenarios/models from descriptions of the networks.

    analysis/layer_tables.py            writes all of them
    analysis/layer_tables.py --check    exit status 1, with the first file, where one is out of date
    analysis/layer_tables.py --sums     a row a network: layers, parameters, multiply-adds, seconds

A description gives shapes; parameters and multiply-adds (MACs) of a sample follow from them. Seconds are
2 * MACs * batch / RATE forward and twice that backward (the gradient of the input and that of the weights), once where
nothing before the layer has parameters, so that nobody needs the gradient of its input. Weights and biases of a layer
stand together, and so does its batch normalization, with a scale and a shift a channel. Layers without parameters
(activations, pooling, local response normalization, dropout) are part of the layer before.
"""

import json
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path

MODELS = Path(__file__).resolve().parent.parent / "scenarios/models"

# An assumption, not a measurement: what a device of the Pascal generation sustains in float32.
PEAK = 10.6e12
FRACTION = 0.5
RATE = PEAK * FRACTION
ASSUMPTION = (
    f"flops_per_s is an assumption, not a measurement: {FRACTION:g} of the {PEAK / 1e12:.1f} TFLOP/s that NVIDIA "
    "gives as the float32 peak of a P100 (SXM2), for every layer alike. Convolutions by Winograd's or FFT algorithms "
    "may be faster; layers that memory bounds, and small ones, for which launching kernels takes longer than "
    "computing, are slower. All seconds scale with it: for another device multiply them, or measure.")
RULE = (
    "Parameters and multiply-adds (MACs) of a sample follow from the shapes in analysis/layer_tables.py. forward_s = "
    "2 * MACs * batch_size / flops_per_s; backward_s is twice that, for the gradients of the input and of the "
    "weights, and once for the first layer, whose input needs none. Weights and biases of a layer stand together{bn}; "
    "activations, pooling and the like are part of the layer before.")


@dataclass
class Layer:
    """One layer of a network."""

    name: str
    parameters: int
    macs: int  # of one sample, forward


@dataclass
class Network:
    """A network that is described from input to output; `side` and `channels` are those of the data so far."""

    name: str
    source: str
    batch_size: int
    side: int
    channels: int
    notes: str = ""
    bias: bool = True  # of convolutions
    norm: bool = False  # batch normalization behind each convolution
    layers: list[Layer] = field(default_factory=list)

    def convolution(self, name: str, out: int, kernel: int, stride: int = 1, *, pad: int | None = None,
                    groups: int = 1, source: tuple[int, int] | None = None) -> None:
        """A square one; pad: (kernel - 1) / 2 by default. source: (side, channels) of an input that is not the last
        output, which stays the last output then."""
        side, channels = source or (self.side, self.channels)
        pad = (kernel - 1) // 2 if pad is None else pad
        after = (side + 2 * pad - kernel) // stride + 1
        weights = kernel * kernel * (channels // groups) * out
        self.layers.append(Layer(name, weights + self.bias * out + 2 * self.norm * out, weights * after * after))
        if source is None:
            self.side, self.channels = after, out

    def pool(self, kernel: int, stride: int, pad: int = 0) -> None:
        """Rounded up, as Caffe does."""
        self.side = math.ceil((self.side + 2 * pad - kernel) / stride) + 1

    def dense(self, name: str, out: int) -> None:
        """Fully connected, with biases."""
        into = self.side * self.side * self.channels
        self.layers.append(Layer(name, into * out + out, into * out))
        self.side, self.channels = 1, out


def alexnet() -> Network:
    """Caffe's bvlc_alexnet: Krizhevsky's network with its two groups, on one device."""
    net = Network("alexnet", "Krizhevsky, Sutskever, Hinton 2012, as Caffe's bvlc_alexnet", 256, 227, 3)
    net.convolution("conv1", 96, 11, 4, pad=0)
    net.pool(3, 2)
    net.convolution("conv2", 256, 5, groups=2)
    net.pool(3, 2)
    net.convolution("conv3", 384, 3)
    net.convolution("conv4", 384, 3, groups=2)
    net.convolution("conv5", 256, 3, groups=2)
    net.pool(3, 2)
    for name, out in (("fc6", 4096), ("fc7", 4096), ("fc8", 1000)):
        net.dense(name, out)
    return net


def vgg_a() -> Network:
    """Configuration A of table 1."""
    net = Network("vgg-a", "Simonyan, Zisserman 2015, table 1, configuration A", 256, 224, 3)
    for block, channels in enumerate(((64,), (128,), (256, 256), (512, 512), (512, 512)), 1):
        for place, out in enumerate(channels, 1):
            net.convolution(f"conv{block}_{place}", out, 3)
        net.pool(2, 2)
    for name, out in (("fc6", 4096), ("fc7", 4096), ("fc8", 1000)):
        net.dense(name, out)
    return net


# Of table 1: 1x1, reduction before 3x3, 3x3, reduction before 5x5, 5x5, projection behind the pooling.
INCEPTIONS = {
    "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64), "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128),
}  # fmt: skip


def googlenet() -> Network:
    """Caffe's bvlc_googlenet without the two auxiliary classifiers."""
    net = Network("googlenet", "Szegedy et al. 2015, table 1, as Caffe's bvlc_googlenet", 32, 224, 3,
                  "The two auxiliary classifiers are left out. Daily, Vishnu, Siegel 2016 speak of 4 million "
                  "parameters; the layers of the published network have 6,998,552.")
    net.convolution("conv1", 64, 7, 2)
    net.pool(3, 2)
    net.convolution("conv2_reduce", 64, 1)
    net.convolution("conv2", 192, 3)
    net.pool(3, 2)
    for name, (one, reduce3, three, reduce5, five, projection) in INCEPTIONS.items():
        place = (net.side, net.channels)
        inner = f"inception_{name}_"
        net.convolution(inner + "1x1", one, 1, source=place)
        net.convolution(inner + "3x3_reduce", reduce3, 1, source=place)
        net.convolution(inner + "3x3", three, 3, source=(place[0], reduce3))
        net.convolution(inner + "5x5_reduce", reduce5, 1, source=place)
        net.convolution(inner + "5x5", five, 5, source=(place[0], reduce5))
        net.convolution(inner + "pool_proj", projection, 1, source=place)
        net.channels = one + three + five + projection
        if name in ("3b", "4e"):
            net.pool(3, 2)
    net.side = 1  # the mean over the last 7 x 7
    net.dense("classifier", 1000)
    return net


def resnet(name: str, blocks: tuple[int, ...], bottleneck: bool) -> Network:
    """For ImageNet; projections where shapes change (option B)."""
    shape = ("bottleneck blocks, with the stride in the 3x3 convolution, as most implementations have it; the paper's "
             "own, in the 1x1 before, takes fewer multiply-adds") if bottleneck else "basic blocks"
    column = f"the {name.removeprefix('resnet')}-layer column"
    net = Network(name, f"He, Zhang, Ren, Sun 2016, table 1, {column}", 256, 224, 3,
                  f"Of {shape}; shortcuts are projections where the shape changes (option B).", bias=False, norm=True)
    net.convolution("conv1", 64, 7, 2)
    net.side = 56  # max pooling 3x3, stride 2
    for stage, (count, middle) in enumerate(zip(blocks, (64, 128, 256, 512)), 2):
        for block in range(1, count + 1):
            place, stride = (net.side, net.channels), 2 if stage > 2 and block == 1 else 1
            prefix = f"conv{stage}_{block}_"
            if bottleneck:
                net.convolution(prefix + "a", middle, 1)
                net.convolution(prefix + "b", middle, 3, stride)
                net.convolution(prefix + "c", 4 * middle, 1)
            else:
                net.convolution(prefix + "a", middle, 3, stride)
                net.convolution(prefix + "b", middle, 3)
            if place != (net.side, net.channels):
                net.convolution(prefix + "shortcut", net.channels, 1, stride, source=place)
    net.side = 1
    net.dense("fc", 1000)
    return net


def resnet110() -> Network:
    """For CIFAR-10; shortcuts without parameters (option A)."""
    net = Network("resnet110", "He, Zhang, Ren, Sun 2016, section 4.2, n = 18", 128, 32, 3,
                  "For CIFAR-10; shortcuts have no parameters (option A).", bias=False, norm=True)
    net.convolution("conv1", 16, 3)
    for stage, channels in enumerate((16, 32, 64), 2):
        for block in range(1, 19):
            net.convolution(f"conv{stage}_{block}_a", channels, 3, 2 if stage > 2 and block == 1 else 1)
            net.convolution(f"conv{stage}_{block}_b", channels, 3)
    net.side = 1
    net.dense("fc", 10)
    return net


def cifar10_full() -> Network:
    """Krizhevsky's cuda-convnet layers-18pct."""
    net = Network("cifar10-full", "Caffe's examples/cifar10/cifar10_full_train_test.prototxt", 100, 32, 3)
    for name, out in (("conv1", 32), ("conv2", 32), ("conv3", 64)):
        net.convolution(name, out, 5)
        net.pool(3, 2)
    net.dense("ip1", 10)
    return net


def nlc_cnn() -> Network:
    """A text classifier of the size that GaDei's paper gives for its workload Joule."""
    words, embedding, vocabulary, hidden, filters, width, labels = 20, 100, 11_900, 200, 1000, 2, 311
    net = Network(
        "nlc-cnn", "Zhang et al. 2016 (GaDei), tables 4 and 5, workload Joule; Feng et al. 2015 for shapes", 32, 1, 1,
        f"The paper gives the size of the model, 7.69 MB, and its {labels} labels, but no layers. Those here are an "
        f"assumption: a text CNN as in Feng et al. 2015, which shares authors with it (embedding of {embedding}, "
        f"hidden layer of {hidden}, {filters} filters over {width} words, softmax), for questions of {words} words; "
        f"the vocabulary of {vocabulary:,} words is what is then left of 7.69 MB. The embedding is looked up, which "
        "takes no multiply-adds. Other workloads of the paper differ in labels and vocabulary.")
    net.layers = [
        Layer("embedding", vocabulary * embedding, 0),
        Layer("hidden", embedding * hidden + hidden, words * embedding * hidden),
        Layer("convolution", width * hidden * filters + filters, words * width * hidden * filters),
        Layer("output", filters * labels + labels, filters * labels),
    ]
    return net


def networks() -> list[Network]:
    """All of them."""
    return [
        alexnet(), googlenet(), vgg_a(), resnet("resnet34", (3, 4, 6, 3), False),
        resnet("resnet50", (3, 4, 6, 3), True), resnet110(), resnet("resnet152", (3, 8, 36, 3), True), cifar10_full(),
        nlc_cnn(),
    ]  # fmt: skip


def seconds(flops: float) -> float:
    """Six digits, so that the last ones of the arithmetic do not show."""
    return float(f"{flops / RATE:.6g}")


def table(net: Network) -> dict:
    """What stands in the file."""
    rows = []
    for index, layer in enumerate(net.layers):
        forward = 2.0 * layer.macs * net.batch_size
        rows.append({"name": layer.name, "parameters": layer.parameters, "forward_s": seconds(forward),
                     "backward_s": seconds(forward if index == 0 else 2 * forward)})
    rule = RULE.format(bn=", and so does its batch normalization" if net.norm else "")
    return {"$schema": "../../src/cli/layer_table.schema.json", "name": net.name, "source": net.source,
            "derivation": f"{rule} {net.notes}".strip(), "assumption": ASSUMPTION, "flops_per_s": RATE,
            "batch_size": net.batch_size, "layers": rows}


def text(content: dict) -> str:
    """JSON with a line a layer."""
    head = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}," for key, value in content.items()
            if key != "layers"]
    rows = ",\n".join("    " + json.dumps(row) for row in content["layers"])
    return "{\n" + "\n".join(head) + '\n  "layers": [\n' + rows + "\n  ]\n}\n"


def main(arguments: list[str]) -> int:
    """Exit status."""
    if arguments == ["--sums"]:
        for net in networks():
            rows = table(net)["layers"]
            forward, backward = (sum(row[key] for row in rows) for key in ("forward_s", "backward_s"))
            print(f"{net.name:<14}{len(rows):>4} layers {sum(row['parameters'] for row in rows):>12,} parameters "
                  f"{sum(layer.macs for layer in net.layers) / 1e6:>10,.1f} M MACs a sample "
                  f"{forward:.6f} s forward {backward:.6f} s backward a batch of {net.batch_size}")
        return 0
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    for net in networks():
        path = MODELS / f"{net.name}.json"
        if not arguments:
            path.write_text(text(table(net)), encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text(table(net)):
            print(f"{path}: out of date; run analysis/layer_tables.py")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
