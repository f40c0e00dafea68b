"""``import teletensor.as_torch``: afterwards ``import torch`` returns teletensor in this process.

For libraries that import PyTorch by name (einops, opt_einsum, TensorLy): they treat teletensor's tensors as PyTorch's.
PyTorch itself can then not be imported; if it has already been imported, this module raises ImportError.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

import teletensor

_TORCH_VERSION = "2.6.0"  # the PyTorch release whose names and semantics teletensor follows


class _Torch(ModuleType):
    """teletensor under PyTorch's name and version."""

    __version__ = _TORCH_VERSION

    def __getattr__(self, name: str) -> Any:
        return getattr(teletensor, name)

    def __dir__(self) -> list[str]:
        return dir(teletensor)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds module torch.x if teletensor.x exists."""

    def __init__(self) -> None:
        self._specs: dict[str, Any] = {}  # original specs by torch name; exec_module restores them

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        top, _, rest = name.partition(".")
        if top != "torch" or rest and importlib.util.find_spec(f"teletensor.{rest}") is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        _, _, rest = spec.name.partition(".")
        if not rest:
            return _Torch("torch", teletensor.__doc__)
        module = importlib.import_module(f"teletensor.{rest}")
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        for name in [name for name, spec in self._specs.items() if spec.name == module.__name__]:
            module.__spec__ = self._specs.pop(name)


if "torch" in sys.modules and not isinstance(sys.modules["torch"], _Torch):
    raise ImportError("PyTorch is already imported in this process, so teletensor cannot replace it")
if "torch" not in sys.modules:
    sys.meta_path.insert(0, _Finder())
    teletensor.Tensor.__module__ = "torch"  # opt_einsum selects its backend by this name
