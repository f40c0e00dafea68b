#!/usr/bin/env bash
# Installs a wheel into a new Debian system that has only Python, and trains a model there. Usage: try_wheel.sh
# dist/*.whl. Run as root. mmdebstrap creates the system in two minutes; pip installs NumPy.
set -euo pipefail
wheel=$(readlink -f "$1")
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT

mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$root"
mkdir "$root/wheels"
cp "$wheel" "$root/wheels/"
python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$root/wheels" numpy

cat >"$root/try.py" <<'EOF_PYTHON'
import os, pathlib
import teletensor as torch
from teletensor import nn, optim
import teletensor.nn.functional as F

torch.manual_seed(0)
x, y = torch.randn(256, 1, 12, 12), torch.randint(0, 4, (256,))
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(800, 4))
optimizer = optim.Adam(model.parameters(), lr=1e-2)
for _ in range(20):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print("trained, loss", round(loss.item(), 4))

site = os.path.dirname(torch.__file__)
(engine,) = (int(pid) for file in pathlib.Path("/proc/self/task").glob("*/children") for pid in file.read_text().split())
print("engine", os.readlink(f"/proc/{engine}/exe"))
libraries = {line.split(None, 5)[5].strip() for line in open(f"/proc/{engine}/maps") if ".so" in line}
print("libraries:", sum(path.startswith(site) for path in libraries), "from the wheel, and",
      ", ".join(sorted(os.path.basename(path) for path in libraries if not path.startswith(site))))
EOF_PYTHON

cat >"$root/try.sh" <<'EOF_SHELL'
set -e
python3 -m venv /venv
/venv/bin/pip install --quiet --no-index --find-links /wheels teletensor
cd /tmp
/venv/bin/python /try.py
EOF_SHELL

# The kernel removes the mounts with their namespace.
unshare --mount bash -ec "
  mount -t proc proc '$root/proc'
  mount -t tmpfs tmpfs '$root/tmp'
  exec chroot '$root' /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root /bin/bash /try.sh"
