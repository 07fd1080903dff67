#!/bin/bash
# Runs every lint over the tree, and over samples that each must catch. Ends with "N passed, N failed".
#   tests/lint/run.sh [NAME...]     names of lints, without .py; default: all
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")"

all=(layers sizes tests_registered metrics_used text doc_paths format headers_alone tidy)
passed=0 failed=0

# The slow lints read the compile commands; a file that was just added must be among them.
cmake -S ../.. --preset release >/dev/null || exit 1

one() {
  local title=$1 start=${EPOCHREALTIME/./} output
  shift
  if output=$("$@" 2>&1); then
    passed=$((passed + 1))
    printf 'ok    %-32s %6d ms\n' "$title" $(((${EPOCHREALTIME/./} - start) / 1000))
  else
    failed=$((failed + 1))
    printf 'FAIL  %s\n%s\n' "$title" "$output"
  fi
}

for lint in "${@:-${all[@]}}"; do
  one "$lint, its own test" python3 "$lint.py" --self-test
  one "$lint" python3 "$lint.py"
done
echo "$passed passed, $failed failed"
((failed == 0))
