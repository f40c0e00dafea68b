"""torch.compile."""

from __future__ import annotations

from typing import Any

from .._dynamo._backends import MODES, accepts_keywords, is_engine, lookup_backend
from .._dynamo.eval_frame import OptimizedModule, compiled, shared_compiler
from .._options import check_flags, check_optional_flags, reject_values
from ..nn import Module

default_backend: Any = "inductor"


def set_default_backend(backend: Any) -> None:
    """Sets the backend that compile() uses without the argument ``backend``; None: "inductor".

    Raises:
        InvalidBackend: there is no backend of that name.
    """
    global default_backend
    if backend is not None:
        lookup_backend(backend)
    default_backend = "inductor" if backend is None else backend


def get_default_backend() -> Any:
    """The backend that compile() uses without the argument ``backend``."""
    return default_backend


def compile(  # noqa: A001 - PyTorch's name
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = None, mode: str | None = None,
    options: dict | None = None, disable: bool = False, name: str | None = None, recompile_limit: int | None = None,
    isolate_recompiles: bool = False, dynamic_shapes: Any = None,
) -> Any:  # fmt: skip
    """Returns a function or module that captures the calls of tensor functions as graphs, which a backend runs.

    Without `model`, returns a decorator. A size or int that has changed becomes a symbol when the function is compiled again; this
    code then serves other values, too.

    Args:
        model: a function or module.
        fullgraph: raise torch._dynamo.exc.Unsupported where the function would need several graphs.
        dynamic: True: sizes and ints are symbols from the first call. False: they are constants. None: see above.
        backend: "inductor" or "teletensor", which make Programs that the engine runs; "eager", "aot_eager", a registered name, or
            a function that receives a GraphModule and a list of example inputs and returns a callable. None: the default.
        mode: "default", "reduce-overhead", "max-autotune" or "max-autotune-no-cudagraphs". A Program is one instruction in
            each of them, and the engine chooses kernels by itself; other backends receive the mode.
        options: for a function as backend, which receives it as the argument `options`.
        disable: return `model` itself.
        name: the name of the compiled function, for logs.
        recompile_limit: how often a function may be compiled for other arguments, before it runs as plain Python.
        isolate_recompiles: the limit counts for this call of compile() alone, which shares no code with others.

    Raises:
        RuntimeError: there is no such backend or mode, or both mode and options are given.
    """
    check_flags("compile", fullgraph=fullgraph, disable=disable, isolate_recompiles=isolate_recompiles)
    if name is not None and not isinstance(name, str) or recompile_limit is not None and not isinstance(recompile_limit, int):
        raise TypeError(f"[compile] expected name to be a str and recompile_limit an int, got {name!r} and {recompile_limit!r}")
    check_optional_flags("compile", dynamic=dynamic)
    backend = default_backend if backend is None else backend
    if not callable(backend) and not isinstance(backend, str):
        raise RuntimeError(f"[compile] expected backend to be a name or a function, got {backend!r}")
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    reject_values("compile", "use mark_dynamic() and mark_static()", dynamic_shapes=dynamic_shapes)
    keywords: dict[str, Any] = {}
    function = None if is_engine(backend) else lookup_backend(backend)
    if function is None or backend in ("eager", "aot_eager"):
        reject_values("compile", f"the backend {backend!r} has no options", options=options or None)
    else:
        if mode not in (None, "default") and accepts_keywords(function):
            keywords["mode"] = mode
        if options:
            keywords["options"] = options
    if model is None:
        return lambda m: compile(
            m, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable, name=name,
            recompile_limit=recompile_limit, isolate_recompiles=isolate_recompiles,
        )  # fmt: skip
    if not callable(model):
        raise RuntimeError(f"A callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    compiler = shared_compiler(backend, fullgraph, keywords, recompile_limit, dynamic, isolate_recompiles)
    if isinstance(model, Module):
        return OptimizedModule(model, compiler)
    made = compiled(model, compiler)
    if name is not None:
        made.__name__ = name
    return made


compile.__module__ = "teletensor"
