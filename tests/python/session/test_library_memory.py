"""Memory that libraries keep: compiled kernels, plans, workspaces. The scripts run in processes of their own."""

import subprocess
import sys

import pytest

from tests.conftest import BUILD, ROOT, client_environment
from tests.fuzz import library_fuzz as fuzz

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BUILD.name != "build", reason="engines with sanitizers use more memory than the limits checked here"),
]

PRELUDE = """
import sys
import teletensor as torch
from teletensor.nn import functional as F
from tests.fuzz import library_fuzz as fuzz
address, pid = sys.argv[1], int(sys.argv[2])
fuzz.run_session(torch, address, pid, 0, 3)  # what the process allocates once
before = fuzz.resident(pid, "VmRSS")
"""

SCRIPTS = {
    "random shapes": "fuzz.run_session(torch, address, pid, 7)",
    # A primitive for 16,000 columns took 15 MB, one for 1,000,000 columns 3.7 GB.
    "many lengths": """
torch.connect(address)
for i in range(40):
    F.conv1d(torch.randn(2, 4, 16_000 + i), torch.randn(4, 4, 5))[0, 0, 0].item()
assert fuzz.resident(pid, "VmHWM") < before + (96 << 20), fuzz.resident(pid, "VmHWM")
""",
    # A primitive for 2,000 columns at a stride of 200 took 22 MB.
    "wide strides": """
torch.connect(address)
for i in range(12):
    F.conv1d(torch.randn(1, 2, 400_000), torch.randn(2, 2, 5), stride=200 + i)[0, 0, 0].item()
assert fuzz.resident(pid, "VmHWM") < before + (96 << 20), fuzz.resident(pid, "VmHWM")
""",
    "long padding": """
torch.connect(address)
F.conv1d(torch.randn(1, 2, 5), torch.randn(2, 2, 3), padding=500_000).sum().item()
assert fuzz.resident(pid, "VmHWM") < before + (96 << 20), fuzz.resident(pid, "VmHWM")
""",
    "workspaces": """
torch.connect(address)
x, a = torch.randn(3_000_017), torch.randn(1500, 1500)  # a prime length needs 25 times the input
for call in (lambda: torch.fft.rfft(x)[0].abs(), lambda: torch.linalg.svd(a)[1].sum(), lambda: torch.linalg.matrix_exp(a).sum()):
    try:
        call().item()
    except torch.OutOfMemoryError as error:
        assert "workspace of" in str(error), error
    else:
        raise AssertionError("expected an out-of-memory error")
assert torch.ones(3).sum().item() == 3
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_memory_stays_within_the_limit(own_daemon, name):
    engine = own_daemon("--session-memory-limit", str(fuzz.LIMIT))
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + SCRIPTS[name], engine.address, str(engine.process.pid)], cwd=ROOT, text=True,
        capture_output=True, timeout=300, env=client_environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
