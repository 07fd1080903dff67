#!/bin/bash
# fetch_cuda.sh DIR: puts the parts named in cuda-requirements.txt into DIR (DIR/nvidia/cu13, DIR/nvidia/nccl), once.
# Safe to run from several builds at a time; a fetch that was cut short leaves nothing behind that looks complete.
set -euo pipefail

dir=$1
requirements=$(dirname "$(readlink -f "$0")")/cuda-requirements.txt

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
  --no-cache-dir --no-deps --only-binary=:all: --require-hashes --target "$dir.partial" -r "$requirements"

# The wheels hold versioned libraries only; linkers want the plain names. nvcc looks for lib64.
cd "$dir.partial/nvidia"
ln -sfn lib cu13/lib64
for library in cu13/lib/lib*.so.* nccl/lib/lib*.so.*; do
  ln -sfn "$(basename "$library")" "${library%%.so.*}.so"
done
cd - >/dev/null
touch "$dir.partial/complete"
mv "$dir.partial" "$dir"
