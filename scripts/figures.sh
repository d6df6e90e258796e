#!/usr/bin/env bash
# Makes every figure of README.md and docs/ anew from the scenarios that ship: docs/figures/*.png with their data as
# CSV. Takes an hour and a quarter on two cores; runs that are there already are not repeated.
#
#   scripts/figures.sh            all
#   scripts/figures.sh NAME...    some of: quickstart figure4 figure5 network figure8 tradeoff figure9 dssp sqrt mpca
#                                 rules
#
# `rules` alone, which only runs when it is named, takes three hours more.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rubato=build/rubato
analysis=(env PYTHONPATH=analysis /usr/bin/python3 -m rubato_analysis)
times=(env PYTHONPATH=analysis /usr/bin/python3 analysis/dssp_times.py)
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

# Error against time as in Figure 9 of the same, and the time to an error, of trees of servers; here on Fashion-MNIST.
figure9() {
    "$rubato" sweep scenarios/sweeps/rudra-figure9.json --out runs/figures/rudra-figure9 --keep
    "$rubato" plot curves runs/figures/rudra-figure9 --metric test_error --log-y -o "$out/figure9.png"
    "$rubato" table runs/figures/rudra-figure9 --value time_to_target_s --value updates_to_target \
        --value samples_to_target --value staleness.mean --value compute_utilization
}

# Times of bsp, asp, ssp and dssp beside those of Zhao et al. 2019; prints the tables of docs/validation.md.
dssp() {
    local name
    for name in table1 alexnet resnet; do
        "$rubato" sweep "scenarios/sweeps/dssp-$name.json" --out "runs/figures/dssp-$name"
    done
    "${times[@]}" table runs/figures/dssp-table1 -o "$out/dssp-table1.png"
    for name in alexnet resnet; do "${times[@]}" order "$name" "runs/figures/dssp-$name"; done
}

# Async, Rennala, Ringmaster and minibatch SGD where worker i takes sqrt(i) seconds, each tuned.
sqrt() {
    "$rubato" sweep scenarios/sweeps/sqrt-times.json --out runs/figures/sqrt-times --keep
    "$rubato" plot curves runs/figures/sqrt-times --metric suboptimality --log-y -o "$out/sqrt-times.png"
    "$rubato" table runs/figures/sqrt-times --value suboptimality --value updates --value gradients.applied \
        --value gradients.dropped
}

# Averaging protocols and async, each tuned, at the messages and step times of ResNet-110 on the cluster of Langer et
# al. 2018; prints tables of docs/validation.md.
mpca() {
    local name phases=(env PYTHONPATH=analysis /usr/bin/python3 analysis/mpca_phases.py)
    for name in mpca-fashion mpca-means; do
        "$rubato" sweep "scenarios/sweeps/$name.json" --out "runs/figures/$name" --keep
    done
    "$rubato" plot curves runs/figures/mpca-fashion --metric test_error --log-y -o "$out/mpca.png"
    "${phases[@]}" errors runs/figures/mpca-fashion
    "${phases[@]}" means runs/figures/mpca-means
}

# Every staleness rule on Fashion-MNIST, each with its learning rate tuned.
rules() {
    local name labels=none,inverse-staleness,polynomial,gap-aware,dc-asgd
    for name in fashion-rules fashion-rules-cnn; do
        "$rubato" sweep "scenarios/sweeps/$name.json" --out "runs/figures/$name" --keep
    done
    labels+=",dc-asgd adaptive (worker),decoupled momentum,hardsync"
    "$rubato" plot curves runs/figures/fashion-rules --x epochs --metric test_error --log-y \
        --where 'workers.slow=i > 20 ? 4 : 1' --where "label=$labels" -o "$out/rules.png"
    "$rubato" plot sensitivity runs/figures/fashion-rules --log-y --where 'workers.slow=i > 20 ? 4 : 1' \
        --where "label=none,inverse-staleness,gap-aware,dc-asgd adaptive (worker),hardsync" -o "$out/rules-rates.png"
    "$rubato" table runs/figures/fashion-rules --rows label --columns workers.slow --value test_error
    "$rubato" table runs/figures/fashion-rules-cnn --value test_error
}

[[ $# -gt 0 ]] || set -- quickstart figure4 figure5 network figure8 tradeoff figure9 dssp sqrt mpca
for figure in "$@"; do
    case $figure in
        quickstart | figure4 | figure5 | network | figure8 | tradeoff | figure9 | dssp | sqrt | mpca | rules)
            "$figure" ;;
        *)
            echo "error: no figure '$figure'; expected quickstart, figure4, figure5, network, figure8, tradeoff," \
                "figure9, dssp, sqrt, mpca or rules" >&2
            exit 2 ;;
    esac
done
