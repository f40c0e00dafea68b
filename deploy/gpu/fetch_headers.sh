#!/usr/bin/env bash
# Installs the headers of NVIDIA's cudnn-frontend (header-only, Apache-2.0 and MIT) into .cache/cudnn-frontend, from PyPI.
# Without network prints a message and succeeds: attention then does not use cuDNN.
set -euo pipefail
cd "$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")"
version=1.32.0
folder=.cache/cudnn-frontend
[[ -f $folder/$version ]] && exit 0
echo "cuda: installing the headers of nvidia-cudnn-frontend $version"
rm -rf "$folder"
wheel=$(mktemp -d)
trap 'rm -rf "$wheel"' EXIT
if ! .venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: -d "$wheel" "nvidia-cudnn-frontend==$version"; then
  echo "cuda: nvidia-cudnn-frontend could not be downloaded; attention will not use cuDNN"
  exit 0
fi
mkdir -p "$folder"
.venv/bin/python - "$wheel"/*.whl "$folder" <<'PYTHON'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith("include/")])
PYTHON
touch "$folder/$version"
