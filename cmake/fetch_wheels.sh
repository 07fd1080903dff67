#!/bin/bash
# fetch_wheels.sh DIR REQUIREMENTS [PIP OPTION...]: unpacks the wheels that REQUIREMENTS names, with hashes, into DIR,
# once, and makes links there that linkers understand. Safe to run from several builds at a time; a fetch that was cut
# short leaves nothing behind that looks complete.
set -euo pipefail

dir=$1 requirements=$(readlink -f "$2")
shift 2

[[ -e $dir/complete ]] && exit 0
mkdir -p "$(dirname "$dir")"
exec 9>"$dir.lock"
flock 9
[[ -e $dir/complete ]] && exit 0

# The Python of `make setup`, else any that has pip.
for python in "$dir/../../venv/bin/python" python3 /usr/bin/python3; do
  "$python" -m pip --version >/dev/null 2>&1 && break
done

rm -rf "$dir" "$dir.partial"
trap 'rm -rf "$dir.partial"' EXIT
"$python" -m pip install --quiet --disable-pip-version-check --no-warn-script-location --root-user-action=ignore \
  --no-cache-dir --no-compile --no-deps --only-binary=:all: --require-hashes "$@" --target "$dir.partial" -r "$requirements"

# The wheels hold versioned libraries only; linkers want the plain names. nvcc looks for lib64.
find "$dir.partial" -name 'lib*.so.*' -print0 | while IFS= read -r -d '' library; do
  [[ -e ${library%%.so.*}.so ]] || ln -s "$(basename "$library")" "${library%%.so.*}.so"
done
if [[ -d $dir.partial/nvidia/cu13 ]]; then ln -s lib "$dir.partial/nvidia/cu13/lib64"; fi
touch "$dir.partial/complete"
mv "$dir.partial" "$dir"
