"""Computes on the engine at a unix socket of this machine, and saves and loads a checkpoint. Run by check.sh.

    check_client.py SOCKET [CHECKPOINT]

The token is TELETENSOR_TOKEN, or for root the engine's own.
"""

import os
import socket
import sys
import time
from pathlib import Path

import numpy as np

import teletensor as torch

path = Path(sys.argv[1])
token = Path("/var/lib/teletensor/token")
for _ in range(300):  # the limit only prevents a script that hangs
    if path.exists():
        break
    time.sleep(0.1)
if os.geteuid() == 0 and not token.exists():  # the engine starts at the first connection, and creates it
    with socket.socket(socket.AF_UNIX) as first:
        first.connect(str(path))
        while not token.exists():
            time.sleep(0.05)
torch.connect(f"unix:{path}", token=os.environ.get("TELETENSOR_TOKEN") or token.read_text().strip())
x = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")
y = torch.from_numpy(x)
np.testing.assert_allclose((y @ y.T).numpy(), x @ x.T, rtol=1e-4, atol=1e-4)
# Code that is generated at run time, decompositions, Fourier transforms: the service's restrictions must allow them.
weight = torch.randn(4, 3, 3, 3, requires_grad=True)
torch.nn.functional.conv2d(torch.randn(2, 3, 16, 16), weight).sum().backward()
assert weight.grad.shape == (4, 3, 3, 3) and bool(weight.grad.isfinite().all())
np.testing.assert_allclose(torch.linalg.svdvals(y).numpy(), np.linalg.svd(x, compute_uv=False), rtol=1e-3, atol=1e-3)
np.testing.assert_allclose(torch.fft.fft(y).numpy(), np.fft.fft(x), rtol=1e-3, atol=1e-3)
state = {"x": y}
if len(sys.argv) > 2:
    torch.checkpoint.save_async(state, sys.argv[2]).result()
    np.testing.assert_array_equal(torch.checkpoint.load(sys.argv[2])["x"].numpy(), x)
is_shared = "memfd:teletensor" in Path("/proc/self/maps").read_text()
assert is_shared == (os.geteuid() == 0), is_shared  # the kernel lets root open the engine's memory, and no other user
print(f"client: engine {torch.connection().engine()['version']} at {path} computed a product for user {os.geteuid()}")
