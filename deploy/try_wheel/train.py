"""Trains a small convolutional network on the installed engine, and lists the libraries of both processes."""

import os
import pathlib

import teletensor as torch
import teletensor.nn.functional as F
from teletensor import nn, optim

torch.manual_seed(0)
x, y = torch.randn(256, 1, 12, 12), torch.randint(0, 4, (256,))
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(800, 4))
optimizer = optim.Adam(model.parameters(), lr=1e-2)
for _ in range(20):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
final = loss.item()
assert final < 1, final
print("trained, loss", round(final, 4))

site = os.path.dirname(os.path.dirname(torch.__file__))
(engine,) = (int(pid) for file in pathlib.Path("/proc/self/task").glob("*/children") for pid in file.read_text().split())
print("engine", os.readlink(f"/proc/{engine}/exe"))
assert os.readlink(f"/proc/{engine}/exe") == f"{site}/teletensor_engine/bin/teletensord"
for name, pid, package in (("client", "self", "teletensor"), ("engine", engine, "teletensor_engine")):
    mapped = {line.split(None, 5)[5].strip() for line in open(f"/proc/{pid}/maps") if ".so" in line}
    own = {path for path in mapped if path.startswith(f"{site}/{package}/")}
    rest = sorted(os.path.basename(path) for path in mapped - own if "/numpy" not in path and "/python3" not in path)
    print(f"{name}: {len(own)} libraries from its wheel, and {', '.join(rest)}")
    assert own and not [library for library in rest if library.startswith(("libgrpc", "libabsl", "libprotobuf", "libopenblas"))]
