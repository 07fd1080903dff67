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

# Servers for the end-to-end tests: Debian's, unpacked and not installed, as their packages would start services.
for server in prometheus docker-registry; do
  if ! command -v "$server" >/dev/null && [ ! -x "$cache/$server/usr/bin/$server" ]; then
    say "fetching $server"
    [ -n "$missing" ] || as_root apt-get update -qq
    fetched=$(mktemp -d); chmod 755 "$fetched"
    (cd "$fetched" && apt-get download -qq "$server") >/dev/null
    dpkg -x "$fetched/${server}"_*.deb "$cache/$server"; rm -rf "$fetched"
  fi
done

# Debian's python3, which is the images' too.
venv=$cache/venv
if ! cmp -s "$root/scripts/requirements.txt" "$venv/requirements.txt"; then
  say "making the Python environment $venv"
  rm -rf "$venv"
  /usr/bin/python3 -m venv --system-site-packages "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check -r "$root/scripts/requirements.txt"
  cp "$root/scripts/requirements.txt" "$venv/requirements.txt"
fi
