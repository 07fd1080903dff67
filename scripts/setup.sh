#!/usr/bin/env bash
# Installs what Headrace needs on a Debian 12 machine that has git, make, gcc and Go. Says nothing and takes a fraction of
# a second where everything is there.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${HEADRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headrace}
say() { printf 'setup: %s\n' "$*" >&2; }
mkdir -p "$cache"

mapfile -t packages < <(sed '/^#/d' "$root/scripts/apt-packages.txt")
missing=$(comm -13 <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null | sed -n 's/^ii  *//p' | sort -u) <(printf '%s\n' "${packages[@]}" | sort -u))

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
install_packages() {
  say "installing: $*"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "$@" > "$cache/apt.log" 2>&1 ||
    { tail -n 30 "$cache/apt.log" >&2; say "apt-get install failed; log: $cache/apt.log"; exit 1; }
}
# shellcheck disable=SC2086
[ -z "$missing" ] || install_packages $missing

# Prometheus for the end-to-end test: Debian's, unpacked and not installed, as its package would start a service.
if ! command -v prometheus >/dev/null && [ ! -x "$cache/prometheus/usr/bin/prometheus" ]; then
  say "fetching prometheus"
  [ -n "$missing" ] || as_root apt-get update -qq
  fetched=$(mktemp -d); chmod 755 "$fetched"
  (cd "$fetched" && apt-get download -qq prometheus) >/dev/null
  dpkg -x "$fetched"/prometheus_*.deb "$cache/prometheus"; rm -rf "$fetched"
fi

# Debian's python3: the wheel must fit the interpreter of the images.
venv=$cache/venv
if ! cmp -s "$root/scripts/requirements.txt" "$venv/requirements.txt"; then
  say "making the Python environment $venv"
  rm -rf "$venv"
  /usr/bin/python3 -m venv --system-site-packages "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check -r "$root/scripts/requirements.txt"
  cp "$root/scripts/requirements.txt" "$venv/requirements.txt"
fi
