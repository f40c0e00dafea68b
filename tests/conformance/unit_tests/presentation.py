"""Presents teletensor as `torch`, with PyTorch's torch.testing._internal loaded over it.

Names that teletensor lacks become placeholders when a file imports them or uses private ones of `torch` and `torch._C` at its
top level (tests/conformance/distributed/absent.py): only tests that use one fail, by AbsentName.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import unittest
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from ..distributed.absent import Absent, provide
from . import stand_ins

INTERNAL = "torch.testing._internal"
LOADED = (INTERNAL, "torch.testing._comparison", "torch.testing._utils", "torch._dynamo.testing")  # PyTorch's modules
OWN = {name: Path(__file__).with_name("dynamo_test_case.py") for name in ("torch._dynamo.test_case", "torch._inductor.test_case")}


@contextlib.contextmanager
def lenient(source: str, besides: str | None = None, package: str = "") -> Iterator[None]:
    """While a file of a package is imported. `besides`: a package from which it imports names that exist."""
    provide(source, besides, package)
    before, Absent.importing = Absent.importing, True
    try:
        yield
    finally:
        Absent.importing = before


def _name_parameters(common_utils: ModuleType) -> None:
    """Gives tests PyTorch's names: memory formats and layouts, which are texts in teletensor, are numbered."""
    before = common_utils.parametrize._formatted_str_repr

    def named(self: Any, index: int, name: str, value: Any) -> str:
        return f"{name}{index}" if isinstance(value, str) and type(value) is not str else before(self, index, name, value)

    common_utils.parametrize._formatted_str_repr = named


def _name_modules(common_modules: ModuleType) -> None:
    """Gives tests of modules PyTorch's names."""
    names = common_modules.MODULE_CLASS_NAMES
    names.update({module: name.removeprefix("teletensor.") for module, name in names.items()})


class _Loader(SourceFileLoader):
    """Executes a file of PyTorch."""

    def exec_module(self, module: ModuleType) -> None:
        with lenient(Path(self.path).read_text(), INTERNAL, module.__package__):
            super().exec_module(module)
        if module.__name__ == f"{INTERNAL}.common_utils":
            _name_parameters(module)
        if module.__name__ == f"{INTERNAL}.common_modules":
            _name_modules(module)


class _Finder:
    """Finds PyTorch's modules."""

    def __init__(self, folder: Path):
        self._folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name in OWN:
            return importlib.util.spec_from_file_location(name, OWN[name])
        if name not in LOADED and not name.startswith(f"{INTERNAL}."):
            return None
        folder = self._folder.joinpath(*name.split(".")[1:-1])
        spec = PathFinder.find_spec(name, [str(folder)] if name in LOADED else path)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def _provide_private(owner: Any, name: str) -> None:
    """Makes private attributes of a module, or of objects of a class, exist while files are imported."""
    before = vars(owner).get("__getattr__")

    def attribute(*args: str) -> Any:
        try:
            if before is None:
                raise AttributeError(f"module {name!r} has no attribute {args[-1]!r}")
            return before(*args)
        except AttributeError:
            if not Absent.importing or not ("._" in name or args[-1].startswith("_")) or args[-1].startswith("__"):
                raise
            return Absent(f"{name}.{args[-1]}")

    owner.__getattr__ = attribute


def _accept_names_only(operator: Any) -> None:
    """Makes a class of higher-order operators accept PyTorch's construction: implementations are added by dispatch key.

    Only tests that call such an operator fail.
    """
    create = operator.__init__

    def created(self: Any, name: str, function: Any = None, **_: Any) -> None:
        create(self, name, function or Absent(f"torch._ops.HigherOrderOperator({name!r})"))

    operator.__init__, operator.py_impl = created, lambda self, key: lambda function: function


def _wait_within_assert_raises() -> None:
    """Makes calls within assertRaises wait for their errors."""
    context = unittest.case._AssertRaisesContext
    enter, leave = context.__enter__, context.__exit__

    def entered(self: Any) -> Any:
        self.waits = importlib.import_module("teletensor").immediate_errors()
        self.waits.__enter__()
        return enter(self)

    def left(self: Any, *exception: Any) -> Any:
        self.waits.__exit__(*exception)
        return leave(self, *exception)

    context.__enter__, context.__exit__ = entered, left


def install() -> None:
    """Makes `import torch` return teletensor."""
    pytorch = importlib.util.find_spec("torch")
    import teletensor.as_torch  # noqa: F401

    torch = importlib.import_module("torch")

    stand_ins.install()
    _provide_private(torch, "torch")
    _provide_private(torch._C, "torch._C")
    _provide_private(type(torch.ops.aten), "torch.ops.aten")
    _provide_private(type(torch.ops.aten.cat), "torch.ops.aten._operator")  # overloads
    for name in ("torch._C._functorch", "torch.fx.experimental._config", "torch.utils._pytree"):
        _provide_private(importlib.import_module(name), name)
    _wait_within_assert_raises()
    _accept_names_only(torch._ops.HigherOrderOperator)
    if pytorch:
        sys.meta_path.insert(0, _Finder(Path(pytorch.origin).parent))
        importlib.import_module("torch.testing._utils")  # an attribute of torch.testing
