"""Signatures of calls of submodules, for preserve_module_call_signature: which values were their arguments and results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .._C import Tensor
from ..fx.node import Node
from ..nn import Module
from ..utils import _pytree as pytree
from ._errors import UserError


class Call(NamedTuple):
    """A recorded call of a module: its leaves are nodes and constants."""

    name: str
    inputs: list[Any]
    outputs: list[Any]
    in_spec: Any
    out_spec: Any


def check_names(module: Module, names: tuple[str, ...]) -> None:
    """Raises UserError for names that are no submodules."""
    known = {n for n, _ in module.named_modules()}
    for name in names:
        if name not in known or not name:
            raise UserError(f"[export] preserve_module_call_signature: expected names of submodules, got {name!r}")


@contextlib.contextmanager
def recorded_calls(module: Module, names: tuple[str, ...], node_of: Callable[[Tensor], Node], calls: list[Call]) -> Iterator[None]:
    """Appends the calls of the named submodules, in the order in which they end."""
    handles, begun = [], {n: 0 for n in names}
    pending: list[tuple[str, list[Any], Any]] = []

    def leaves_of(value: Any) -> tuple[list[Any], Any]:
        leaves, spec = pytree.tree_flatten(value)
        return [node_of(v) if isinstance(v, Tensor) else v for v in leaves], spec

    for name in names:

        def before(_module: Module, args: tuple, kwargs: dict[str, Any], name: str = name) -> None:
            number = begun[name]
            begun[name] += 1
            pending.append((f"{name}@{number}" if number else name, *leaves_of((args, kwargs))))

        def after(_module: Module, _args: tuple, _kwargs: dict[str, Any], result: Any) -> None:
            label, inputs, in_spec = pending.pop()
            outputs, out_spec = leaves_of(result)
            calls.append(Call(label, inputs, outputs, in_spec, out_spec))

        owner = module.get_submodule(name)
        handles.append(owner.register_forward_pre_hook(before, prepend=True, with_kwargs=True))
        handles.append(owner.register_forward_hook(after, with_kwargs=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
