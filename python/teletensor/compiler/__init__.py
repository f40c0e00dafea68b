"""torch.compiler: Programs, and the decorators and settings of torch.compile.

trace() makes a Program of a function, which the engine runs as one instruction; explain() shows what the engine makes of it.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import _C
from .._dynamo._backends import list_backends
from .._dynamo._stance import set_stance
from .._dynamo.eval_frame import reset
from .._functions import as_tensor
from .._lazy import lazy_attributes
from .._tracing_state import is_compiling

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_decorators": "allow_in_graph assume_constant_result disable nonstrict_trace substitute_in_graph",
    "_compile": "compile get_default_backend set_default_backend", "programs": "ProgramStats TracedProgram explain stats trace",
}  # fmt: skip
__getattr__, __dir__ = lazy_attributes(globals(), ("config", "programs"), _NAMES)

__all__ = [
    "PrecompileError", "ProgramStats", "TracedProgram", "allow_in_graph", "assume_constant_result", "compile", "config",
    "cudagraph_mark_step_begin", "cudagraph_mark_warmup_incomplete", "disable", "explain", "get_default_backend",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe",
    "list_backends", "load_cache_artifacts", "load_compiled_function", "nested_compile_region", "nonstrict_trace",
    "precompile", "reset", "save_cache_artifacts", "set_default_backend", "set_enable_guard_collectives", "set_stance",
    "skip_all_guards_unsafe", "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe", "stats", "substitute_in_graph", "trace", "wrap_numpy",
]  # fmt: skip

class PrecompileError(RuntimeError):
    """A function cannot be compiled in advance."""


is_dynamo_compiling = is_exporting = is_compiling


def nested_compile_region(fn: Any = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None) -> Any:
    """Returns the function itself, which is compiled where it is called, or without one a decorator. The options are not implemented.
    """
    if options is not None or reuse_hash_fn is not None or max_reuse_entries != 8:
        raise NotImplementedError("[nested_compile_region] expected no options: the region is a part of the graph")
    return (lambda f: f) if fn is None else fn


def cudagraph_mark_step_begin() -> None:
    """Does nothing: outputs of Programs are never overwritten by a later run."""


cudagraph_mark_warmup_incomplete = cudagraph_mark_step_begin


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Returns the previous setting, as in PyTorch. It has no effect."""
    from . import config

    previous, config.enable_guard_collectives = config.enable_guard_collectives, enabled
    return previous


def save_cache_artifacts() -> None:
    """Returns None, as PyTorch does if nothing was compiled."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Returns None, as PyTorch does for artifacts that it cannot use: functions are compiled at their first call in any case.

    Artifacts would only save the time of compiling; the engine's passes take milliseconds. Warns if there are some.
    """
    if not isinstance(serialized_artifacts, (bytes, bytearray)):
        raise TypeError(f"[load_cache_artifacts] expected bytes, got {type(serialized_artifacts).__name__}")
    if serialized_artifacts:
        message = "[load_cache_artifacts] these artifacts are not teletensor's; functions are compiled at their first call"
        warnings.warn(message, stacklevel=2)


def load_compiled_function(file: Any, *, f_globals: Any = None, external_data: Any = None) -> Callable:
    """Raises NotImplementedError: the engine compiles while it runs; torch.export.save() and load() are files of graphs."""
    raise NotImplementedError("[load_compiled_function] the engine compiles while it runs; use torch.export.save() and load() for files")


def precompile(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError: the engine compiles while it runs; torch.export.save() and load() are files of graphs."""
    raise NotImplementedError("[precompile] functions are compiled at their first call; use torch.export.save() and load() for files")


def wrap_numpy(fn: Callable) -> Callable:
    """A function of tensors that calls a function of NumPy's arrays. Waits for the tensors; arrays are not captured in graphs.

    Tensors among the arguments become arrays, and arrays among the results tensors on the engine's CPU. As in PyTorch without
    torch.compile, tensors that require a gradient are refused.
    """

    from ..utils._pytree import tree_map
    from ._decorators import disable

    @disable
    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        import numpy

        args, kwargs = tree_map(lambda x: x.numpy() if isinstance(x, _C.Tensor) else x, (args, kwargs))
        return tree_map(lambda x: as_tensor(x) if isinstance(x, (numpy.ndarray, numpy.generic)) else x, fn(*args, **kwargs))

    return wrapped


def keep_portable_guards_unsafe(guard_entries: Any) -> list[bool]:
    """Keeps every guard: none may be left out."""
    return [True for _ in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    """Keeps every guard: none may be left out."""
    return keep_portable_guards_unsafe(guard_entries)


skip_all_guards_unsafe = skip_guard_on_all_nn_modules_unsafe = skip_guard_on_globals_unsafe = keep_portable_guards_unsafe
skip_guard_on_inbuilt_nn_modules_unsafe = keep_portable_guards_unsafe
