"""Defines operators of torch.ops.quantized by the names of their declarations in schemas.txt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .._library import registry
from .._library.handlers import kernel_classes
from .._library.schema import parse
from .tensor import FewBitsTensor, QuantizedTensor

_FILE = Path(__file__).with_name("schemas.txt")  # PyTorch's declarations of the namespace
_kernels: dict[str, Callable] = {}  # by the operator's name with its overload


def kernel(*names: str) -> Callable[[Callable], Callable]:
    """Makes a function the kernel of operators, such as "add" and "add.Scalar"."""

    def decorate(function: Callable) -> Callable:
        _kernels.update(dict.fromkeys(names, function))
        return function

    return decorate


def define_all() -> None:
    """Defines every operator of the file; one without a kernel raises NotImplementedError when it is called."""
    kernel_classes.update({QuantizedTensor, FewBitsTensor})
    names = set()
    for line in _FILE.read_text().splitlines():
        schema = parse(line)
        operator = registry.define(schema)
        name = operator.name().partition("::")[2]
        names.add(name)
        if name in _kernels:
            operator.kernels["CompositeExplicitAutograd"] = _kernels[name]
    if unknown := set(_kernels) - names:
        raise AssertionError(f"kernels of undeclared operators: {sorted(unknown)}")
