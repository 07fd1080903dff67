#!/usr/bin/env bash
# Searches the parsers of foreign bytes for faults with libFuzzer, under the address and the undefined-behaviour
# sanitizer: one line a parser, and where one fails, its input and how to try it again.
#   tests/fuzz/run.sh [NAME...]     default: all; RUNS=10000000 executions each
# What covers more of a parser is kept in build/fuzz/corpus/NAME, from which the next search goes on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
runs=${RUNS:-10000000}
if ! command -v clang++-14 >/dev/null || ! clang++-14 -print-file-name=libclang_rt.fuzzer-x86_64.a | grep -q /; then
  echo "fuzz: libFuzzer is not there: apt-get install clang-14 libclang-rt-14-dev" >&2
  exit 1
fi
[ -e build/fuzz/build.ninja ] || cmake --preset fuzz
cmake --build --preset fuzz --target fuzz_targets

names=("$@")
[ ${#names[@]} -gt 0 ] || for target in build/fuzz/tests/*_fuzz; do names+=("$(basename "${target%_fuzz}")"); done
failed=0
for name in "${names[@]}"; do
  corpus=build/fuzz/corpus/$name
  log=build/fuzz/$name.log
  mkdir -p "$corpus"
  printf '%-16s' "$name"
  # The libraries behind these are not instrumented: of an input shrunk to what our own code tells apart, they would see
  # next to nothing.
  shrink=1
  case $name in arrow | compression | image | parquet) shrink=0 ;; esac
  # Arrow takes gigabytes where a file asks for them and gives them back: such an allocation is not a fault in itself.
  # Of where memory was allocated two frames are kept: libraries without frame pointers give stacks that are never twice
  # the same, and half the time went into keeping those. Trying a finding again shows the stacks whole. What is freed is
  # kept from use for 16 MiB, many inputs long; with the 256 that are usual every allocation is a miss of the cache.
  # -timeout is of the wall clock, and machines were seen to stand still for half a minute.
  if ASAN_OPTIONS=allocator_may_return_null=1:malloc_context_size=2:quarantine_size_mb=16 \
    build/fuzz/tests/"$name"_fuzz "$corpus" \
    -runs="$runs" -max_len=8192 -timeout=60 -reduce_inputs=$shrink \
    -malloc_limit_mb=4096 -rss_limit_mb=4096 -artifact_prefix=build/fuzz/"$name"- -print_final_stats=1 >"$log" 2>&1; then
    awk '/stat::number_of_executed_units/ {runs = $2} /stat::average_exec_per_sec/ {rate = $2} / cov: / {cov = $0}
         END {sub(/.* cov: /, "", cov); sub(/ .*/, "", cov)
              printf "%12d executions, no finding   %8d/s   %6d edges\n", runs, rate, cov}' "$log"
  else
    failed=1
    input=$(sed -n 's/.*Test unit written to //p' "$log")
    echo "FAILED: build/fuzz/tests/${name}_fuzz $input   ($(grep -m1 -E 'ERROR|SUMMARY|runtime error' "$log"); all of it: $log)"
  fi
done
exit $failed
