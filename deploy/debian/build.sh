#!/usr/bin/env bash
# Builds the Debian packages teletensord, libteletensor-dev and python3-teletensor from build/ into dist/, and checks them
# with lintian. DEBFULLNAME and DEBEMAIL name the maintainer.
set -euo pipefail
cd "$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")"
here=deploy/debian
out=build/debian
version=$(sed -n 's/^project(teletensor VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
export DEBFULLNAME=${DEBFULLNAME:-teletensor maintainers} DEBEMAIL=${DEBEMAIL:-maintainers@teletensor.invalid}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)  # the same commit gives the same packages
export SOURCE_DATE_EPOCH
packages=(teletensord libteletensor-dev python3-teletensor)

rm -rf "$out" && mkdir -p "$out/overrides"
# The names in defaults are variables instead of this user's folders.
manual() { # PROGRAM COMMAND NAME
  env -i PATH="$PATH" HOME='~' XDG_RUNTIME_DIR='$XDG_RUNTIME_DIR' PYTHONPATH="$PWD/build/python" COLUMNS=100 LC_ALL=C \
    help2man --no-info --section 1 --name "$3" --version-string "$1 $version" --no-discard-stderr "$2" | gzip -9n >"$out/$1.1.gz"
}
manual teletensord build/bin/teletensord "tensor engine for remote clients"
printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$PWD/.venv/bin/python" "$PWD/$here/teletensor" >"$out/teletensor"
chmod 755 "$out/teletensor"
manual teletensor "$out/teletensor" "show and manage teletensor engines, and launch programs on them"

for package in "${packages[@]}"; do
  mkdir -p "$out/$package"
  cp "$here/copyright" "$out/$package/"
  printf '%s\n' "teletensor ($version) stable; urgency=medium" "" "  * See CHANGELOG.md in the sources." "" \
    " -- $DEBFULLNAME <$DEBEMAIL>  $(date -R -u -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$out/$package/changelog.gz"
  [[ -f $here/overrides-$package ]] && cp "$here/overrides-$package" "$out/overrides/$package"
done
bill() { # PACKAGE BINARY PART...
  python3 deploy/sbom.py --compiled build $(printf -- '--part %s ' "${@:3}") --licenses "$out/$1/licenses" --out "$out/$1/sbom.cdx.json" "$2"
}
bill teletensord build/bin/teletensord autograd/ distributed/ engine/ kernels/ proto/ server/
bill python3-teletensor build/python/teletensor/_C.*.so client/ distributed/store/ engine/CMakeFiles/tt_schema proto/ python/

cmake --preset release -D TT_KERNEL_ISAS=all >/dev/null  # reads the maintainer
(umask 022 && cpack --config build/CPackConfig.cmake -B "$out/packages") >"$out/cpack.log" 2>&1 || { tail -n 40 "$out/cpack.log" >&2; exit 1; }
mkdir -p dist
for package in "${packages[@]}"; do
  file=$(echo "$out/packages/${package}_${version}"_*.deb)
  cp "$file" dist/
  echo "deb: $(du -h "$file" | cut -f1) in dist/$(basename "$file")"
done
