"""The names under which graphs print callables and types, and generated code refers to them.

teletensor's functions are named as PyTorch's (torch.add, torch.nn.functional.relu): generated code binds `torch` to
teletensor, so that the same text runs with either library.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import types
from typing import Any, Callable

import teletensor

from .._C import Tensor

# Functions of torch.nn.functional that PyTorch takes from torch itself; its graphs name them torch.X.
_FUNCTIONAL_ALIASES = frozenset(
    "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d avg_pool1d adaptive_avg_pool1d "
    "pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle pairwise_distance pdist cosine_similarity "
    "prelu hardshrink selu_ celu_ relu_ rrelu_ threshold_".split()
)
# Where a callable is looked up, in this order; "" is teletensor itself.
_NAMESPACES = (
    "functional", "", "nn.functional", "linalg", "fft", "special", "signal.windows", "nn.init", "utils.checkpoint", "fx",
)  # fmt: skip


def _is_ours(module: str | None) -> bool:
    """Whether a module is teletensor's, by either of its names."""
    return module is not None and module.partition(".")[0] in ("teletensor", "torch")


def typename(value: Any) -> str:
    """The qualified name of a value's type, teletensor's types as torch's."""
    kind = type(value) if not isinstance(value, type) else value
    module = kind.__module__ or ""
    if module == "builtins":
        return kind.__qualname__
    return f"{_as_torch(module)}.{kind.__qualname__}"


def _as_torch(path: str) -> str:
    """A dotted path with its first part teletensor replaced by torch."""
    first, dot, rest = path.partition(".")
    return f"torch{dot}{rest}" if first == "teletensor" else path


def _lookup(root: Any, path: str) -> Any:
    """The attribute of a module at a dotted path; None if there is none."""
    for part in filter(None, path.split(".")):
        root = getattr(root, part, None)
    return root


def public_path(target: Any) -> str | None:
    """The path `torch...` that generated code can evaluate to get a callable or type of teletensor; None if none exists.

    Args:
        target: a hashable object.
    """
    if not isinstance(getattr(target, "__name__", None), str) or isinstance(target, types.ModuleType):
        return None
    module = getattr(target, "__module__", None)
    return _find(target) if module is None or _is_ours(module) else None


@functools.cache
def _find(target: Any) -> str | None:
    """The path of an object that may be teletensor's. Other objects are not cached, because the cache would keep them
    alive.
    """
    name, module = target.__name__, getattr(target, "__module__", None)
    if inspect.getattr_static(Tensor, name, None) is target:
        return f"torch.Tensor.{name}"
    if (module or "").startswith("torch._ops."):  # torch.ops.<namespace>.<name>, an operator or one of its overloads
        path = f"{module.removeprefix('torch._')}.{name}"
        return f"torch.{path}" if _lookup(teletensor, path) is target else None
    order = list(_NAMESPACES[1:] if isinstance(target, type) else _NAMESPACES)
    if (module or "").startswith(("teletensor.nn", "torch.nn")) and name not in _FUNCTIONAL_ALIASES:
        order.insert(0, "nn.functional")
    for namespace in order:
        if _lookup(_lookup(teletensor, namespace), name) is target:
            return ".".join(filter(None, ("torch", namespace, name)))
    qualname = getattr(target, "__qualname__", name)
    for path in dict.fromkeys((qualname, name)):
        if module and _lookup(sys.modules.get(module), path) is target:
            return f"{_as_torch(module)}.{path}"
    return None


def is_from_torch(target: Any) -> bool:
    """Whether generated code refers to an object by a path that starts with `torch`, without a global of its own."""
    try:
        return public_path(target) is not None
    except TypeError:  # not hashable
        return False


def _qualified_name(target: Callable) -> str:
    """The name of a callable in printed graphs, and the hint for its name in generated code.

    Raises:
        RuntimeError: for a lambda whose source is unknown.
    """
    name = target.__name__
    if getattr(builtins, name, None) is target:
        return name
    path = public_path(target)
    if path is not None:
        return path
    if name == "<lambda>":
        try:
            name = inspect.getsource(target).split("=")[0].strip()
        except Exception as e:
            raise RuntimeError("Unable to represent lambda") from e
    module = target.__module__
    if module is None:
        raise RuntimeError(f"cannot find module for {target}")
    return f"{_as_torch(module)}.{name}"


def _type_repr(kind: Any) -> str:
    """A type in annotations: the qualified name of a class, the name of a function, repr() of anything else."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        return public_path(kind) or f"{_as_torch(kind.__module__)}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    if isinstance(kind, types.FunctionType):
        return kind.__name__
    return repr(kind)
