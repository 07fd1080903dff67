#!/usr/bin/env bash
# build.sh LINK: builds versitygw, an S3 server, from its Go module into the cache, once, and links it at LINK. The tests
# of object stores read from it.
set -euo pipefail
VERSITYGW=v1.8.0
cache=${HEADRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headrace}
binary=$cache/versitygw/$VERSITYGW/versitygw

if [[ ! -x $binary ]]; then
  command -v go >/dev/null || { echo "Go is not installed: it builds versitygw, which the tests of object stores need" >&2; exit 1; }
  mkdir -p "$cache/versitygw"
  exec 9> "$cache/versitygw.lock"
  flock 9
  if [[ ! -x $binary ]]; then
    partial=$(mktemp -d "$cache/versitygw/partial.XXXXXX")
    trap 'rm -rf "$partial"' EXIT
    GOBIN=$partial CGO_ENABLED=0 go install -trimpath "github.com/versity/versitygw/cmd/versitygw@$VERSITYGW"
    mkdir -p "$(dirname "$binary")"
    mv "$partial/versitygw" "$binary"
  fi
fi
ln -sfn "$binary" "$1"
