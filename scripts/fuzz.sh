#!/usr/bin/env bash
# Builds the fuzz targets with Clang's libFuzzer and the address and undefined-behaviour sanitizers, and runs each for
# its share of the time on one core at low priority: scenarios, profiles, layer tables, JSON platforms, what is said
# about XML platforms, and the whole reading of altered XML platforms.
#
#   scripts/fuzz.sh [SECONDS]     60 by default
#
# What is found lies in build-fuzz/found. Mend it, and copy the input into tests/fuzz/corpus/TARGET, where the ordinary
# tests replay it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "usage: scripts/fuzz.sh [SECONDS]" >&2; exit 2; }
CLANG=${CLANG:-clang++-14}
MESON=${MESON:-/usr/bin/meson}
command -v "$CLANG" > /dev/null || { echo "fuzz.sh needs $CLANG: apt-get install clang-14" >&2; exit 2; }

if [[ ! -f build-fuzz/build.ninja ]]; then
    CXX="$CLANG" "$MESON" setup build-fuzz -Dfuzz=true -Dtests=false -Dbuildtype=debugoptimized \
        -Db_sanitize=address,undefined -Db_lundef=false
fi
targets=(scenario profile layer_table platform_json platform_xml)
nice -n 19 ninja -C build-fuzz "${targets[@]/#/tests/fuzz/fuzz_}" tests/fuzz/xml_trial rubato-simgrid.so

mkdir -p build-fuzz/found
export ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1"
export LSAN_OPTIONS="suppressions=$PWD/tests/support/lsan.supp:print_suppressions=0"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
export OMP_NUM_THREADS=1
share=$(((seconds + 5) / 6))
status=0
for target in "${targets[@]}"; do
    mkdir -p "build-fuzz/corpus/$target"
    seeds=("tests/fuzz/corpus/$target" platforms tests/sim/data)
    [[ $target == scenario ]] && seeds=("tests/fuzz/corpus/$target" scenarios)
    [[ $target == profile ]] && seeds=("tests/fuzz/corpus/$target")
    [[ $target == layer_table ]] && seeds=("tests/fuzz/corpus/$target" scenarios/models)
    echo "== $target, $share s"
    nice -n 19 "build-fuzz/tests/fuzz/fuzz_$target" -max_total_time="$share" -max_len=4096 -timeout=20 \
        -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 -print_funcs=0 -dict=tests/fuzz/words.dict \
        -artifact_prefix="build-fuzz/found/$target-" "build-fuzz/corpus/$target" "${seeds[@]}" < /dev/null || status=1
done
echo "== altered XML files, $share s"
end=$((SECONDS + share))
for ((seed = RANDOM; SECONDS < end; ++seed)); do
    RUBATO_MODULES=$PWD/build-fuzz nice -n 19 build-fuzz/tests/fuzz/xml_trial 50 "$seed" platforms tests/sim/data \
        tests/fuzz/corpus/platform_xml || { echo "seed $seed" && status=1 && break; }
done
exit $status
