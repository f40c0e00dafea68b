#!/usr/bin/env bash
# Installs what some tests need besides packages.txt and requirements.txt, unless it is there: Ruby's gRPC
# (tests/protocol_client) and a Jupyter kernel (tests/python/notebook). Never fails, and never asks for a password: without
# them the tests skip with the reason. PYTHON is the interpreter.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
python=${PYTHON:-$here/../.venv/bin/python}

OPTIONAL=1 "$here/install_packages.sh" "$here/packages_protocol.txt" ||
  echo "test: without Ruby (deploy/packages_protocol.txt was not installed); its tests skip"
"$python" -c 'import ipykernel, jupyter_client' 2>/dev/null ||
  "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 15 -r "$here/requirements_notebook.txt" ||
  echo "test: without Jupyter (deploy/requirements_notebook.txt was not installed); its tests skip"
exit 0
