#!/usr/bin/env bash
# Builds every binary of the cluster from Go modules into the cache: about ten minutes on two cores the first time.
# A binary is kept while the version built into it is the one named here.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
K8S=1.36.3 STAGING=0.36.3 ETCD=3.6.16 CONTAINERD=2.2.9 HELM=4.3.1 COREDNS=1.15.0

kubernetes="kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl kube-proxy"
# import path, version
wanted() {
  local name
  for name in $kubernetes; do echo "k8s.io/kubernetes/cmd/$name v$K8S"; done
  echo "go.etcd.io/etcd/server/v3 v$ETCD"
  for name in containerd containerd-shim-runc-v2 ctr; do echo "github.com/containerd/containerd/v2/cmd/$name v$CONTAINERD"; done
  echo "helm.sh/helm/v4/cmd/helm v$HELM"
  echo "github.com/coredns/coredns v$COREDNS"
}
binary() { case $1 in go.etcd.io/etcd/server/v3) echo etcd;; *) basename "$1";; esac; }
is_built() {  # PATH VERSION
  local file; file=$BIN/$(binary "$1")
  [ -x "$file" ] && go version -m "$file" 2>/dev/null | awk -v v="$2" '$1 == "mod" && $3 == v {found = 1} END {exit !found}'
}

command -v go >/dev/null || die "Go is not installed: it builds Kubernetes, containerd, CoreDNS and Helm"
mkdir -p "$BIN"
exec 9> "$BIN.lock"
flock -n 9 || { say "another build runs; waiting for it"; flock 9; }

"$(dirname "${BASH_SOURCE[0]}")/dra_driver/build.sh" >/dev/null

missing=()
while read -r path version; do is_built "$path" "$version" || missing+=("$path $version"); done < <(wanted)
[ ${#missing[@]} -gt 0 ] || exit 0

work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
say "building ${#missing[@]} binaries into $BIN (about ten minutes for all on two cores)"

# k8s.io/kubernetes names its staging modules by relative path: each is pointed at its published version.
replace_staging() {
  local dir; dir=$(cd "$work" && go mod download -json "k8s.io/kubernetes@v$K8S" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  sed -n '/^replace/,/^)/p' "$dir/go.mod" | awk -v v="v$STAGING" '/=>/ {print "replace " $1 " => " $1 " " v}'
}
# make_module MODULE VERSION IMPORT-PATH...: a module that requires the named one; its go.sum by `go mod tidy`
make_module() {
  local name; name=$work/$(echo "$1" | tr / _)
  [ ! -d "$name" ] || { cd "$name"; return; }
  mkdir -p "$name"; cd "$name"
  printf 'module example.test/tools\ngo 1.26.0\nrequire %s %s\n' "$1" "$2" > go.mod
  [ "$1" != k8s.io/kubernetes ] || replace_staging >> go.mod
  { printf '//go:build tools\npackage tools\n'; printf 'import _ "%s"\n' "${@:3}"; } > tools.go
  go mod tidy 2> tidy.log || { cat tidy.log >&2; die "go mod tidy failed for $1"; }
}
v=k8s.io/component-base/version
ldflags="-s -w -X $v.gitVersion=v$K8S -X $v.gitMajor=1 -X $v.gitMinor=$(echo $K8S | cut -d. -f2)"

count=0
for entry in "${missing[@]}"; do
  read -r path version <<< "$entry"
  count=$((count + 1)); name=$(binary "$path"); began=$SECONDS
  say "[$count/${#missing[@]}] $name $version ..."
  case $path in
    k8s.io/*) make_module k8s.io/kubernetes "$version" $(wanted | awk '/^k8s.io/ {print $1}') ;;
    go.etcd.io/*) make_module go.etcd.io/etcd/server/v3 "$version" "$path" ;;
    github.com/containerd/*) make_module github.com/containerd/containerd/v2 "$version" $(wanted | awk '/^github.com\/containerd/ {print $1}') ;;
    *) cd "$work"; GOBIN=$work/out CGO_ENABLED=0 go install "$path@$version"; mv "$work/out/$name" "$BIN/$name"
       say "    $((SECONDS - began)) s"; continue ;;
  esac
  CGO_ENABLED=0 go build -trimpath -ldflags "$ldflags" -o "$work/$name" "$path"
  mv "$work/$name" "$BIN/$name"
  say "    $((SECONDS - began)) s"
done
