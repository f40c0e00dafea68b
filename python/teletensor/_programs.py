"""Programs: functions whose calls the engine runs as one instruction.

    program = torch.compiler.trace(step, x, y)  # calls step once, without computing anything
    for x, y in batches:
        loss = program(x, y)                    # one instruction, whatever step does
    print(program.explain(x, y))                # what the engine makes of it

A trace records the operators that a function calls. Sizes of traced tensors are SymInts: what the function computes from
them is computed again in every run, and what it decides by them is required of every run. What Python computes from other
numbers, or from values of tensors that exist outside, becomes constant: a branch is taken in every run as in the trace.

The engine replaces calls that write out softmax, a norm, GELU, SiLU or attention by the operator, whose values differ by
rounding. use_deterministic_algorithms(True), or TELETENSOR_EXACT_PROGRAMS=1 in the environment, at the time of the trace
keeps the bits of single calls. TELETENSOR_LOG=programs writes what explain() returns to stderr, at the first run for each
signature of the arguments. torch._functorch.config.activation_memory_budget, at the time of the trace, limits what a Program
keeps for its backward passes.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _C, _named_programs, _trace_runs
from ._functions import are_deterministic_algorithms_enabled
from ._symbolic_bool import SymBool
from ._symbolic_float import SymFloat
from .nn.parameter import Parameter
from .utils import _pytree as pytree

__all__ = ["ProgramStats", "Stats", "TracedProgram", "WindowStats", "explain", "stats", "trace"]


class TracedProgram:
    """A function as a Program in the engine; made by trace().

    Calls take arguments of the structure that the function was traced with. Tensors may have other sizes if the recorded
    calls accept them and what the function has decided by sizes holds; otherwise a call raises ValueError. Everything else
    must be equal. Parameters and other tensors that the function used are read at every
    call, so an optimizer's updates count. Gradients are recorded as in the function itself.

    Attributes:
        instructions: the number of recorded calls.
        captured: the tensors that the function used without having received them.
        text: the recorded calls, one per line.
    """

    def __init__(self, program: _C.Program, spec: pytree.TreeSpec, constants: list[Any], outputs: pytree.TreeSpec,
                 results: list[Any], name: str, prepare: list[Callable[[], None]]) -> None:  # fmt: skip
        self._prepare = prepare  # called before each run
        self._program = program
        _named_programs.add(self)
        self._spec = spec
        self._constants = constants  # by position among the leaves; _TENSOR for a tensor
        self._outputs = outputs
        self._results = results  # the leaves of the result; _TENSOR for a tensor
        self.__name__ = name
        # With TELETENSOR_LOG=programs, the signatures whose explanation was written to stderr.
        self._logged: set | None = set() if "programs" in os.environ.get("TELETENSOR_LOG", "").split(",") else None
        # The usual cases, in which nothing has to be flattened: only tensors as positional arguments, and one or a tuple
        # of tensors as the result.
        n = len(constants)
        self._plain = (
            n if spec == pytree.tree_structure(((0,) * n, {})) and all(c is _TENSOR for c in constants) else -1
        )
        all_tensors = all(r is _TENSOR for r in results)
        self._is_single = all_tensors and outputs.is_leaf()
        self._is_tuple = all_tensors and outputs == pytree.tree_structure((0,) * len(results))

    @property
    def instructions(self) -> int:
        return self._program.instructions

    @property
    def captured(self) -> tuple[_C.Tensor, ...]:
        return self._program.captured

    @property
    def text(self) -> str:
        return self._program.text

    def __repr__(self) -> str:
        return f"TracedProgram({self.__name__}, instructions={self.instructions}, inputs={self._program.inputs})"

    def _tensors(self, args: tuple, kwargs: dict[str, Any]) -> list[_C.Tensor]:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._spec:
            raise TypeError(f"[{self.__name__}] expected {_structure(self._spec)}, got {_structure(spec)}")
        for constant, leaf in zip(self._constants, leaves):
            if constant is _TENSOR:
                if not isinstance(leaf, _C.Tensor):
                    raise TypeError(
                        f"[{self.__name__}] expected a Tensor where one was traced, got {type(leaf).__name__}"
                    )
            elif not _are_equal(leaf, constant):
                raise ValueError(
                    f"[{self.__name__}] expected {constant!r}, as traced, got {leaf!r}; trace the function again"
                )
        return [leaf for constant, leaf in zip(self._constants, leaves) if constant is _TENSOR]

    def _log(self, tensors: list[_C.Tensor] | tuple[_C.Tensor, ...]) -> None:
        signature = tuple((t.shape, t.stride(), t.dtype, t.device, t.requires_grad) for t in tensors)
        if signature in self._logged:
            return
        self._logged.add(signature)
        sizes = ", ".join(f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}" for t in tensors)
        sys.stderr.write(f"# {self.__name__}({sizes})\n{self._program.explain(tensors)}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._logged is not None:
            self._log(self._tensors(args, kwargs))
        if self._prepare:
            if _C.is_tracing():
                raise NotImplementedError(f"[{self.__name__}] a Program cannot be run while another one is traced")
        given = args if not kwargs and len(args) == self._plain else self._tensors(args, kwargs)
        tensors = _trace_runs.prepared(self._prepare, lambda: self._program.run(given)) if self._prepare else self._program.run(given)
        if self._is_single:
            return tensors[0]
        if self._is_tuple:
            return tensors
        tensors = iter(tensors)
        return pytree.tree_unflatten([next(tensors) if r is _TENSOR else r for r in self._results], self._outputs)

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """The Program as it was traced and after the engine's passes for these arguments, as text. Waits for the engine."""
        return self._program.explain(self._tensors(args, kwargs))


