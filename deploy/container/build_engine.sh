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
fi
install -m 755 "$built/bin/teletensord" "$folder/usr/bin/teletensord"
cp -r python/teletensor "$packages/"
cp "$built"/python/teletensor/_C.*.so "$packages/teletensor/"
cat >"$folder/usr/bin/teletensor" <<'PYTHON'
#!/usr/bin/python3
import sys

from teletensor.cli import main

sys.exit(main())
PYTHON
chmod 755 "$folder/usr/bin/teletensor"
# Mount point of the secret, for containers with a read-only root file system. A RUN of the last stage cannot create it,
# because buildah mounts a folder of its own at /run/secrets there.
install -D -m 644 /dev/null "$folder/run/secrets/teletensor-token"
