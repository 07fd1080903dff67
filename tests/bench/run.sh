#!/usr/bin/env bash
# Builds and runs the benchmarks: one line a figure, with its ratio to something of this machine in the same run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cmake --build --preset release --target client_next_bench ring_loader headrace_python_native object_store_bench
echo "== memory of a loader that cuts for 1 to 64 replicas"
/usr/bin/python3 tests/bench/rebatch_memory.py
echo "== next() in C"
build/release/bench/client_next_bench
echo "== next() in Python"
# Debian's Python: its numpy is the one that setup installs.
HEADRACE_RING_LOADER=build/release/tests/ring_loader PYTHONPATH=build/release/python \
  /usr/bin/python3 tests/bench/client_next_bench.py
echo "== an object store"
build/release/bench/object_store_bench
