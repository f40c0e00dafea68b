"""``import teletensor.as_torch``: afterwards ``import torch`` returns teletensor in this process, ``import torchao``
teletensor.torchao, and ``import functorch`` teletensor.functorch.

For libraries that import PyTorch by name (einops, transformers, timm): they treat teletensor's tensors as PyTorch's.
PyTorch itself can then not be imported; if it has already been imported, this module raises ImportError. ``python -m
teletensor.as_torch script.py args...``, or ``teletensor run``, runs an unmodified program and its child processes in this
way, with PyTorch's package metadata; the distribution in deploy/teletensor-as-torch does it for a whole environment.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import teletensor

from . import _torch_pickles, version
from ._lazy import keep_functions
from .torch_version import TorchVersion

_TORCH_VERSION = TorchVersion("2.15.0")  # the PyTorch release whose names and semantics teletensor follows
_PRIVATE = "_C."  # torch._C's submodules are those of teletensor._torch_c_compat; teletensor._C is an extension module


# Types of attributes that are kept in torch's namespace; others, such as numbers, may be computed at each use.
_CONSTANT = (type, ModuleType, FunctionType, BuiltinFunctionType, teletensor.dtype)


def _torch_module() -> ModuleType:
    """teletensor under PyTorch's name and version. A plain module: Python finds the attributes of subclasses more slowly."""
    torch = ModuleType("torch", teletensor.__doc__)

    def attribute(name: str) -> Any:
        if name == "torch":  # PyTorch's module has itself as attribute
            return torch
        value = getattr(teletensor, name)
        if isinstance(value, _CONSTANT) and vars(teletensor).get(name) is value:
            setattr(torch, name, value)  # found without this function from now on
        return value

    torch.__version__, torch.__getattr__, torch.__dir__ = _TORCH_VERSION, attribute, lambda: dir(teletensor)
    version.__version__ = str(_TORCH_VERSION)
    torch._is_teletensor = True
    return torch


def _own_name(torch_name: str) -> str:
    """Returns the name of teletensor's module for a submodule of torch."""
    top, _, rest = torch_name.partition(".")
    if top in ("torchao", "functorch"):
        return f"teletensor.{torch_name}"
    return f"teletensor._torch_c_compat.{rest.removeprefix(_PRIVATE)}" if rest.startswith(_PRIVATE) else f"teletensor.{rest}"


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a parent is missing or is no package
        return False


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds module torch.x if teletensor.x exists, torchao.x if teletensor.torchao.x does, and functorch likewise."""

    def __init__(self) -> None:
        self._specs: dict[str, Any] = {}  # original specs by torch name; exec_module restores them

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        top, _, rest = name.partition(".")
        if top not in ("torch", "torchao", "functorch") or (name != "torch" and not _exists(_own_name(name))):
            return None
        own = importlib.util.find_spec(_own_name(name)) if name != "torch" else None
        package = own is None or own.submodule_search_locations is not None or name == "torch._C"
        return importlib.machinery.ModuleSpec(name, self, is_package=package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        if spec.name == "torch":
            return _torch_module()
        module = importlib.import_module(_own_name(spec.name))
        parent, _, child = module.__name__.rpartition(".")
        if isinstance(vars(sys.modules[parent]).get(child), (FunctionType, type)):  # the import of torch.x.child would replace it
            keep_functions(sys.modules[parent], child)
        self._specs[spec.name] = module.__spec__
        return module

    def get_code(self, name: str) -> Any:
        """The code of a module that ``python -m torch.x`` runs."""
        spec = importlib.util.find_spec(_own_name(name))
        return spec.loader.get_code(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        for name in [name for name, spec in self._specs.items() if spec.name == module.__name__]:
            module.__spec__ = self._specs.pop(name)


if "torch" in sys.modules and not hasattr(sys.modules["torch"], "_is_teletensor"):
    raise ImportError("PyTorch is already imported in this process, so teletensor cannot replace it")
if "torch" not in sys.modules:
    sys.meta_path.insert(0, _Finder())
    teletensor._C.__path__ = []  # so that submodules of torch._C are looked for
    _torch_pickles.provide()
    teletensor.Tensor.__module__ = "torch"  # opt_einsum selects its backend by this name

if __name__ == "__main__":
    from teletensor._script import main

    sys.exit(main())
