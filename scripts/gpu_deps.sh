#!/usr/bin/env bash
# Fills build/gpu-deps with the sources that the GPU parts need and a bare machine lacks (cmake/HeadraceParts.cmake): Debian's
# nlohmann-json and GoogleTest, and nanobind with its backends. To be carried to a machine with a GPU and no network.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/gpu-deps
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
pythons=$(sed -n 's/^foreach(python \(.*\))$/\1/p' client/python/CMakeLists.txt)
for python in $pythons; do
  cmake/fetch_wheels.sh "$out/nanobind/$python" cmake/nanobind-requirements.txt --python-version "$python" --implementation cp
done
du -sh "$out"
