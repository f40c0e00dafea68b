"""`import torch` gives teletensor in a prepared process."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

ASKS = """
import teletensor.as_torch
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader
import teletensor
assert torch.Tensor is teletensor.Tensor and nn is teletensor.nn and F is teletensor.nn.functional
assert torch.__version__ == "2.15.0" and teletensor.__version__ != torch.__version__
assert torch.torch is torch and torch.cat is teletensor.cat and "cat" in vars(torch) and "cat" in dir(torch)
assert torch.float32 is teletensor.float32 and not hasattr(torch, "no_such_name") and type(torch) is type(teletensor)
assert nn.__spec__.name == "teletensor.nn" and torch.Tensor.__module__ == "torch"
import torch._C._nn, torch._C._fft as fft
from torch._C import _TensorMeta
assert torch._C._nn is teletensor._C._nn and fft.fft_fft is torch.fft.fft and isinstance(torch.Tensor, _TensorMeta)
try:
    import torch.no_such_module.x
except ModuleNotFoundError:
    print("right")
"""

# The package of deploy/teletensor-as-torch is on the path, and nothing imports teletensor.as_torch first.
PACKAGE = """
import torch.nn as nn, torch
import teletensor
assert nn is teletensor.nn and torch.ones is teletensor.ones and torch.__version__ == "2.15.0"
print("right")
"""


@pytest.mark.parametrize(
    "code, said",
    [(ASKS, "right"), (PACKAGE, "right"), ("import sys; sys.modules['torch'] = sys\nimport teletensor.as_torch", "already")],
)
def test_import_in_a_new_process(torch, code, said):
    path = [*sys.path, str(ROOT / "deploy/teletensor-as-torch")] if code is PACKAGE else sys.path
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": ":".join(path)})
    assert said in done.stdout + done.stderr
    assert done.returncode == (said == "already")


def test_annotated_code_runs(torch):
    @torch.jit.script
    def double(x):
        return x if torch.jit.is_scripting() else 2 * x

    class Net(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):
            return self.hidden(x) + self.dropped(x)

        @torch.jit.ignore
        def hidden(self, x):
            return double(x)

        @torch.jit.unused
        def dropped(self, x):
            return x

    x = torch.ones(2)
    assert torch.jit.trace(Net(), x)(x).tolist() == torch.jit.script(Net())(x).tolist() == [3, 3]
    assert torch.jit.annotate(int, 3) == 3 and torch.jit.isinstance([1], torch.jit.annotations.List[int])
