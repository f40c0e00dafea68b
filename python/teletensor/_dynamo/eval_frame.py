"""torch._dynamo.eval_frame: compiled functions and modules.

A compiled function finds, for each call, the code whose guards hold (_C.FrameCache). If there is none, the function is
captured (_capture.py). Graphs end at calls that cannot be captured; the code then executes that instruction and continues in
a cache of its own, which captures the rest of the function. Functions in Python that are called there are compiled, too.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C, _connection
from ..nn import Module
from . import _marks, _stored_captures, config
from ._backends import lookup_backend
from ._entries import STDLIB, Entry, Failed, GraphBreak, can_compile
from ._fingerprints import CopyNumber
from ._logs import counters, is_enabled, log
from ._sizes import SizeHistory
from ._source import CHECK_MODES, Guards
from ._stance import current_stance, is_disabled
from .exc import BackendCompilerFailed, FailOnRecompileLimitHit, RecompileError, Unsupported

__all__ = ["ExplainOutput", "OptimizedModule", "compiled", "explain", "is_dynamo_supported", "reset"]

_lock = threading.RLock()
_compilers: weakref.WeakSet[Compiler] = weakref.WeakSet()
_shared: dict[tuple, Compiler] = {}
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
_NN = os.path.join(_PACKAGE, "nn")  # noqa: PTH118
_warned: set[str] = set()


def warn_once(text: str) -> None:
    """Warns once per text."""
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, stacklevel=4)


class Compiler:
    """The options of torch.compile and the code that was made with them.

    Attributes:
        on_capture: receives each captured graph and its break, for explain().
        on_result: called with the executor, the result and the slots at the end of a function, for export().
    """

    def __init__(
        self, backend: Any, fullgraph: bool = False, keywords: dict[str, Any] | None = None, recompile_limit: int | None = None,
        dynamic: bool | None = None,
    ) -> None:  # fmt: skip
        self.backend, self.fullgraph, self.keywords = backend, fullgraph, keywords or {}
        self.recompile_limit, self.dynamic = recompile_limit, dynamic
        self.caches: weakref.WeakKeyDictionary[types.CodeType, dict[Any, Any]] = weakref.WeakKeyDictionary()
        self.on_capture: Callable | None = None
        self.on_result: Callable | None = None
        _compilers.add(self)

    def __deepcopy__(self, _memo: dict) -> Compiler:
        return self

    def __reduce__(self) -> Any:
        if not isinstance(self.backend, str):
            raise TypeError("[compile] a module that is compiled with a function as backend cannot be pickled")
        return shared_compiler, (self.backend, self.fullgraph, self.keywords, self.recompile_limit, self.dynamic)

    # -- options that Capture reads

    @property
    def breaks_are_errors(self) -> bool:
        return self.fullgraph or config.error_on_graph_break

    @property
    def may_contain_steps(self) -> bool:
        """Whether graphs may contain backward passes and steps of optimizers."""
        return self._backend_has("contains_steps")

    @property
    def reads_nodes(self) -> bool:
        """Whether only the backend sees graphs, and reads their nodes instead of their code."""
        return self.on_capture is None and self._backend_has("reads_nodes")

    def _backend_has(self, property_: str) -> bool:
        force = current_stance().force_backend
        return bool(getattr(lookup_backend(self.backend if force is None else force), property_, False))

    @staticmethod
    def raise_break(broken: GraphBreak) -> None:
        raise Unsupported(broken.reason, broken.where)

    def compile_graph(self, module: Any, inputs: list[Any], ex: Any) -> tuple[Callable, Any]:
        """What the backend makes of a graph, as a function of the tuple of inputs, and the GraphProgram, if that is what it runs."""
        counters["stats"]["unique_graphs"] += 1
        counters["stats"]["calls_captured"] += ex.calls
        if is_enabled("graph_code"):
            log("graph_code", module.code)
        if is_enabled("graph"):
            log("graph", str(module.graph))
        force = current_stance().force_backend
        backend = lookup_backend(self.backend if force is None else force)
        try:
            made = backend(module, inputs, **self.keywords) if force is None else backend(module, inputs)
        except Unsupported:
            raise
        except Exception as e:
            if config.suppress_errors:
                raise Failed(f"the backend raised {e}") from None
            raise BackendCompilerFailed(getattr(backend, "__name__", str(backend)), e).with_traceback(e.__traceback__) from e
        if not callable(made):
            raise BackendCompilerFailed(getattr(backend, "__name__", str(backend)), TypeError("a backend must return a callable"))
        run = getattr(made, "run", None) if type(made) is types.FunctionType else None
        return run if run is not None else lambda inputs: made(*inputs), getattr(made, "graph_program", None)

    def nested(self, function: Any) -> Any:
        """A compiled form of a function that is called at a graph break; the function itself if it is not compiled."""
        from ._introspection import names_lines_of_callers, reason_to_run_plainly

        self_: tuple = ()
        called = function
        if isinstance(function, types.MethodType):
            self_, called = (function.__self__,), function.__func__
        elif isinstance(function, Module):
            if not isinstance(type(function).__call__, types.FunctionType):
                return function
            self_, called = (function,), type(function).__call__
        if not isinstance(called, types.FunctionType) or _is_skipped(called) or _marks.reason_not_to_compile(called):
            return function
        if reason_to_run_plainly(called.__code__, called.__globals__) or names_lines_of_callers(called.__code__):
            return function  # called from the frame of its caller
        if self_ and _marks.reason_not_to_compile(self_[0]):
            return function
        owner = type(self_[0]) if self_ and isinstance(self_[0], Module) else None
        cache = self.cache(Entry(called.__code__), owner)
        return lambda *args, **kwargs: cache((called, (*self_, *args), kwargs))

    # -- caches

    def cache(self, entry: Entry, owner: type | None = None) -> Any:
        """The FrameCache of a function's beginning or of the rest after a graph break.

        `owner` separates the classes of modules that one function calls.
        """
        with _lock:
            known = self.caches.setdefault(entry.code, {})
            key = (*entry[1:], owner)
            if key not in known:
                known[key] = self._make_cache(entry, owner)
            return known[key][0]

    def _make_cache(self, entry: Entry, owner: type | None) -> tuple[Any, _CacheState]:
        plain = _plain_call if entry.target < 0 else _plain_rest(entry)
        state = _CacheState(owner)
        # The code object is kept by the function that is called, not by the cache.
        of, fields = weakref.ref(entry.code), entry[1:]

        def miss(slots: tuple) -> Any:
            code = of()
            return self._miss(Entry(code, *fields), slots, plain, state)

        return _C.FrameCache(miss, plain), state

    def _miss(self, entry: Entry, slots: tuple, plain: Callable, state: _CacheState) -> Any:
        stance = current_stance()
        if is_disabled() or config.disable or stance.name == "force_eager" or not can_compile(entry.code) or _modes_prevent():
            return plain(slots)
        if stance.waits_for(state):
            return plain(slots)
        if state.compiled:
            if stance.name == "eager_on_recompile":
                return plain(slots)
            if stance.name == "fail_on_recompile" or config.error_on_recompile:
                raise RecompileError(f"[compile] {entry.code.co_qualname} would be compiled again: {self._why(state, slots)}")
        limit = self.recompile_limit if self.recompile_limit is not None else config.recompile_limit
        limit = min(limit, config.accumulated_recompile_limit)
        if state.compiled >= limit:
            if self.fullgraph and entry.target < 0 or config.fail_on_recompile_limit_hit:
                raise FailOnRecompileLimitHit(f"[compile] {entry.code.co_qualname} reached the limit of {limit} recompilations")
            if not state.warned:
                state.warned = True
                log("recompiles", f"{entry.code.co_qualname}: limit of {limit} recompilations reached; other arguments run as plain Python")
                warn_once(
                    f"torch._dynamo hit config.recompile_limit ({limit})\n   function: '{entry.code.co_name}' "
                    f"({entry.code.co_filename}:{entry.code.co_firstlineno})\n   last reason: {self._why(state, slots)}"
                )
            counters["recompile_limit"][entry.code.co_qualname] += 1
            return plain(slots)
        with _lock, without_collections():
            function = self._stored(entry, slots, state) or self._compile(entry, slots, plain, state)
        return function(slots)

    def _stored(self, entry: Entry, slots: tuple, state: _CacheState) -> Callable | None:
        """The code of an earlier process, if it is right for the call."""
        if _stored_captures.reason_against(self, entry, state):
            return None
        stored = _stored_captures.find(entry, slots, state)
        if stored is None:
            return None
        state.compiled += 1
        counters["frames"]["ok"] += 1
        counters["engine"]["programs"] += 1
        state.guards.append((stored.guards, stored.texts))
        state.program = stored.program
        found, function = stored.guards.inputs(), stored.function
        self.cache(entry, state.owner).add(stored.guards, function)
        return lambda slots: function(slots, found)

    def _why(self, state: _CacheState, slots: tuple) -> str:
        for guards, texts in reversed(state.guards):
            if not guards.check(slots):
                failed = texts[guards.failed]
                return failed if guards.sizes_failure is None else f"{failed}: {guards.sizes_failure}"
        return ""

    def _compile(self, entry: Entry, slots: tuple, plain: Callable, state: _CacheState) -> Callable:
        # Most of this package, which a process that finds stored captures need not import.
        from ..fx.experimental.symbolic_shapes import ConstraintViolationError
        from ._capture import Capture
        from ._capture_store import store

        if state.compiled:
            reason = self._why(state, slots)
            log("recompiles", f"{entry.code.co_qualname}: guard failed: {reason}")
            counters["recompiles"][entry.code.co_qualname] += 1
            if self.on_capture:
                self.on_capture.recompiled(reason)
        may_store = not _stored_captures.reason_against(self, entry, state)
        capture = Capture(entry, slots, self, state.history)
        captured = None
        state.compiled += 1
        try:
            captured = capture()
            guards, function, broken, inputs = captured.guards, captured.function, captured.broken, captured.inputs
            counters["frames"]["ok"] += 1
            if captured.graph is not None and self.on_capture:
                self.on_capture.captured(captured)
            log("bytecode", captured.source)
        except (BackendCompilerFailed, ConstraintViolationError, Unsupported, KeyboardInterrupt):
            raise
        except Exception as e:  # noqa: BLE001 - an instruction that is executed wrongly must not reach the user
            if not isinstance(e, Failed):
                import traceback

                counters["internal"][f"{type(e).__name__}: {e}"] += 1
                log("graph_breaks", "".join(traceback.format_exception(e)))
            if self.breaks_are_errors:
                raise Unsupported(str(e)) from None
            counters["frames"]["skipped"] += 1
            log("graph_breaks", f"{entry.code.co_qualname} runs as plain Python: {e}")
            if getattr(capture, "ex", None) is None:
                return plain
            guards, function, broken, inputs = capture.ex.guards, _ignoring_inputs(plain), None, []
            counters["skipped"][str(e)] += 1
        finally:
            # Without the cycles of frames and values, which would keep the user's objects until the next collection.
            if getattr(capture, "ex", None) is not None:
                capture.ex.release()
                del capture.ex
        if broken is not None:
            counters["graph_break"][broken.reason] += 1
            log("graph_breaks", f"{broken.reason}\n  at {broken.where}")
            if self.on_capture:
                self.on_capture.broke(broken)
        if is_enabled("guards"):
            log("guards", f"{entry.code.co_qualname}:\n" + "\n".join(f"  {text}" for text in guards.texts))
        checked = _C.FrameGuards(guards.nodes, inputs)
        if not checked.check(slots):
            # A condition that no later call can fulfil either, such as arguments that share memory.
            counters["skipped"][f"guard: {guards.texts[checked.failed]}"] += 1
            return plain
        state.guards.append((checked, guards.texts))
        if may_store and captured is not None:
            store(entry, captured, slots, state.history)
        found = checked.inputs()  # before another thread checks these guards
        self.cache(entry, state.owner).add(checked, function)
        return lambda slots: function(slots, found)


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Pauses automatic garbage collections: a capture makes many objects that stay until its end, which every collection visits."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _ignoring_inputs(plain: Callable) -> Callable:
    return lambda slots, _inputs: plain(slots)


class _CacheState:
    """How often a function was compiled."""

    def __init__(self, owner: type | None = None) -> None:
        self.owner = owner
        self.compiled = self.eager_calls = 0
        self.warned = False
        self.guards: list[tuple[Any, list[str]]] = []
        self.history = SizeHistory()
        self.program: Any = None  # of a stored capture, for stats()

    def reset(self) -> None:
        self.__init__(self.owner)


def _plain_call(slots: tuple) -> Any:
    function, args, kwargs = slots
    return function(*args, **kwargs)


def _plain_rest(entry: Entry) -> Callable:
    made: list[types.CodeType] = []
    of, fields = weakref.ref(entry.code), entry[1:]
    depth = entry.layout.depth

    def plain(slots: tuple) -> Any:
        if not made:
            from ._capture import plain_rest

            made.append(plain_rest(Entry(of(), *fields)))
        function = slots[depth]
        return types.FunctionType(made[0], function.__globals__, function.__name__, None, function.__closure__)(slots)

    return plain


def _modes_prevent() -> bool:
    guards = Guards()
    guards.check(CHECK_MODES, None)
    return not _C.FrameGuards(guards.nodes).check(())


def _is_skipped(function: types.FunctionType) -> bool:
    file = function.__code__.co_filename
    if file.startswith(_PACKAGE):
        return not file.startswith(_NN)
    in_library = file.startswith(STDLIB) and "site-packages" not in file and "dist-packages" not in file
    generated = file.startswith("<") and not file.startswith(("<stdin>", "<string>", "<ipython"))
    return in_library or generated or not can_compile(function.__code__)


def _with_own_code(function: types.FunctionType) -> types.FunctionType:
    """A copy whose code is no other's, so that its compiled versions are counted separately."""
    code = function.__code__.replace(co_consts=(*function.__code__.co_consts, CopyNumber()))
    copied = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied


