"""Paths of quantization modules whose code has another path: the table of _older_paths.py."""

import importlib
import inspect
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


def run(program: str, *arguments: str) -> str:
    """What a program prints in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=120)
    return done.stdout or done.stderr


def test_finding_a_path_imports_nothing():
    """Finders are called under the lock of all imports: one that waits for a module's lock may wait for good."""
    program = (
        "import sys, teletensor\n"
        "from teletensor import _older_paths\n"
        "before = set(sys.modules)\n"
        "assert _older_paths.spec_of('teletensor.quantization.observer').origin.endswith('observer.py')\n"
        "assert _older_paths.spec_of('teletensor.nn.quantized.nothing') is None\n"
        "print(sorted(set(sys.modules) - before))\n"
    )
    assert run(program) == "[]\n"


def test_the_package_imports_none_of_its_modules():
    """Otherwise a thread that imports it and one that imports such a module wait for each other."""
    program = (
        "import sys, teletensor.ao.quantization\n"
        "print([name for name in sys.modules if name.startswith('teletensor.ao.quantization.')])\n"
    )
    assert run(program) == "[]\n"


def test_names_of_the_package_are_those_of_its_modules():
    package = importlib.import_module("teletensor.ao.quantization")
    for module in ("fake_quantize", "observer", "qconfig", "qconfig_mapping", "quantization_mappings"):
        code = importlib.import_module(f"teletensor.ao.quantization.{module}")
        assert [name for name in code.__all__ if getattr(package, name) is not getattr(code, name)] == []
        assert {name for name in code.__all__ if not name.startswith("DEFAULT_")} <= set(package.__all__) <= set(dir(package))


IN_THREADS = """
import importlib, sys, threading, teletensor
names = sys.argv[1:]
start, errors = threading.Barrier(len(names)), []
def load(name):
    start.wait()
    try:
        importlib.import_module("teletensor." + name)
    except BaseException as error:
        errors.append((name, repr(error)))
threads = [threading.Thread(target=load, args=(name,), name=name, daemon=True) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(20)
print(errors, [thread.name for thread in threads if thread.is_alive()])
"""


def test_imports_in_several_threads():
    names = (
        "quantization.observer ao.quantization.observer ao.quantization quantization nn.quantized nn.qat nn.intrinsic "
        "ao.quantization.fake_quantize quantization.qconfig nn.quantizable ao.quantization.quantize torchao.quantization.pt2e.observer"
    )
    for _ in range(3):
        assert run(IN_THREADS, *names.split()) == "[] []\n"


def test_source_of_an_older_path_is_the_code(torch):
    found = importlib.import_module(f"{torch.__name__}.quantization.observer")
    code = importlib.import_module(f"{torch.__name__}.ao.quantization.observer")
    assert inspect.getsource(found) == inspect.getsource(code)
