"""Functions of torch that have the name of a module: importing the module does not replace them."""

import subprocess
import sys

NAMES = (
    "ao.quantization.fuse_modules ao.quantization.quantize autograd.gradcheck distributed._composable.contract export.unflatten "
    "multiprocessing.spawn nn.parallel.data_parallel nn.parallel.parallel_apply nn.parallel.replicate nn.utils.spectral_norm "
    "nn.utils.weight_norm torchao.quantization.quantize_"
)

PROGRAM = """
import importlib, sys, types
import {package} as torch
for name in sys.argv[1:]:
    module = importlib.import_module(f"{package}.{{name}}")
    parent, _, child = name.rpartition(".")
    found = getattr(importlib.import_module(f"{package}.{{parent}}"), child)
    assert isinstance(module, types.ModuleType), name
    assert callable(found), name
"""


def test_functions_stay(tmp_path):
    for package, options in (("torch", ("-m", "teletensor.as_torch")), ("teletensor", ())):
        script = tmp_path / f"{package}_names.py"
        script.write_text(PROGRAM.format(package=package))
        subprocess.run([sys.executable, *options, script, *NAMES.split()], check=True, timeout=60)
