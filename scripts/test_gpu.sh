#!/usr/bin/env bash
# `make test-gpu`: builds the GPU parts alone (preset gpu) and runs their tests, those that need a GPU on a real one. Says
# what was skipped. Fails where there is no GPU: a run that tested nothing must not be green.
set -uo pipefail
cd "$(dirname "$0")/.."
unset HEADRACE_LIBCUDA HEADRACE_LIBNCCL  # no stand-ins, but where a test sets them for itself
log=build/gpu/test.log

cmake --preset gpu || exit 1
cmake --build --preset gpu -j "$(nproc)" || exit 1

probe=$(build/gpu/tests/sidecar_device_device_test --gtest_filter=Device.EveryGpuRunsOurCode)
if [ $? -ne 0 ] || grep -q SKIPPED <<< "$probe"; then
  echo "$probe"
  echo "make test-gpu: FAILED: no usable GPU on this machine; what needs none has been built and was not run" >&2
  exit 1
fi

ctest --preset gpu 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
# There is a GPU, so nothing of ours in C++ that needs one has a reason to be skipped; a framework for Python may be missing,
# and the machine may give users no namespaces.
if grep -E '\[  SKIPPED \] ((GpuTest|NcclGpu|ImageKernel)\.|In/.*/OneSetOfNamespaces)' "$log"; then status=1; fi
skipped=$(grep -E '^[0-9]+: .*(\[  SKIPPED \]|[Ss]kipped)' "$log" | sort -u)
if [ -n "$skipped" ]; then
  echo "== skipped, so not tested here:"
  echo "$skipped"
fi
[ -d build/gpu/python ] || echo "== not built, so not tested here: the Python package: there is no Python 3.11 or newer with its headers"
on_gpu=$(ctest --preset gpu -N -L gpu | sed -n 's/^Total Tests: //p')
echo "== $(grep -cE '^ *[0-9]+/[0-9]+ Test .* Passed' "$log") test programs passed, of which up to $on_gpu use the GPU"
if [ "$status" -ne 0 ] || [ "${on_gpu:-0}" -eq 0 ]; then
  echo "make test-gpu: FAILED" >&2
  exit 1
fi
