"""Paths of PyTorch's and torchao's modules whose code has another path here, most of them of quantization: a table.

A module of the table has the names of the module with the code. It is made when it is imported, by
the finder of _lazy.py.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
from types import ModuleType
from typing import Any

_ROOT = "teletensor."
_NN = ("ao.nn.quantized", "ao.nn.quantized.dynamic", "ao.nn.quantized.reference", "ao.nn.qat", "ao.nn.qat.dynamic", "ao.nn.intrinsic",
       "ao.nn.intrinsic.qat", "ao.nn.intrinsic.quantized", "ao.nn.intrinsic.quantized.dynamic", "ao.nn.quantizable")  # fmt: skip
_BACKENDS = ("fbgemm", "x86")

# Packages whose modules, also those of their packages, have the same names below another path. The longest entry decides.
PACKAGES = {
    "nn.intrinsic": "ao.nn.intrinsic",
    "nn.qat": "ao.nn.qat",
    "nn.quantizable": "ao.nn.quantizable",
    "nn.quantized": "ao.nn.quantized",
    "nn.quantized._reference": "ao.nn.quantized.reference",
    "quantization": "ao.quantization",
    **{f"{package}.modules": package for package in _NN},
}
MODULES = {
    "ao.nn.intrinsic.qat.linear_relu": "ao.nn.intrinsic.qat.linear_fused",
    "ao.nn.intrinsic.quantized.bn_relu": "ao.nn.intrinsic.quantized.batch_norm",
    "ao.nn.intrinsic.quantized.conv_add": "ao.nn.intrinsic.quantized.conv",
    "ao.nn.intrinsic.quantized.conv_relu": "ao.nn.intrinsic.quantized.conv",
    "ao.nn.intrinsic.quantized.linear_relu": "ao.nn.intrinsic.quantized.linear",
    "ao.nn.intrinsic.quantized.dynamic.linear_relu": "ao.nn.intrinsic.quantized.dynamic.linear",
    "ao.quantization.fx._decomposed": "_quantized.decomposed",
    "ao.quantization.fx.convert": "ao.quantization.fx._convert",
    "ao.quantization.fx.fuse": "ao.quantization.fx._fuse",
    "ao.quantization.fx.prepare": "ao.quantization.fx._prepare",
    **{f"ao.quantization.backend_config.{name}": "ao.quantization.backend_config.native" for name in _BACKENDS},
    "autograd.anomaly_mode": "autograd.anomaly",
    "distributed.checkpoint.quantized_hf_storage": "distributed.checkpoint.hf_storage",
    "distributed.optim.optimizer": "distributed.optim.distributed_optimizer",
    "distributed.pipelining._IR": "distributed.pipelining._split",
    "distributed.rpc.backend_registry": "distributed.rpc.options",
    "export.decomp_utils": "export.exported_program",
    "package.file_structure_representation": "package._listing",
    "package.glob_group": "package._patterns",
    "package.importer": "package._importers",
    "package.package_exporter": "package",
    "package.package_importer": "package",
    "quantization._numeric_suite": "ao.ns._numeric_suite",
    "quantization._numeric_suite_fx": "ao.ns._numeric_suite_fx",
    "torchao.quantization.pt2e.convert": "ao.quantization.pt2e.convert",
    "torchao.quantization.pt2e.export_utils": "ao.quantization.pt2e.export_utils",
    "torchao.quantization.pt2e.fake_quantize": "ao.quantization.fake_quantize",
    "torchao.quantization.pt2e.observer": "ao.quantization.observer",
    "torchao.quantization.pt2e.prepare": "ao.quantization.pt2e.prepare",
}


def path_of_code(path: str) -> str | None:
    """The path of the module with the code, without "teletensor."; None for paths that are not in the table."""
    if path in MODULES:
        return MODULES[path]
    package, rest = path, ""
    while package:
        if package in PACKAGES and package + rest != PACKAGES[package] + rest:
            return PACKAGES[package] + rest
        package, _, name = package.rpartition(".")
        rest = f".{name}{rest}"
    return None


def _imported(path: str) -> ModuleType:
    """The module of a path. Its packages are imported first: an import of the module alone holds its lock while it waits for theirs,
    and a thread that imports a package may wait for the module."""
    package = path.rpartition(".")[0]
    if package:
        _imported(package)
    return importlib.import_module(path)


def _file_of(code: str) -> str | None:
    """The file of a module below this package. Nothing is imported: finders are called under the lock of all imports."""
    parent, _, _ = code.rpartition(".")
    folder = os.path.join(os.path.dirname(__file__), *parent.split("."))
    found = importlib.machinery.PathFinder.find_spec(_ROOT + code, [folder])
    return None if found is None else found.origin


class _Loader:  # a loader by its methods: importlib.abc imports slow modules
    def __init__(self, code: str) -> None:
        self.code = code

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module the names of the one with the code."""
        code = _imported(self.code)
        module.__doc__ = f"{module.__name__}: another path of {self.code}."
        module.__all__ = [*getattr(code, "__all__", [name for name in dir(code) if not name.startswith("_")])]

        def attribute(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            if (path := f"{module.__name__}.{name}") in sys.modules:
                return sys.modules[path]
            return getattr(code, name)

        module.__getattr__ = attribute
        module.__dir__ = lambda: sorted({*vars(module), *dir(code)})


def spec_of(name: str) -> importlib.machinery.ModuleSpec | None:
    """How a module of the table is made; None for other modules, and for those whose code does not exist."""
    code = path_of_code(name.removeprefix(_ROOT)) if name.startswith(_ROOT) else None
    if code is None:
        return None
    while (file := _file_of(code)) is None:
        code = path_of_code(code)  # a path of the table may lead to another one
        if code is None:
            return None
    spec = importlib.machinery.ModuleSpec(name, _Loader(_ROOT + code), origin=file, is_package=True)
    spec.has_location = True  # inspect and debuggers show the code
    return spec
