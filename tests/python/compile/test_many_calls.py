"""Memory after many calls of compiled functions. TELETENSOR_MANY_CALLS=1000000 makes as many calls; docs/compile.md has the result."""

from __future__ import annotations

import os

import pytest

from tests.conftest import IN_PROCESS
from tests.python.session.test_session import run_script

CALLS = int(os.environ.get("TELETENSOR_MANY_CALLS", "40000"))

SCRIPT = """
import gc, resource, sys
import teletensor as torch

def memory():
    torch.synchronize()
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

def chain(x, y, scale):
    for _ in range(8):
        x = x * y + scale
    return x, {"sum": x.sum()}

def counted(x, counts):
    counts["calls"] = counts.get("calls", 0) + 1
    with torch.no_grad():
        z = x * 2
    print(end="")  # a break
    return z + counts["calls"] % 2

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x).relu()

layer, x, y, counts = Layer(), torch.ones(4, 8), torch.ones(8), {}
functions = [torch.compile(chain), torch.compile(counted), torch.compile(layer)]

def call(n):
    for k in range(n):
        functions[0](x, y, 0.5)
        functions[1](x, counts)
        loss = functions[2](x).sum()
        if k % 4 == 0:
            loss.backward()
        if k % 256 == 0:
            loss.item()

call(27000)  # caches fill
before = memory()
call(CALLS // 3)
print((memory() - before) >> 10, "KiB", file=sys.stderr)
assert memory() - before < 4 << 20, (memory() - before) >> 10
print(counts["calls"])
"""


@pytest.mark.slow
@pytest.mark.skipif(IN_PROCESS, reason="the script measures a process without an engine")
def test_memory_does_not_grow():
    result = run_script(SCRIPT.replace("CALLS", str(CALLS)), timeout=60 + CALLS // 2000)
    assert result.stdout.strip() == str(27000 + CALLS // 3), result.stderr
