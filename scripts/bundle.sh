#!/usr/bin/env bash
# Writes dist/headrace.yaml: what the chart installs, for `kubectl apply --server-side -f`, without Helm. Arguments go to
# `helm template`: scripts/bundle.sh --set image.repository=REGISTRY/operator --set loader.image.repository=REGISTRY/loader
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${HEADRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headrace}
namespace=headrace-system
helm=$(command -v helm || echo "$cache/cluster/bin/helm")
[ -x "$helm" ] || { echo "bundle: helm is not installed (or run make cluster-build)" >&2; exit 1; }

mkdir -p "$root/dist"
partial=$root/dist/.headrace.yaml
trap 'rm -f "$partial"' EXIT
{
  echo "# Headrace, for kubectl apply --server-side -f. Written by scripts/bundle.sh from helm/headrace."
  printf 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n  labels: {pod-security.kubernetes.io/enforce: restricted}\n' $namespace
  # Neither the tests of `helm test` nor what only Helm reads.
  "$helm" template headrace "$root/helm/headrace" --namespace $namespace --no-hooks --set crds.keep=false "$@" 2> >(grep -v 'found symbolic link' >&2) |
    sed -e '/^ *helm.sh\/chart: /d' -e 's|^\( *app.kubernetes.io/managed-by: \)Helm$|\1kubectl|'
} > "$partial"
mv "$partial" "$root/dist/headrace.yaml"
echo "bundle: dist/headrace.yaml" >&2
