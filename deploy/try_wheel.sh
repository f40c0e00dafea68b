#!/usr/bin/env bash
# Installs the wheels of dist/ into new Debian systems that have none of the build's packages, and uses them there:
#
#   deploy/try_wheel.sh [--previous FOLDER] [SUITE...]    (default: bookworm trixie testing)
#
# In each: the client without an engine says how to get one; `pip install teletensor[engine]` installs both, and a model is
# trained; the engine of the wheel serves a client in another process. With --previous, the wheels of an older version in
# FOLDER, such as an older dist/: its client uses the new engine, and the new client its engine. Debian 12 runs its own
# Python; the others, whose Python the wheel is not for, a copy of this machine's python3.11.
# Run as root, with mmdebstrap, which needs about two minutes per system. APT_OPTION is a further option of
# apt, such as 'Acquire::Check-Valid-Until "false"' for a mirror whose copy of testing is older than a week.
set -euo pipefail
here=$(readlink -f "$(dirname "$(readlink -f "$0")")")
dist=$here/../dist
. "$here/common.sh"
previous=
if [[ ${1:-} == --previous ]]; then previous=$(readlink -f "$2"); shift 2; fi
(($#)) || set -- bookworm trixie testing
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

python=$(readlink -f "$(command -v "${PYTHON:-$here/../.venv/bin/python}")")
prefix=$("$python" -c 'import sys; print(sys.base_prefix)')
mkdir "$work/wheels"
cp "$dist"/teletensor-*-manylinux*.whl "$dist"/teletensor_engine-*-manylinux*.whl "$work/wheels/"
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$work/wheels" numpy

try() { # SUITE
  local root=$work/$1 run=/usr/bin/python3
  # Packages of testing assume a merged /usr, which mmdebstrap of Debian 12 makes only with this hook.
  make_debian "$1" "$root" ${APT_OPTION:+--aptopt="$APT_OPTION"} --hook-dir="${MMDEBSTRAP_HOOKS:-/usr/share/mmdebstrap/hooks}/merged-usr" \
    --include=python3,python3-venv,ca-certificates,libffi8,zlib1g,libbz2-1.0,liblzma5
  cp -r "$work/wheels" "$root/wheels"
  cp "$here/try_wheel/"*.py "$here/try_wheel/try.sh" "$root/"
  if [[ $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') != $(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') ]]; then
    run=$prefix/bin/python3.11
    [[ $prefix == /usr ]] && { echo "try_wheel.sh: $1 needs a python3.11 outside /usr; skipped" >&2; return; }
    mkdir -p "$root$prefix/lib" "$root$prefix/bin"
    cp -L "$prefix/bin/python3.11" "$root$prefix/bin/"
    tar -C "$prefix/lib" --exclude=site-packages --exclude=test --exclude=__pycache__ --exclude='config-*' -c python3.11 | tar -C "$root$prefix/lib" -x
    find "$prefix/lib" -maxdepth 1 -name 'libpython3*' -exec cp -P {} "$root$prefix/lib/" \;
  fi
  [[ -z $previous ]] || { mkdir "$root/previous"; cp "$previous"/*.whl "$root/previous/"; }
  # The kernel removes the mounts with their namespace.
  unshare --mount bash -ec "
    mount -t proc proc '$root/proc'
    mount -t tmpfs tmpfs '$root/tmp'
    exec chroot '$root' /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root PYTHON='$run' /bin/bash /try.sh"
  rm -rf --one-file-system "$root"
}

for suite in "$@"; do
  echo "== $suite"
  try "$suite"
done
