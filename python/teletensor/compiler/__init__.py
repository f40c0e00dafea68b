"""torch.compiler: Programs, and the markers and settings of torch.compile.

trace() makes a Program of a function, which the engine runs as one instruction; explain() shows what the engine makes of
it. torch.compile returns functions and modules unchanged, so its decorators return their functions, its settings are
checked and have no effect, and the functions that ask whether code is being compiled or exported return False.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._functions import _BACKENDS, compile  # noqa: A004 - PyTorch's name
from . import config
from .programs import ProgramStats, TracedProgram, explain, stats, trace

__all__ = [
    "PrecompileError", "ProgramStats", "TracedProgram", "allow_in_graph", "assume_constant_result", "compile", "config",
    "cudagraph_mark_step_begin", "cudagraph_mark_warmup_incomplete", "disable", "explain", "get_default_backend",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe",
    "list_backends", "load_cache_artifacts", "load_compiled_function", "nested_compile_region", "nonstrict_trace",
    "precompile", "reset", "save_cache_artifacts", "set_default_backend", "set_enable_guard_collectives", "set_stance",
    "skip_all_guards_unsafe", "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe", "stats", "substitute_in_graph", "trace", "wrap_numpy",
]  # fmt: skip

_STANCES = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile", "fail_on_recompile")


class PrecompileError(RuntimeError):
    """A function cannot be compiled in advance."""


def is_compiling() -> bool:
    """Always False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def allow_in_graph(fn: Any) -> Any:
    """Returns the function, or the list of functions, itself. Raises AssertionError if one cannot be called."""
    for f in fn if isinstance(fn, (list, tuple)) else [fn]:
        if not callable(f):
            raise AssertionError(f"[allow_in_graph] expected a callable, got {type(f).__name__}")
    return fn


assume_constant_result = allow_in_graph


def nonstrict_trace(traceable_fn):
    """Returns the function unchanged, like allow_in_graph()."""
    return traceable_fn


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Returns the function or module itself, or without one a decorator that does. The arguments have no effect."""
    return (lambda f: f) if fn is None else fn


def nested_compile_region(fn: Any = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None) -> Any:
    """Returns the function itself, or without one a decorator that does. The other arguments have no effect."""
    return disable(fn)


def substitute_in_graph(
    original_fn: Callable, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable:
    """Returns a decorator that returns its function: the original function is never replaced."""
    return lambda f: f


def reset() -> None:
    """Does nothing: there are no compiled graphs."""


cudagraph_mark_step_begin = cudagraph_mark_warmup_incomplete = reset


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that compile() accepts, without those that have one of the excluded tags; aot_eager and eager have the
    tag "debug".
    """
    return sorted(n for n in _BACKENDS if not ("debug" in exclude_tags and "eager" in n))


_default_backend: Any = "inductor"


def get_default_backend() -> Any:
    """The name set by set_default_backend, "inductor" at first."""
    return _default_backend


def set_default_backend(backend: Any) -> None:
    """Sets the result of get_default_backend(); None sets "inductor". Raises RuntimeError for an unknown name."""
    if callable(backend):
        raise NotImplementedError("[set_default_backend] expected the name of a backend, got a function: graphs are not compiled")
    if backend is not None and backend not in _BACKENDS:
        raise RuntimeError(f"[set_default_backend] expected one of {', '.join(_BACKENDS)}, got {backend!r}")
    global _default_backend
    _default_backend = backend or "inductor"


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Returns the previous setting, as in PyTorch. It has no effect."""
    previous, config.enable_guard_collectives = config.enable_guard_collectives, enabled
    return previous


class set_stance:  # noqa: N801 - PyTorch's name
    """Checks the name of a stance and has no effect. Also a context manager and a decorator."""

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None) -> None:
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}', expected one of {', '.join(_STANCES)}")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        if callable(force_backend):
            raise NotImplementedError("[set_stance] expected force_backend to be a name: graphs are not compiled")

    def __call__(self, fn: Callable) -> Callable:
        return fn

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


def save_cache_artifacts() -> None:
    """Returns None, as PyTorch does if nothing was compiled."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Raises NotImplementedError: the engine compiles while it runs and has no files of compiled code."""
    raise NotImplementedError("[load_cache_artifacts] graphs are not compiled, so there is no cache of them")


def load_compiled_function(file: Any, *, f_globals: Any = None, external_data: Any = None) -> Callable:
    """Raises NotImplementedError: the engine compiles while it runs and has no files of compiled code."""
    raise NotImplementedError("[load_compiled_function] graphs are not compiled, so compiled functions cannot be loaded")


def precompile(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError: the engine compiles while it runs and has no files of compiled code."""
    raise NotImplementedError("[precompile] graphs are not compiled")


def wrap_numpy(fn: Callable) -> Callable:
    """Raises NotImplementedError: functions of NumPy arrays run in the engine only when compiled."""
    raise NotImplementedError("[wrap_numpy] graphs are not compiled; call the function with tensor.numpy()")


def keep_portable_guards_unsafe(guard_entries: Any) -> list[bool]:
    """Keeps every guard: graphs are not compiled, so there are none."""
    return [True for _ in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    """Keeps every guard: graphs are not compiled, so there are none."""
    return keep_portable_guards_unsafe(guard_entries)


skip_all_guards_unsafe = skip_guard_on_all_nn_modules_unsafe = skip_guard_on_globals_unsafe = keep_portable_guards_unsafe
skip_guard_on_inbuilt_nn_modules_unsafe = keep_portable_guards_unsafe
