"""A process in which `import torch` gives teletensor."""

import subprocess
import sys

import pytest

ASKS = """
import teletensor.as_torch
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader
import teletensor
assert torch.Tensor is teletensor.Tensor and nn is teletensor.nn and F is teletensor.nn.functional
assert torch.__version__ == "2.6.0" and teletensor.__version__ != torch.__version__
assert nn.__spec__.name == "teletensor.nn" and torch.Tensor.__module__ == "torch"
try:
    import torch.jit
except ModuleNotFoundError:
    print("right")
"""


@pytest.mark.parametrize(
    "code, said", [(ASKS, "right"), ("import sys; sys.modules['torch'] = sys\nimport teletensor.as_torch", "already")]
)
def test_in_a_process(torch, code, said):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert said in done.stdout + done.stderr
    assert done.returncode == (said == "already")
