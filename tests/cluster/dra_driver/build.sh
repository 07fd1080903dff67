#!/usr/bin/env bash
# Builds the driver of simulated GPUs into the cache, once for each state of its sources, and prints the binary's path.
# Its versions are those of go.mod and go.sum.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../lib.sh"
command -v go >/dev/null || die "Go is not installed: it builds the driver of simulated GPUs"
key=$({ cd "$here" && sha256sum go.mod go.sum ./*.go; go env GOVERSION; } | sha256sum | cut -c1-12)
folder=$CACHE/cluster/dra_driver binary=$CACHE/cluster/dra_driver/$key/simulated-gpus

if [ ! -x "$binary" ]; then
  mkdir -p "$folder"
  exec 9> "$folder.lock"
  flock 9
  if [ ! -x "$binary" ]; then
    say "building the driver of simulated GPUs (about two minutes the first time)"
    partial=$(mktemp -d "$folder/partial.XXXXXX")
    trap 'rm -rf "$partial"' EXIT
    (cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$partial/simulated-gpus" .)
    mkdir -p "${binary%/*}"
    mv "$partial/simulated-gpus" "$binary"
  fi
fi
echo "$binary"
