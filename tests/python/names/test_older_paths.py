"""Paths of quantization modules whose code has another path: the table of _older_paths.py."""

import importlib
import subprocess
import sys

import pytest

from teletensor import _older_paths

# module of torch or torchao, names
PATHS = [
    ("nn.quantized", "Linear Conv2d LSTM functional dynamic modules"),
    ("nn.quantized.functional", "linear conv2d interpolate hardswish"),
    ("nn.quantized.dynamic", "Linear LSTM GRU"),
    ("nn.quantized.modules.linear", "Linear LinearPackedParams"),
    ("nn.quantized._reference.modules", "Linear Conv2d"),
    ("nn.qat", "Linear Conv2d Embedding"),
    ("nn.qat.dynamic.modules", "Linear"),
    ("nn.intrinsic", "ConvReLU2d LinearReLU"),
    ("nn.intrinsic.qat.modules", "ConvBn2d LinearReLU"),
    ("nn.intrinsic.quantized.dynamic", "LinearReLU"),
    ("nn.quantizable.modules", "LSTM MultiheadAttention"),
    ("ao.nn.quantized.modules", "Linear Conv1d Quantize"),
    ("ao.nn.quantized.modules.conv", "Conv1d ConvTranspose3d"),
    ("ao.nn.quantized.dynamic.modules.rnn", "LSTM GRU"),
    ("ao.nn.intrinsic.qat.modules.linear_relu", "LinearReLU"),
    ("ao.nn.intrinsic.quantized.modules.conv_add", "ConvAdd2d ConvAddReLU2d"),
    ("ao.quantization.fx._decomposed", "quantize_per_tensor dequantize_per_channel"),
    ("ao.quantization.fx.prepare", "prepare"),
    ("ao.quantization.backend_config.fbgemm", "get_fbgemm_backend_config"),
    ("quantization.observer", "MinMaxObserver HistogramObserver"),
    ("quantization.quantize_fx", "prepare_fx convert_fx"),
    ("quantization.fx", ""),
    ("torchao.quantization.pt2e.observer", "MinMaxObserver PerChannelMinMaxObserver"),
    ("torchao.quantization.pt2e.fake_quantize", "FakeQuantize"),
    ("torchao.quantization.pt2e.prepare", "prepare"),
]


@pytest.mark.parametrize(("module", "names"), PATHS)
def test_names_are_those_of_the_code(torch, module, names):
    found = importlib.import_module(f"{torch.__name__}.{module}")
    code = importlib.import_module(f"{torch.__name__}.{_older_paths.path_of_code(module)}")
    for name in names.split():
        if name not in ("functional", "dynamic", "modules"):
            assert getattr(found, name) is getattr(code, name)
    assert {n for n in names.split() if n[0].isupper()} <= set(dir(found))


@pytest.mark.parametrize("module", sorted({*_older_paths.PACKAGES, *_older_paths.MODULES}))
def test_every_path_of_the_table_can_be_imported(torch, module):
    importlib.import_module(f"{torch.__name__}.{module}")


@pytest.mark.parametrize("module", ["nn.quantized.nothing", "quantization.nothing", "nn.intrinsic.modules.nothing", "nn.nothing"])
def test_paths_outside_the_table_do_not_exist(torch, module):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{torch.__name__}.{module}")


def test_attributes_that_do_not_exist(torch):
    with pytest.raises(AttributeError):
        torch.nn.quantized.functional.nothing  # noqa: B018
    assert path_loops() == []


def path_loops() -> list[str]:
    """Paths whose code is at a path of the table, which would be imported in two steps."""
    codes = {*_older_paths.MODULES.values(), *_older_paths.PACKAGES.values()}
    return [code for code in codes if code in _older_paths.MODULES]


def test_unchanged_programs_import_them():
    program = (
        "import teletensor.as_torch\n"
        "import torch.nn.quantized.functional as qF\n"
        "from torch.nn.intrinsic.qat import ConvBn2d\n"
        "from torch.nn.quantized import *\n"
        "from torch.ao.nn.quantized.modules.linear import Linear as L\n"
        "from torchao.quantization.pt2e.observer import MinMaxObserver\n"
        "import torch\n"
        "assert torch.nn.quantized.Linear is L is Linear and torch.nn.quantized.functional is qF and qF.hardswish is not None\n"
        "print('imported')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "imported\n", done.stderr
