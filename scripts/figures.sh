#!/usr/bin/env bash
# Makes every figure of README.md and docs/ anew from the scenarios that ship: docs/figures/*.png with their data as
# CSV. Takes three quarters of an hour on two cores; runs that are there already are not repeated.
#
#   scripts/figures.sh            all
#   scripts/figures.sh NAME...    some of: quickstart figure4 figure5 network figure8 tradeoff
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rubato=build/rubato
analysis=(env PYTHONPATH=analysis /usr/bin/python3 -m rubato_analysis)
[[ -x $rubato ]] || { echo "error: build first: ./quickstart" >&2; exit 1; }
out=docs/figures
mkdir -p "$out"

# run NAME SCENARIO ARGUMENT...: into runs/figures/NAME. A run that diverges is a result too.
run() {
    local name=$1 scenario=$2 status=0
    shift 2
    "$rubato" run "scenarios/$scenario" --out "runs/figures/$name" "$@" || status=$?
    [[ $status -eq 0 || $status -eq 3 ]]
}

quickstart() {
    run softsync quickstart.json
    run hardsync quickstart.json --set protocol.name=hardsync
    run async quickstart.json --set protocol.name=async
    "$rubato" plot curves runs/figures/{softsync,hardsync,async} -o "$out/quickstart.png"
}

# Figure 4 of Gupta et al. 2015: staleness of 1-, 2- and 30-softsync with 30 learners.
figure4() {
    for n in 1 2 30; do run "staleness-$n" papers/rudra-staleness.json --set "protocol.n=$n"; done
    "${analysis[@]}" figure4 runs/figures/staleness-{1,2,30} -o "$out/figure4.png"
}

# Figure 5 of the same: the learning rate as it is and divided by n, under 30-softsync; here on Fashion-MNIST.
figure5() {
    run undivided papers/fashion-undivided.json
    run divided papers/fashion-divided.json
    run baseline papers/fashion-baseline.json
    "${analysis[@]}" figure5 runs/figures/{undivided,divided} -o "$out/figure5.png"
}

# The same gradient kernels under ResNet-50's messages and compute times on two networks.
network() {
    for rate in 1Gbps 100Gbps; do
        run "resnet50-$rate" resnet50-network.json --set "name=resnet50 on $rate" \
            --set "cluster.network.star.bandwidth=$rate"
    done
    "$rubato" plot curves --log runs/figures/resnet50-{1Gbps,100Gbps} -o "$out/network-curves.png"
    "$rubato" plot staleness runs/figures/resnet50-{1Gbps,100Gbps} -o "$out/network-staleness.png"
}

# Speed-up as in Figure 8 of Gupta et al. 2015: 140 epochs of the CIFAR-10 grid, timing only.
figure8() {
    "$rubato" sweep scenarios/sweeps/rudra-cifar10.json --out runs/figures/rudra-cifar10
    "$rubato" plot speedup runs/figures/rudra-cifar10 --where workers.batch_size=4,128 -o "$out/figure8.png"
    cp runs/figures/rudra-cifar10/aggregate.csv "$out/figure8-aggregate.csv"
}

# Error against time as in Figures 6 and 7 of the same; here on Fashion-MNIST.
tradeoff() {
    "$rubato" sweep scenarios/sweeps/fashion-tradeoff.json --out runs/figures/fashion-tradeoff
    "$rubato" plot tradeoff runs/figures/fashion-tradeoff --metric test_error -o "$out/tradeoff.png"
    cp runs/figures/fashion-tradeoff/aggregate.csv "$out/tradeoff-aggregate.csv"
}

[[ $# -gt 0 ]] || set -- quickstart figure4 figure5 network figure8 tradeoff
for figure in "$@"; do
    case $figure in
        quickstart | figure4 | figure5 | network | figure8 | tradeoff) "$figure" ;;
        *)
            echo "error: no figure '$figure'; expected quickstart, figure4, figure5, network, figure8 or tradeoff" >&2
            exit 2 ;;
    esac
done
