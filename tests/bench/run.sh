#!/usr/bin/env bash
# Builds and runs the benchmarks (README.md beside this file): one line a figure, with its ratio to something of this
# machine in the same run. Nothing is asserted.
#   tests/bench/run.sh [client|loaders|objects|pixels|device] [OPTION...]
# By default all but device, which is skipped without a GPU. Options are those of loaders/compare.py, or the MiB of a batch for device.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
parts=(client loaders objects pixels)
case ${1:-} in client | loaders | objects | pixels | device) parts=("$1"); shift ;; esac

client() {
  cmake --build --preset release --target headrace headrace-loader client_next_bench ring_loader headrace_python_native
  echo "== memory of a loader that cuts for 1 to 64 replicas"
  /usr/bin/python3 tests/bench/rebatch_memory.py
  echo "== memory of a loader over 100 epochs"
  /usr/bin/python3 tests/bench/loader_memory.py
  echo "== next() in C"
  build/release/bench/client_next_bench
  echo "== next() in Python"
  # Debian's Python: its numpy is the one that setup installs.
  HEADRACE_RING_LOADER=build/release/tests/ring_loader PYTHONPATH=build/release/python \
    /usr/bin/python3 tests/bench/client_next_bench.py
}

loaders() {
  cmake --build --preset release --target headrace headrace-loader loader_drain_bench machine_floors headrace_python_native
  /usr/bin/python3 tests/bench/loaders/compare.py "$@"
}

objects() {
  cmake --build --preset release --target object_store_bench headrace headrace-loader
  echo "== an object store"
  build/release/bench/object_store_bench
}

pixels() {
  cmake --build --preset release --target pixels_bench
  echo "== photographs that are cast, scaled and transposed"
  build/release/bench/pixels_bench
}

device() {
  cmake --build --preset release --target device_copy_bench
  echo "== batches to a GPU"
  build/release/bench/device_copy_bench "$@"
}

for part in "${parts[@]}"; do "$part" "$@"; done
