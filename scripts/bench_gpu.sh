#!/usr/bin/env bash
# `make bench-gpu`: what make test-gpu builds, and the figures that need a GPU as one table, each beside its goal. Nothing is
# written into docs/. Needs a machine that does nothing else; torch for the training steps.
#   scripts/bench_gpu.sh [OPTION...]     of tests/bench/gpu/train_step.py
set -euo pipefail
cd "$(dirname "$0")/.."
unset HEADRACE_LIBCUDA HEADRACE_LIBNCCL  # no stand-ins
cmake --preset gpu >&2
cmake --build --preset gpu -j "$(nproc)" --target all device_copy_bench >&2
python=$(sed -n 's/^HEADRACE_PYTHON_EXECUTABLE:INTERNAL=//p' build/gpu/CMakeCache.txt)
"${python:-python3}" tests/bench/gpu/table.py build/gpu "$@"