def compiled(function: Callable, compiler: Compiler) -> Callable:
    """A function whose calls run the code that the compiler makes of it."""
    self_: tuple = ()
    called = function
    if isinstance(function, types.MethodType):
        self_, called = (function.__self__,), function.__func__
        if isinstance(function.__self__, Module) and called.__code__.co_filename.startswith(_NN):
            called = _with_own_code(called)  # the same function calls all modules
    if not isinstance(called, types.FunctionType) or called.__globals__.get("__name__", "").startswith("teletensor.func."):
        target = function  # without Python code, or made by a transform, whose calls are operations of the graph

        def called(*args: Any, **kwargs: Any) -> Any:
            return target(*args, **kwargs)

        called = _with_own_code(called)
    cache = compiler.cache(Entry(called.__code__))
    if self_:

        @functools.wraps(function)
        def compiled_call(*args: Any, **kwargs: Any) -> Any:
            return cache((called, (*self_, *args), kwargs))
    else:

        @functools.wraps(function)
        def compiled_call(*args: Any, **kwargs: Any) -> Any:
            return cache((called, args, kwargs))

    setattr(compiled_call, _marks.ORIGINAL, function)
    compiled_call.compiler = compiler
    compiled_call.__dict__.pop(_marks.DISABLED, None)
    if not can_compile(called.__code__) and not called.__code__.co_flags & 0x20:
        warn_once("torch.compile: this version of Python or kind of function is not compiled; it runs as plain Python")
    return compiled_call


