#!/usr/bin/env bash
# Formats every C++ and CUDA file with clang-format 14, the version that tests/tidy/format_test.py asks for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
find src tests \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    xargs -0 -r clang-format-14 -i
