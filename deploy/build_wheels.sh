#!/usr/bin/env bash
# Builds the wheels teletensor and teletensor-engine into dist/: tagged manylinux by auditwheel, and byte-identical for the
# same commit and the same packages. Usage: build_wheels.sh [client|engine]... (default: both). PYTHON is the interpreter of
# the client's wheel, with the packages of requirements_wheels.txt, and BUILD_FOLDER where it is compiled.
set -euo pipefail
root=$(readlink -f "$(dirname "$(readlink -f "$0")")/..")
cd "$root"
python=${PYTHON:-$root/.venv/bin/python}
folder=$(readlink -m "${BUILD_FOLDER:-build-wheel}")

"$python" -m pip install --quiet --disable-pip-version-check -r deploy/requirements_wheels.txt
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
export CXX=c++                                                 # as in build.py: ccache distinguishes it from g++
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1                 # likewise
export LC_ALL=C TZ=UTC PYTHONHASHSEED=0
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
umask 022

build() { # FOLDER MEGABYTES [OPTION OF pack_wheel.py]...
  local raw out file
  raw=$(mktemp -d) out=$(mktemp -d)
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    -C build-dir="$folder" -w "$raw" "$1"
  # The tag is for the oldest glibc and libstdc++ that the binaries and their libraries permit. The libraries in lib/ are found
  # by the DT_RPATH of what loads them, which auditwheel does not follow: without --exclude it would add copies.
  mapfile -t libraries < <("$python" -m zipfile -l "$raw"/*.whl | sed -n 's|^[^ ]*/lib/\([^ /]*\.so[^ /]*\) .*|--exclude=\1|p')
  PATH=$(dirname "$python"):$PATH "$python" -m auditwheel repair "${libraries[@]}" --wheel-dir "$out" "$raw"/*.whl >"$raw/auditwheel.log" 2>&1 ||
    { cat "$raw/auditwheel.log" >&2; exit 1; }
  "$python" deploy/pack_wheel.py --limit "$2" "${@:3}" --out dist "$out"/*.whl
  rm -r "$raw" "$out"
}

(($#)) || set -- client engine
for part in "$@"; do
  case $part in
    client) build . 10 --zopfli ;;
    engine) build deploy/engine_wheel 45 ;;
    *) echo "build_wheels.sh: expected client or engine, got $part" >&2; exit 2 ;;
  esac
done
