"""``import torchao`` in programs written for PyTorch, and PyTorch's older names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import client_environment

SCRIPT = """
import torchao
import torch, torch.nn as nn
from torchao.quantization import quantize_, Int8WeightOnlyConfig, PerRow
from torchao.quantization.quant_api import Int4WeightOnlyConfig
from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e, convert_pt2e
from torchao.quantization.pt2e.quantizer import Quantizer, QuantizationSpec, ComposableQuantizer
from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import X86InductorQuantizer
from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
from torchao.quantization.pt2e import HistogramObserver, move_exported_model_to_eval
import teletensor
assert torchao is teletensor.torchao and torchao.quantize_ is quantize_ and torch.int4 is teletensor.int4
model, x = nn.Linear(32, 4), torch.ones(2, 32)
expected = model(x)
quantize_(model, Int8WeightOnlyConfig(granularity=PerRow()))
assert (model(x) - expected).abs().max() < 0.05
print("right")
"""


@pytest.mark.parametrize("as_path", [False, True])
def test_programs_import_torchao(tmp_path, as_path):
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    environment = client_environment()
    command = [sys.executable, "-m", "teletensor.as_torch", str(script)]
    if as_path:
        import teletensor

        folder = Path(teletensor.__file__).resolve().parent / "_torch_path"
        environment["PYTHONPATH"] = f"{folder}:{environment.get('PYTHONPATH', '')}"
        command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "right", done.stderr


def test_older_names(torch):
    from teletensor.ao import quantization

    assert callable(quantization.move_exported_model_to_eval) and callable(quantization.quantize_pt2e.prepare_pt2e)
    assert callable(quantization.quantizer.Quantizer) and callable(torch.export.export_for_training)
    assert torch.int4.limits == (-8, 7) and repr(torch.uint3) == "torch.uint3" and not torch.int4.is_floating_point
