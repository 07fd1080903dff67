#!/usr/bin/env bash
# Builds the images without a registry, with buildah, from the Dockerfiles that users build too, and exports each as a
# docker archive for tests/cluster/up.sh. Debian's base image is made by debootstrap once and kept in the cache.
#   images/build.sh context   only fills build/images, the context of every Dockerfile
#   images/build.sh           builds what changed since the last time
#   images/build.sh pause     only the cluster's own sandbox image
#   images/build.sh base      only Debian's base image
#   images/build.sh push REGISTRY [OPTION...]    pushes the operator's and the loader's, as they were built last, to
#                             REGISTRY/headrace-operator and REGISTRY/headrace-loader; OPTIONs are buildah push's
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tests/cluster/lib.sh"
say() { printf 'images: %s\n' "$*" >&2; }
BASE=docker.io/library/debian:bookworm-slim
# The names by which the chart and the example ask for the images.
VERSION=$(sed -n 's/^appVersion: *"\?\([^"]*\)"\?$/\1/p' "$root/helm/headrace/Chart.yaml")
repository() { awk -v block="$1" '$0 ~ "^" block ":" {inside = 1; next} /^[a-z]/ {inside = 0} inside && $1 == "repository:" {print $2; exit}' "$root/helm/headrace/values.yaml"; }
OPERATOR_IMAGE=$(repository image):$VERSION
LOADER_IMAGE=$(repository loader):$VERSION
TRAINER_IMAGE=$(awk '$1 == "image:" {print $2; exit}' "$root/examples/digits/job.yaml")
context=$root/build/images
work=$CACHE/images
BUILDAH=(buildah --root "$work/storage" --runroot "$work/run" --storage-driver overlay)

