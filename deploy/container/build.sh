#!/usr/bin/env bash
# Builds the engine's image localhost/teletensor:latest with buildah. Run as root.
#   build.sh [--prebuilt] [--base IMAGE] [--tag IMAGE]
#   --prebuilt  copies teletensord and _C.*.so from build/, which were built on Debian 12, instead of
#               compiling the sources of HEAD in the image
#   --base      a Debian 12 image with apt; by default localhost/debian:bookworm, which mmdebstrap creates if it is missing
set -euo pipefail
root=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
prebuilt=""
base=localhost/debian:bookworm
tag=localhost/teletensor:latest
while (($# > 0)); do
  case $1 in
    --prebuilt) prebuilt=yes ;;
    --base) base=$2; shift ;;
    --tag) tag=$2; shift ;;
    *) echo "usage: build.sh [--prebuilt] [--base IMAGE] [--tag IMAGE]" >&2; exit 2 ;;
  esac
  shift
done
. "$root/deploy/common.sh"
require_programs deploy/packages_container.txt buildah podman

folder=$(mktemp -d /tmp/teletensor-image-XXXXXX)
trap 'rm -rf --one-file-system "$folder"' EXIT
if ! podman image exists "$base"; then
  [[ $base == localhost/debian:bookworm ]] || { echo "build.sh: expected an image named $base" >&2; exit 1; }
  echo "image: creating $base"
  make_debian bookworm "$folder/base.tar"
  podman import --quiet "$folder/base.tar" "$base" >/dev/null
  rm "$folder/base.tar"
fi

# Only committed files are in the context.
mkdir "$folder/context"
git -C "$root" archive HEAD | tar -x -C "$folder/context"
if [[ -n $prebuilt ]]; then
  mkdir -p "$folder/context/prebuilt/bin" "$folder/context/prebuilt/python/teletensor" "$folder/context/prebuilt/generated"
  prebuilt_folder=$folder/context/prebuilt
  strip -o "$prebuilt_folder/bin/teletensord" "$root/build/bin/teletensord"
  cp -r "$root/build/generated/package" "$prebuilt_folder/generated/"
  module=$(echo "$root"/build/python/teletensor/_C.*.so)
  strip -o "$prebuilt_folder/python/teletensor/$(basename "$module")" "$module"
  python3 "$root/deploy/sbom.py" --list-compiled "$root/build" --licenses "$prebuilt_folder/licenses" \
    --out "$prebuilt_folder/compiled.json"
fi
echo "image: building $tag"
# HEALTHCHECK is part of the docker format only.
buildah bud --isolation=chroot --format=docker --layers --build-arg "BASE=$base" --build-arg "PREBUILT=$prebuilt" --tag "$tag" \
  -f "$root/deploy/container/Containerfile" "$folder/context" >"$folder/build.log" 2>&1 ||
  { tail -n 40 "$folder/build.log" >&2; exit 1; }
podman images --format "image: {{.Repository}}:{{.Tag}}, {{.Size}}" "$tag"
