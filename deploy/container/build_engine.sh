#!/usr/bin/env bash
# Build stage of the image: creates FOLDER/usr/bin and FOLDER/usr/lib/python3/dist-packages/teletensor.
#   build_engine.sh PREBUILT FOLDER
# If PREBUILT is empty, compiles the sources in the current folder; otherwise copies what is in prebuilt/.
set -euo pipefail
prebuilt=$1
folder=$2
packages=$folder/usr/lib/python3/dist-packages

mkdir -p "$folder/usr/bin" "$packages"
if [[ -n "$prebuilt" ]]; then
  built=prebuilt
else
  deploy/install_packages.sh
  apt-get install -y -qq --no-install-recommends python3-yaml python3-numpy >/dev/null
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DPython_EXECUTABLE=/usr/bin/python3
  cmake --build build --target teletensord teletensor_python
  built=build
  strip build/bin/teletensord build/python/teletensor/_C.*.so
  python3 deploy/sbom.py --list-compiled build --licenses build/licenses --out build/compiled.json
fi
install -m 755 "$built/bin/teletensord" deploy/debian/teletensor "$folder/usr/bin/"
cp -r python/teletensor "$packages/"
cp "$built"/python/teletensor/_C.*.so "$built"/generated/package/*.py "$packages/teletensor/"
# For the bill of materials, and the licences of what is compiled in.
install -D -m 644 "$built/compiled.json" "$folder/usr/share/doc/teletensor/compiled.json"
install -m 644 LICENSE "$folder/usr/share/doc/teletensor/copyright"
cp -r "$built/licenses" "$folder/usr/share/doc/teletensor/"
# Mount point of the secret, for containers with a read-only root file system. A RUN of the last stage cannot create it,
# because buildah mounts a folder of its own at /run/secrets there.
install -D -m 644 /dev/null "$folder/run/secrets/teletensor-token"