# Copies when the content differs, so that an unchanged file keeps its time stamp.
stage() { cmp -s "$1" "$2" || install -D "$1" "$2"; }
fill_context() {
  local binary file wheels
  mkdir -p "$context"
  for binary in headrace-operator headrace-loader; do
    [ -x "$root/build/release/bin/$binary" ] || die "build/release/bin/$binary is missing (make build)"
    strip --strip-debug -o "$context/.$binary" "$root/build/release/bin/$binary"
    stage "$context/.$binary" "$context/$binary"; rm "$context/.$binary"; chmod 755 "$context/$binary"
  done
  for file in "$root"/build/release/lib/{libheadrace_arrow.so,libarrow.so.*,libparquet.so.*}; do
    [ -e "$file" ] || die "build/release/lib/${file##*/} is missing (make build, with HEADRACE_ARROW=ON)"
    # Arrow's come without debug information, and strip breaks libraries that were patched for a wheel.
    case $file in
      *.so) strip --strip-debug -o "$context/.module" "$file"; stage "$context/.module" "$context/lib/${file##*/}"; rm "$context/.module" ;;
      *) stage "$file" "$context/lib/${file##*/}" ;;
    esac
  done
  find "$context/lib" -type f | while read -r file; do [ -e "$root/build/release/lib/${file##*/}" ] || rm "$file"; done
  wheels=("$root"/dist/headrace-*.whl)
  [ -e "${wheels[0]}" ] || die "dist/headrace-*.whl is missing (make wheel)"
  [ ${#wheels[@]} = 1 ] || die "several wheels in dist/: ${wheels[*]##*/}; remove the old ones"
  find "$context" -maxdepth 1 -name '*.whl' ! -name "${wheels[0]##*/}" -delete
  stage "${wheels[0]}" "$context/${wheels[0]##*/}"
  for file in train.py test.npz; do stage "$root/examples/digits/$file" "$context/digits/$file"; done
}

make_base() {
  "${BUILDAH[@]}" inspect --type image $BASE >/dev/null 2>&1 && return
  local dir container
  say "making $BASE with debootstrap (about half a minute) ..."
  dir=$(mktemp -d "$work/base.XXXXXX")
  debootstrap --variant=minbase bookworm "$dir" > "$work/debootstrap.log" 2>&1 || { tail -n 20 "$work/debootstrap.log" >&2; rm -rf "$dir"; die "debootstrap failed; log: $work/debootstrap.log"; }
  # What Debian's own slim image leaves out.
  rm -rf "$dir"/var/cache/apt/*.bin "$dir"/var/cache/apt/archives/*.deb "$dir"/var/lib/apt/lists/* "$dir"/var/log/* \
    "$dir"/usr/share/{doc,man,info,locale}/* "$dir"/dev/*
  printf 'path-exclude /usr/share/doc/*\npath-exclude /usr/share/man/*\npath-exclude /usr/share/locale/*\n' > "$dir/etc/dpkg/dpkg.cfg.d/docker"
  container=$("${BUILDAH[@]}" from scratch)
  "${BUILDAH[@]}" copy -q "$container" "$dir" / >/dev/null
  "${BUILDAH[@]}" config --cmd bash "$container"
  "${BUILDAH[@]}" commit -q "$container" $BASE >/dev/null
  "${BUILDAH[@]}" rm "$container" >/dev/null
  rm -rf "$dir"
}

export_image() {  # TAG ARCHIVE
  mkdir -p "$IMAGES"; rm -f "$IMAGES/.$2.tar"
  "${BUILDAH[@]}" push -q "$1" "docker-archive:$IMAGES/.$2.tar:$1"
  mv "$IMAGES/.$2.tar" "$IMAGES/$2.tar"
}

# The archive is of exactly these inputs when its stamp says so.
inputs() { { sha256sum "$@" | sed "s|$root/||"; echo "$TAG"; } | sha256sum | cut -d' ' -f1; }
is_current() { [ -e "$IMAGES/$1.tar" ] && [ "$(cat "$work/$1.inputs" 2>/dev/null)" = "$2" ]; }

make_pause() {
  local sum container dir
  sum=$(TAG='' inputs "$root/tests/cluster/pause.c")
  if is_current pause "$sum"; then return; fi
  say "building pause"
  dir=$(mktemp -d)
  gcc -O2 -static -o "$dir/pause" "$root/tests/cluster/pause.c"
  container=$("${BUILDAH[@]}" from scratch)
  "${BUILDAH[@]}" copy -q "$container" "$dir/pause" /pause >/dev/null
  "${BUILDAH[@]}" config --entrypoint '["/pause"]' "$container"
  "${BUILDAH[@]}" commit -q "$container" docker.io/local/pause:1 >/dev/null
  "${BUILDAH[@]}" rm "$container" >/dev/null
  rm -rf "$dir"
  export_image docker.io/local/pause:1 pause
  echo "$sum" > "$work/pause.inputs"
}

make_image() {  # NAME TAG DOCKERFILE CONTEXT-FILE...
  local name=$1 tag=$2 dockerfile=$3 sum began=$SECONDS; shift 3
  sum=$(TAG=$tag inputs "$root/$dockerfile" "${@/#/$context/}")
  if is_current "$name" "$sum"; then return; fi
  make_base
  say "building $tag"
  "${BUILDAH[@]}" bud --isolation chroot --pull-never --layers -q -f "$root/$dockerfile" -t "$tag" "$context" > "$work/$name.log" 2>&1 || { tail -n 40 "$work/$name.log" >&2; die "$dockerfile failed; log: $work/$name.log"; }
  export_image "$tag" "$name"
  echo "$sum" > "$work/$name.inputs"
  say "    $((SECONDS - began)) s, $(($(stat -c %s "$IMAGES/$name.tar") / 1048576)) MiB"
}

# Ends with the command that installs what was pushed: by digest, so that nothing else is ever run under its name.
push() {  # REGISTRY BUILDAH-PUSH-OPTION...
  local registry=$1 name image; shift
  local -A images=([operator]=$OPERATOR_IMAGE [loader]=$LOADER_IMAGE) digests
  for name in operator loader; do
    image=$registry/headrace-$name
    say "pushing $image:$VERSION ..."
    "${BUILDAH[@]}" push -q --digestfile "$work/digest" "$@" "${images[$name]}" "docker://$image:$VERSION" ||
      die "$image:$VERSION was not pushed. Is $registry the registry's name, with the folder that is yours? Does it know you (buildah login ${registry%%/*})?"
    digests[$name]=$(< "$work/digest")
  done
  cat <<INSTALL
helm install headrace helm/headrace --namespace headrace-system --create-namespace \\
  --set image.repository=$registry/headrace-operator,image.digest=${digests[operator]} \\
  --set loader.image.repository=$registry/headrace-loader,loader.image.digest=${digests[loader]}
INSTALL
}

mkdir -p "$work" "$IMAGES"
exec 9> "$work/lock"
flock -n 9 || { say "another build of images runs; waiting for it"; flock 9; }
case ${1:-all} in
  context) fill_context ;;
  pause) make_pause ;;
  base) make_base ;;
  push) [ $# -ge 2 ] || die "usage: images/build.sh push REGISTRY [OPTION...]"; push "${@:2}" ;;
  all)
    fill_context
    make_pause
    make_image operator "$OPERATOR_IMAGE" images/operator.Dockerfile headrace-operator
    make_image loader "$LOADER_IMAGE" images/loader.Dockerfile headrace-loader $(cd "$context" && echo lib/*)
    make_image digits-trainer "$TRAINER_IMAGE" examples/digits/Dockerfile "$(cd "$context" && echo headrace-*.whl)" digits/train.py digits/test.npz
    ;;
  *) die "usage: images/build.sh [context|pause|base|push REGISTRY]" ;;
esac
