#!/usr/bin/env bash
# Fills build/gpu-deps with the sources that the GPU parts need and a bare machine lacks (cmake/HeadraceParts.cmake): Debian's
# nlohmann-json and GoogleTest, and nanobind of the pinned version. To be carried to a machine with a GPU and no network.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/gpu-deps
nanobind=$(sed -n 's/^nanobind==\([0-9.]*\).*/\1/p' client/python/requirements-build.txt)
for path in /usr/include/nlohmann/json.hpp /usr/src/googletest/googlemock/src/gmock_main.cc; do
  [ -e "$path" ] || { echo "$path is missing: run make setup" >&2; exit 1; }
done
rm -rf "$out"
mkdir -p "$out/include" "$out/googletest"
cp -r /usr/include/nlohmann "$out/include/"
for part in googletest googlemock; do
  mkdir "$out/googletest/$part"
  cp -r /usr/src/googletest/$part/{src,include} "$out/googletest/$part/"
done
# Where the Python package of the other presets has it, too.
from=build/python-deps/nanobind-$nanobind
[ -e "$from" ] || python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target "$from" "nanobind==$nanobind"
cp -r "$from" "$out/nanobind-$nanobind"
du -sh "$out"