_C.set_symbolic_float_maker(SymFloat.of)
_TENSOR = object()


def _are_equal(a: Any, b: Any) -> bool:
    """Whether two constants are one object, or equal and of one type. NaN equals itself."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    numpy = sys.modules.get("numpy")  # its import takes 0.1 s, which a program without arrays need not wait for
    if numpy is not None and isinstance(a, numpy.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (float, complex)):
        parts = [(x.real, x.imag) for x in (a, b)]
        return struct.pack("2d", *parts[0]) == struct.pack("2d", *parts[1])  # -0.0 and 0.0 are different constants
    return bool(a == b)


def _structure(spec: pytree.TreeSpec) -> str:
    """The arguments that a structure is of, for errors: `(*, [*, *], scale=*)`, with a `*` per leaf."""
    args, kwargs = pytree.tree_unflatten([_LEAF] * spec.num_leaves, spec)
    return "the arguments (" + ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]) + ")"


class _Leaf:
    def __repr__(self) -> str:
        return "*"


_LEAF = _Leaf()


def _memory_budget() -> float:
    """torch._functorch.config.activation_memory_budget; 1.0 while nothing has imported that module."""
    config = sys.modules.get(f"{__package__}._functorch.config")
    return 1.0 if config is None else float(config.activation_memory_budget)


def _must_be_exact() -> bool:
    return are_deterministic_algorithms_enabled() or os.environ.get("TELETENSOR_EXACT_PROGRAMS", "0") not in ("", "0")


def trace(fn: Callable, *args: Any, **kwargs: Any) -> TracedProgram:
    """Calls fn(*args, **kwargs) without computing anything, and returns its operators as a Program.

    Args:
        fn: a function or a module. It may return nested containers of tensors. If it raises an exception after it has read
            a size, it is called once more with ints as sizes, which are then the Program's only sizes.
        args, kwargs: examples of its arguments. Tensors stand for the inputs; everything else becomes constant.

    Raises:
        RuntimeError: the function read the value of a tensor that it computes, or this thread is tracing already.
        NotImplementedError: the function called an operator whose results' sizes depend on values, wrote to an argument
            while gradients are recorded, or returned a view of an argument; or autocast is enabled.
        What the function raises.
    """
    leaves, spec = pytree.tree_flatten((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, _C.Tensor)]
    tracing = _C.ProgramTrace(tensors, _static_sizes(tensors))
    try:
        return _traced_with(tracing, fn, leaves, spec)
    except Exception as error:
        if not tracing.gave_sizes:
            raise
        first = error
    # Perhaps the function needs an int where it has got a SymInt: without them it raises an error of its own, if any.
    try:
        return _traced_with(_C.ProgramTrace(tensors, True), fn, leaves, spec)
    except Exception as error:
        raise error from first


def trace_sizes(fn: Callable, tensors: list[_C.Tensor], constant: bool | list[tuple[int, int]], name: str) -> TracedProgram:
    """trace() of a function of tensors of which the sizes `constant`, as (tensor, dimension), or all, are numbers.

    Args:
        name: of the Program.
    """
    leaves, spec = pytree.tree_flatten((tuple(tensors), {}))
    with _trace_runs.without_hooks():
        return _traced_with(_C.ProgramTrace(tensors, constant), fn, leaves, spec, name)


def _static_sizes(tensors: list[_C.Tensor]) -> list[tuple[int, int]]:
    """The sizes that torch._dynamo.mark_static() has marked, and those of parameters."""
    static = []
    for i, tensor in enumerate(tensors):
        dims = range(tensor.dim()) if isinstance(tensor, Parameter) else getattr(tensor, "_dynamo_static_indices", ())
        static += [(i, dim) for dim in dims]
    return static


def _traced_with(
    tracing: _C.ProgramTrace, fn: Callable, leaves: list[Any], spec: pytree.TreeSpec, name: str | None = None
) -> TracedProgram:
    constants = [_TENSOR if isinstance(leaf, _C.Tensor) else leaf for leaf in leaves]
    name = name or getattr(fn, "__name__", type(fn).__name__)
    try:
        inputs = iter(tracing.inputs)
        stand_ins = [next(inputs) if constant is _TENSOR else constant for constant in constants]
        traced_args, traced_kwargs = pytree.tree_unflatten(stand_ins, spec)
        with _trace_runs.collected() as prepare:
            results, outputs = pytree.tree_flatten(fn(*traced_args, **traced_kwargs))
        numbers = {_C.SymInt: int, SymFloat: float, SymBool: bool}
        results = [numbers[type(r)](r) if type(r) in numbers else r for r in results]  # constants of the Program
        program = tracing.finish([r for r in results if isinstance(r, _C.Tensor)], _must_be_exact(), _memory_budget())
    finally:
        tracing.stop()
    results = [_TENSOR if isinstance(r, _C.Tensor) else r for r in results]
    return TracedProgram(program, spec, constants, outputs, results, name, prepare)


def explain(fn: Callable, *args: Any, **kwargs: Any) -> str:
    """What the engine makes of fn(*args, **kwargs): its operators as traced and after each pass, as text."""
    program = fn if isinstance(fn, TracedProgram) else trace(fn, *args, **kwargs)
    return program.explain(*args, **kwargs)


class ProgramStats(NamedTuple):
    """What a Program of this session has done.

    Attributes:
        name: the traced function's; empty if another thread or process of the session has defined the Program.
        instructions: as defined.
        compiled_instructions: after the engine's passes, for the arguments of the latest new signature.
        runs: by this session.
        signatures: the number of signatures for which the passes have run.
        compile_seconds: that the passes took, for all sessions which share the Program.
        peak_bytes: of the values that a run computes, at most, without its inputs and without what the tape saves; for the
            arguments of the latest new signature.
    """

    name: str
    instructions: int
    compiled_instructions: int
    runs: int
    signatures: int
    compile_seconds: float
    peak_bytes: int


class WindowStats(NamedTuple):
    """What the engine has made of calls that this session has repeated, without being asked.

    Attributes:
        instructions: the number of calls.
        compiled_instructions: in their place, for the latest new signature of inputs.
        runs: how often these have run.
        signatures: the number of signatures of inputs for which they exist.
        compile_seconds: that the passes took, in the background.
        saved_instructions: the number of calls that all runs have saved.
        saved_bytes: of results that the runs have not stored.
    """

    instructions: int
    compiled_instructions: int
    runs: int
    signatures: int
    compile_seconds: float
    saved_instructions: int
    saved_bytes: int


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]) for row in rows
    )


class Stats(list):
    """The ProgramStats of a session; prints as a table.

    Attributes:
        windows: the WindowStats of the session, the most used one first.
    """

    windows: list[WindowStats]

    def __str__(self) -> str:
        rows = [("program", "instructions", "compiled", "runs", "signatures", "compiling", "memory")]
        for r in self:
            rows.append((r.name or "?", *map(str, r[1:5]), f"{r.compile_seconds * 1e3:.1f} ms", f"{r.peak_bytes / 2**20:.2f} MiB"))
        if not self.windows:
            return _table(rows)
        windows = [("window", "instructions", "compiled", "runs", "signatures", "compiling", "saved", "not stored")]
        for i, w in enumerate(self.windows):
            saved = str(w.saved_instructions), f"{w.saved_bytes / 2**20:.2f} MiB"
            windows.append((str(i), *map(str, w[:4]), f"{w.compile_seconds * 1e3:.1f} ms", *saved))
        return _table(rows) + "\n\n" + _table(windows)


def stats() -> Stats:
    """The Programs that this session has run and still has, in the order of their definition. Waits for the engine.

    The attribute ``windows`` lists the repeated calls that the engine has compiled without being asked.

    ``print(torch.compiler.stats())`` shows a table.
    """
    names = {program._program.number: program.__name__ for program in _named_programs.all_named() if program._program.is_in_session}
    rows = Stats(
        ProgramStats(names.get(number, ""), instructions, compiled, runs, signatures, microseconds / 1e6, peak)
        for number, instructions, compiled, runs, signatures, microseconds, peak in _C.program_counters()
    )
    rows.windows = [
        WindowStats(instructions, compiled, runs, signatures, microseconds / 1e6, calls, size)
        for instructions, compiled, runs, signatures, microseconds, calls, size in _C.window_counters()
    ]
    return rows
