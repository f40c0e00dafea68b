#!/usr/bin/env bash
# Creates .venv with the Python packages of requirements.txt, and makes the build tree's teletensor package and command
# available in it. Skips steps that are already done.
set -euo pipefail
root=$(readlink -f "$(dirname "$(readlink -f "$0")")/..")
cd "$root"

. deploy/common.sh
install_requirements .venv deploy/requirements.txt

site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
echo "$root/build/python" >"$site/teletensor.pth"
# Finds the interpreter beside it, so that it works in a checkout that was moved.
cat >.venv/bin/teletensor <<'EOF'
#!/bin/sh
exec "$(dirname "$0")/python" -P -c 'import sys
sys.argv[0] = "teletensor"
from teletensor.cli import main
sys.exit(main())' "$@"
EOF
chmod +x .venv/bin/teletensor
