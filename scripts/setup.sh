# Sourced by ./quickstart and ./check: packages, configuration and build. Defines functions and does nothing by itself.
# shellcheck shell=bash

# The system's meson and python3 come before anything that a version manager may have put in front of them: the
# Python parts need the packages of the system's interpreter.
export PATH="/usr/local/bin:/usr/bin:/bin:$PATH"
MESON=/usr/bin/meson
PYTHON=/usr/bin/python3

# shellcheck disable=SC2034  # for the scripts that source this file
PACKAGES=(g++ meson ninja-build pkg-config git
    libsimgrid-dev libopenmpi-dev openmpi-bin libeigen3-dev libdnnl-dev nlohmann-json3-dev libfmt-dev doctest-dev
    libcli11-dev libmuparser-dev librandom123-dev librapidcheck-dev libspdlog-dev zlib1g-dev
    python3 python3-matplotlib python3-pandas python3-jsonschema dataset-fashion-mnist)

say() { printf '\n== %s\n' "$*"; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}
die_of_usage() {
    printf 'error: %s\n' "$*" >&2
    exit 2
}

# Installs those of the packages "$@" that are missing. Where none is, it needs neither apt, nor root, nor a network.
ensure_packages() {
    local package missing=() as_root=()
    command -v dpkg-query >/dev/null || die "dpkg-query not found; install by hand: $*"
    for package in "$@"; do
        # shellcheck disable=SC2016  # the format is dpkg-query's, not the shell's
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
    done
    [[ ${#missing[@]} -eq 0 ]] && return
    say "Installing ${missing[*]}"
    command -v apt-get >/dev/null || die "apt-get not found; these packages are missing: ${missing[*]}"
    if [[ $EUID -ne 0 ]]; then
        command -v sudo >/dev/null || die "neither root nor sudo; install these packages first: ${missing[*]}"
        as_root=(sudo)
    fi
    local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get)
    "${install[@]}" update || die "apt-get update failed; these packages are missing: ${missing[*]}"
    "${install[@]}" install -y --no-install-recommends "${missing[@]}" ||
        die "apt-get could not install: ${missing[*]}"
}

# configure DIRECTORY OPTION...: meson setup, or a change of the options where the directory is configured already.
configure() {
    local directory=$1
    shift
    if [[ -f $directory/build.ninja ]]; then
        "$MESON" configure "$directory" "$@"
    else
        rm -rf "$directory"  # what an interrupted setup left
        "$MESON" setup "$directory" "$@"
    fi
}

# The release build that ./quickstart and ./check share. Warnings are errors only with the compiler that the project
# is developed with: others have other warnings, which must not keep a user from building.
configure_release() {
    local werror=false
    [[ $("${CXX:-c++}" -dumpversion 2>/dev/null) == 12* ]] && werror=true
    configure build -Dbuildtype=release -Dwerror="$werror"
}

# What a user needs, without the tests: the program and its modules.
build_program() {
    local targets
    targets=$("$PYTHON" scripts/targets.py program build)
    # shellcheck disable=SC2086  # one word a target
    ninja -C build $targets
}