class OptimizedModule(Module):
    """A module whose calls are compiled. Its attributes are those of the module.

    Args:
        mod: the module.
        dynamo_ctx: the Compiler.
    """

    _opt_mod_attributes = frozenset(("_orig_mod", "forward", "dynamo_ctx", "_compiled"))

    def __init__(self, mod: Module, dynamo_ctx: Compiler) -> None:
        super().__init__()
        self._orig_mod = mod
        self.__dict__["dynamo_ctx"] = dynamo_ctx
        self.__dict__["_compiled"] = compiled(_with_own_code(_call_module), dynamo_ctx)

    @property
    def training(self) -> bool:
        return self._orig_mod.training

    @training.setter
    def training(self, value: bool) -> None:
        if "_modules" in self.__dict__ and "_orig_mod" in self._modules:
            self._orig_mod.training = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(self._orig_mod, *args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the compiled module."""
        return self._compiled(self._orig_mod, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if name == "_orig_mod":
            return modules["_orig_mod"]
        return getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "training" or name in self.__dict__ or "_modules" not in self.__dict__ or name == "_orig_mod":
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __getitem__(self, index: Any) -> Any:
        return self._orig_mod[index]

    def __iter__(self) -> Any:
        return iter(self._orig_mod)

    def __reduce__(self) -> Any:
        return OptimizedModule, (self._orig_mod, self.dynamo_ctx)


def _call_module(module: Module, *args: Any, **kwargs: Any) -> Any:
    return module(*args, **kwargs)


def shared_compiler(
    backend: Any, fullgraph: bool, keywords: dict[str, Any], recompile_limit: int | None, dynamic: bool | None, is_isolated: bool = False
) -> Compiler:
    """The Compiler of equal options, so that compiling a function again finds the code that exists; a new one if `is_isolated`."""
    if is_isolated:
        return Compiler(backend, fullgraph, keywords, recompile_limit, dynamic)
    key = (id(backend) if callable(backend) else backend, fullgraph, repr(sorted(keywords.items())), recompile_limit, dynamic)
    with _lock:
        known = _shared.get(key)
        if known is None or callable(backend) and known.backend is not backend:
            known = _shared[key] = Compiler(backend, fullgraph, keywords, recompile_limit, dynamic)
        return known


def _remove_code() -> None:
    with _lock:
        for compiler in list(_compilers):
            for caches in list(compiler.caches.values()):
                for cache, state in caches.values():
                    cache.clear()
                    state.reset()


_connection.at_disconnection.append(_remove_code)  # Programs belong to a session


def reset() -> None:
    """Removes all compiled code, and clears the counters. Waits until captures are stored, which keeps classes of arguments."""
    stores = sys.modules.get(f"{__package__}._background_stores")
    if stores is not None:
        stores.finish()
    with _lock:
        _remove_code()
        counters.clear()
        _warned.clear()


def is_dynamo_supported() -> bool:
    """Whether this version of Python is compiled."""
    return can_compile(is_dynamo_supported.__code__)


class ExplainOutput:
    """What explain() has found.

    Attributes:
        graphs: the captured graphs.
        graph_count: their number.
        graph_break_count: the number of breaks.
        break_reasons: reasons and lines of the breaks.
        op_count: the number of calls in all graphs.
        ops_per_graph: the targets of the calls, by graph.
        out_guards: the texts of the guards.
    """

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.break_reasons: list[GraphBreak] = []
        self.out_guards: list[str] = []
        self.recompilations: list[str] = []

    def captured(self, captured: Any) -> None:
        self.graphs.append(captured.graph)
        self.out_guards += captured.guards.texts

    def broke(self, broken: GraphBreak) -> None:
        self.break_reasons.append(broken)

    def recompiled(self, reason: str) -> None:
        self.recompilations.append(reason)

    @property
    def graph_count(self) -> int:
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        return len(self.break_reasons)

    @property
    def ops_per_graph(self) -> list[list[Any]]:
        return [[n.target for n in g.graph.nodes if n.op.startswith("call_")] for g in self.graphs]

    @property
    def op_count(self) -> int:
        return sum(map(len, self.ops_per_graph))

    def __str__(self) -> str:
        counts = (("Graph", self.graph_count), ("Graph Break", self.graph_break_count), ("Op", self.op_count))
        lines = [*(f"{name} Count: {n}" for name, n in counts), "Break Reasons:"]
        for i, reason in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {i}:", f"    Reason: {reason.reason}", f"    User Stack: {reason.where}"]
        for i, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {i}:", *(f"    {op}" for op in ops)]
        return "\n".join(lines)


def explain(f: Callable, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Returns a function that compiles and calls f(*args, **kwargs) once, and returns an ExplainOutput.

    ``print(explain(f)(x))`` shows the graphs, and why and where each one ends. With arguments, calls at once.
    """

    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        output = ExplainOutput()
        compiler = Compiler("eager")
        compiler.on_capture = output
        target = OptimizedModule(f, compiler) if isinstance(f, Module) else compiled(f, compiler)
        target(*args, **kwargs)
        return output

    if extra_args or extra_kwargs:
        return inner(*extra_args, **extra_kwargs)
    return inner
