#!/usr/bin/env bash
# Checks the Debian packages in dist/: lintian, contents, bills of materials; installs them with apt in a new Debian system,
# and computes on the installed engine from the installed Python client. Run as root, after build.sh.
#   PYTHON   with cyclonedx-python-lib (requirements_packaging.txt), by default .venv/bin/python
set -euo pipefail
cd "$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")"
here=$PWD/deploy/debian
. deploy/common.sh
python=${PYTHON:-.venv/bin/python}
version=$(sed -n 's/^project(teletensor VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
packages=()
for package in teletensord libteletensor-dev python3-teletensor; do packages+=("$(echo "$PWD/dist/${package}_${version}"_*.deb)"); done
engine=${packages[0]}

echo "== lintian"
# There is no public address of a maintainer; see DEBEMAIL.
lintian --allow-root --fail-on error --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog "${packages[@]}"

echo "== contents"
expect() { # TEXT PATTERN
  grep -Eq -- "$2" <<<"$1" || { echo "check.sh: expected $2 in:" >&2; echo "$1" >&2; exit 1; }
}
listing=$(dpkg-deb -c "$engine")
for path in ./usr/bin/teletensord ./usr/lib/systemd/system/teletensord.{service,socket} ./usr/lib/sysusers.d/teletensor.conf \
  ./etc/teletensor/teletensord.conf ./usr/share/man/man1/teletensord.1.gz ./usr/share/doc/teletensord/{copyright,sbom.cdx.json}; do
  expect "$listing" " root/root .* ${path//./\\.}$"
done
control=$(dpkg-deb -f "$engine" Depends)
for needed in 'libc6 \(>= ' 'libgrpc\+\+1.51' 'libdnnl2' 'libopenblas0-openmp' 'libssl3'; do expect "$control" "$needed"; done
[[ $(dpkg-deb -I "$engine" conffiles | sort) == $'/etc/logrotate.d/teletensord\n/etc/teletensor/teletensord.conf' ]]

folder=$(mktemp -d /tmp/teletensor-deb-XXXXXX)
trap 'rm -rf --one-file-system "$folder"' EXIT
echo "== bills of materials"
for package in "$engine" "${packages[2]}"; do
  name=$(dpkg-deb -f "$package" Package)
  dpkg-deb -x "$package" "$folder/files"
  "$python" deploy/check_sbom.py "$folder/files/usr/share/doc/$name/sbom.cdx.json" "$folder/files/usr/share/doc/$name/licenses"
done

echo "== the C++ client"
dpkg-deb -x "${packages[1]}" "$folder/files"
cp -r examples/cpp "$folder/example"
# As if the package were installed: other packages are.
cmake -S "$folder/example" -B "$folder/example/build" -G Ninja -DCMAKE_PREFIX_PATH="$folder/files/usr" >"$folder/example/log"
cmake --build "$folder/example/build" >>"$folder/example/log" || { cat "$folder/example/log" >&2; exit 1; }
echo "client: examples/cpp is built with libteletensor-dev"

echo "== a new system"
root=$folder/root
include=systemd,systemd-sysv
for package in "${packages[@]}"; do include+=,$package; done
# apt installs the packages with what they depend on. The hook mounts the files in the new system; the kernel removes the
# mounts with their namespace.
export -f make_debian
unshare --mount bash -euo pipefail -c 'make_debian "$@"' bash bookworm "$root" \
  --hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount --include="$include"
cp "$here/check_client.py" "$root/usr/local/bin/"
enter() { # COMMAND...; in the background, $! is the command
  exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}
inside() {
  (enter "$@")
}
mount_system() {
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
}
export -f enter inside mount_system
export root
unshare --mount bash -euo pipefail -c '
  mount_system
  inside teletensord --version
  inside id teletensor
  inside systemd-analyze verify --man=no /usr/lib/systemd/system/teletensord.service /usr/lib/systemd/system/teletensord.socket
  inside install -d -o teletensor -g teletensor -m 700 /var/lib/teletensor /var/lib/teletensor/checkpoints /var/log/teletensor
  enter setpriv --reuid=teletensor --regid=teletensor --init-groups --no-new-privs --bounding-set=-all \
    systemd-socket-activate -l /var/lib/teletensor/engine.sock teletensord --config /etc/teletensor/teletensord.conf 2>"$root/tmp/log" &
  trap "kill -KILL $! 2>/dev/null || true" EXIT
  # Here not root listens on the socket, but the user of the engine.
  inside env TELETENSOR_ENGINE_USER=teletensor python3 /usr/local/bin/check_client.py /var/lib/teletensor/engine.sock ||
    { cat "$root/tmp/log" >&2; exit 1; }
  kill $!
  wait $! || { cat "$root/tmp/log" >&2; exit 1; }
'
echo "== systemd as PID 1"
"$here/check_booted.sh" "$root"

echo "== purging"
unshare --mount bash -euo pipefail -c '
  mount_system
  inside touch /var/lib/teletensor/checkpoints/kept
  inside dpkg --purge teletensord >/dev/null
'
[[ ! -e $root/etc/teletensor && ! -e $root/var/log/teletensor && ! -e $root/var/lib/teletensor/token ]]
[[ -e $root/var/lib/teletensor/checkpoints/kept ]]
echo "deb: passed"
