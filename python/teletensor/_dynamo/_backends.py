"""Backends: what runs the graphs that torch.compile captures."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .._C import Tensor
from ._located_code import located
from .exc import InvalidBackend

_registered: dict[str, tuple[Callable, tuple[str, ...]]] = {}
# Backends of modules that import this one, which are imported at their first use.
_LATE = {name: "teletensor.compiler._engine_backend" for name in ("inductor", "teletensor")}

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def is_engine(backend: Any) -> bool:
    """Whether a backend, given by its name or itself, makes Programs."""
    module = sys.modules.get(_LATE["inductor"])
    return isinstance(backend, str) and backend in _LATE or module is not None and backend is vars(module).get("engine")


def register_backend(compiler_fn: Callable | None = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Registers a function that receives a GraphModule and example inputs and returns a callable. Also a decorator.

    Args:
        compiler_fn: the function.
        name: its name for torch.compile; by default its ``__name__``.
        tags: list_backends() leaves out names with excluded tags.
    """
    if compiler_fn is None:
        return lambda function: register_backend(function, name, tags)
    if not callable(compiler_fn):
        raise TypeError(f"[register_backend] expected a function, got {type(compiler_fn).__name__}")
    name, module = name or compiler_fn.__name__, getattr(compiler_fn, "__module__", None)
    if name in _registered or _LATE.get(name, module) != module:
        raise AssertionError(f"duplicate name: {name}")
    _registered[name] = (compiler_fn, tuple(tags))
    return compiler_fn


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """The names of the backends, without those that have one of the excluded tags."""
    known = dict.fromkeys(_LATE, ()) | {n: tags for n, (_, tags) in _registered.items()}
    return sorted(n for n, tags in known.items() if not set(exclude_tags or ()) & set(tags))


def lookup_backend(compiler_fn: Any) -> Callable:
    """The function of a backend that is given by its name or itself. Raises InvalidBackend for an unknown name."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn not in _registered and compiler_fn in _LATE:
        importlib.import_module(_LATE[compiler_fn])
    if compiler_fn not in _registered:
        from importlib import metadata  # takes longer than capturing a function

        for entry in metadata.entry_points(group="torch_dynamo_backends"):
            if entry.name == compiler_fn:
                register_backend(entry.load(), entry.name)
                break
        else:
            raise InvalidBackend(f"Invalid backend: {compiler_fn!r}, see `torch._dynamo.list_backends()` for available backends.")
    return _registered[compiler_fn][0]


class _RestoringModes:
    """Runs a graph that changes modes of the thread; restores them if it raises."""

    def __init__(self, graph: Callable) -> None:
        self.graph = graph

    def __call__(self, *inputs: Any) -> Any:
        from ._tensors import mode_state, set_mode_state

        before = mode_state()
        try:
            return self.graph(*inputs)
        finally:
            set_mode_state(before)


def plain_forward(module: Any) -> Callable:
    """The generated function of a GraphModule at the user's lines, without the hooks of modules."""
    from ._tensors import MODE_FUNCTIONS

    forward = located(module)
    if any(node.op == "call_function" and node.target in MODE_FUNCTIONS for node in module.graph.nodes):
        return _RestoringModes(forward)
    return forward


@register_backend(tags=("debug",))
def eager(gm: Any, _fake_tensor_inputs: Sequence[Tensor], **kwargs: Any) -> Callable:
    """Runs the graph's operators one by one."""
    if kwargs:
        raise TypeError(f"[eager] expected no options, got {', '.join(kwargs)}")
    return plain_forward(gm)


@register_backend(tags=("debug",))
def aot_eager(gm: Any, _fake_tensor_inputs: Sequence[Tensor], **kwargs: Any) -> Callable:
    """Runs the graph's operators one by one; their backward pass is recorded by the engine, as without compilation."""
    return eager(gm, _fake_tensor_inputs, **kwargs)


register_backend(aot_eager, "aot_eager_decomp_partition", ("debug",))


def accepts_keywords(function: Callable) -> bool:
    """Whether a backend accepts options."""
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.kind is p.VAR_KEYWORD or p.name == "options" for p in parameters)
