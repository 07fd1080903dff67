#!/bin/sh
# Builds dist/headrace-*.whl for the python3 given (default: Debian's), with the build tools that pyproject.toml pins.
set -eu
cd "$(dirname "$0")"
python=${1:-/usr/bin/python3}
rm -f ../../dist/headrace-*.whl
"$python" -m pip wheel --disable-pip-version-check --quiet --no-deps --wheel-dir ../../dist .
ls ../../dist/headrace-*.whl
