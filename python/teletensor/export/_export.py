"""export(): records a module's forward as an ExportedProgram."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from .. import _C
from .._C import Tensor
from .._symbolic_bool import SymBool
from ..fx.experimental._large_sizes import large_captures
from ..fx.experimental._merge import (
    StructureError,
    Symbol,
    ViolatedGuard,
    check_constants,
    merge,
    points_near_constants,
    sample_points,
    violated_guards,
)
from ..fx.experimental._recording import DynamicSizesError, with_plain_numbers
from ..fx.experimental._regions import without_mode_changes
from ..fx.experimental._sizes import RecordedFloat, RecordedSize, SizeLog, value_of
from ..fx.experimental._unbacked import Values
from ..fx.experimental._unbacked_plan import Plan
from ..fx.experimental.proxy_tensor import remove_unused_items
from ..fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from ..fx.node import Node
from ..nn import Module
from ..utils import _pytree as pytree
from ._capture import Captured, capture, state_of
from ._checks import InputCheck, TensorInput, ValueRange
from ._errors import UserError
from ._fixes import ViolatedError, suggested_fixes
from ._module_calls import entries
from ._preserved import check_names
from ._strict import check_whole
from .dynamic_shapes import combined_args, symbols_of
from .exported_program import ExportedProgram, ModuleCallSignature
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)


class Exported(NamedTuple):
    """A module with its example arguments, and the names of the submodules whose signatures are preserved."""

    module: Module
    args: tuple
    kwargs: dict[str, Any]
    preserved: tuple[str, ...] = ()


class Attempt:
    """An export with some of the declared symbols."""

    def __init__(self, what: Exported, symbols: list[Symbol]) -> None:
        self.module, self.args, self.kwargs, self.preserved = what
        self.symbols = symbols
        self.leaves = pytree.tree_leaves((self.args, self.kwargs))

    def _sizes(self, point: dict[str, int]) -> dict[int, tuple]:
        """The sizes of the tensors among the arguments for sizes of the symbols."""
        found: dict[int, list[int]] = {}
        for symbol in self.symbols:
            for leaf, dim, factor, offset in symbol.places:
                sizes = found.setdefault(leaf, list(self.leaves[leaf].shape))
                sizes[dim] = factor * point[symbol.name] + offset
        return {i: tuple(s) for i, s in found.items()}

    def _capture(self, point: dict[str, int], stores_lines: bool = False, values: Values | None = None) -> Captured:
        log = SizeLog(values, not self.symbols)
        return capture(self.module, self.args, self.kwargs, self._sizes(point), log, stores_lines, self.preserved)

    def run(self) -> tuple[Captured, dict[str, tuple[int, int | None]]]:
        """The recording for all declared sizes, and the ranges of the symbols.

        Raises:
            UserError: it does not serve all of them.
        """
        try:
            return self._run()
        except (GuardOnDataDependentSymNode, DynamicSizesError):  # numbers may depend on values
            plan = Plan(not self.symbols)
            return plan.run(lambda: self._run_unbacked(plan))

    def _run(self) -> tuple[Captured, dict[str, tuple[int, int | None]]]:
        """run() of a module without numbers that depend on values of tensors."""
        if not self.symbols:
            return self._capture({}, True), {}
        names = ", ".join(s.name for s in self.symbols)
        points = sample_points(self.symbols, 2)
        first = self._capture(points[0], True)
        captures = [first]
        points += [p for p in points_near_constants(self.symbols, first.recording.log, 2) if p not in points]
        for point in points[1:]:
            try:
                captures.append(self._capture(point))
            except (GuardOnDataDependentSymNode, NotImplementedError):
                raise
            except Exception as e:  # noqa: BLE001 - whatever the module raises for other sizes
                raise ViolatedError(names, [f"the module fails for the sizes {point}: {type(e).__name__}: {e}"]) from e
        more = large_captures(self._capture, self.symbols, captures, (GuardOnDataDependentSymNode, NotImplementedError))
        captures, points = captures + more[0], points + more[1]
        ranges: dict[str, tuple[int, int | None]] = {}
        guards: list[ViolatedGuard] = []
        for low in (0, 1, 2):
            ranges = {s.name: (max(s.low, low), s.high) for s in self.symbols}
            guards = violated_guards(captures, points, ranges)
            if not guards and self._serves_small_sizes(first, ranges, low):
                break
        if guards:
            raise ViolatedError(names, [], guards)
        try:
            merge(captures, points)
        except StructureError as e:
            raise ViolatedError(names, [str(e)]) from e
        self._check_divisors(captures, points, ranges)
        return first, ranges

    def _check_divisors(self, captures: list[Captured], points: list[dict[str, int]], ranges: dict[str, tuple[Any, Any]]) -> None:
        """Raises ViolatedError if a guard that merge() has added may not hold."""
        if guards := violated_guards(captures, points, ranges):
            raise ViolatedError(", ".join(s.name for s in self.symbols), [], guards)

    def _run_unbacked(self, plan: Plan) -> tuple[Captured, dict[str, tuple[Any, Any]]]:
        """run() of a module with numbers that depend on values of tensors."""
        points = sample_points(self.symbols, 2)
        names = ", ".join(s.name for s in self.symbols)
        plan.check(lambda v: self._capture(points[0], False, v))
        first, values = plan.first(lambda v: self._capture(points[0], True, v))
        captures = [first]
        for i, point in enumerate(points[1:] if self.symbols else []):
            try:
                captures.append(plan.recorded(lambda v, point=point: self._capture(point, False, v), i + 1)[0])
            except (GuardOnDataDependentSymNode, NotImplementedError):
                raise
            except Exception as e:  # noqa: BLE001 - whatever the module raises for other sizes
                raise ViolatedError(names, [f"the module fails for the sizes {point}: {type(e).__name__}: {e}"]) from e
        ranges: dict[str, tuple[Any, Any]] = {s.name: (max(s.low, 2), s.high) for s in self.symbols}
        if self.symbols:
            if guards := violated_guards(captures, points, ranges):
                raise ViolatedError(names, [], guards)
            try:
                merge(captures, points)
            except StructureError as e:
                raise ViolatedError(names, [str(e)]) from e
            self._check_divisors(captures, points, ranges)
        extra = values.describe()
        return first, {**ranges, **plan.ranges(values), **dict.fromkeys(extra, (0, None))}

    def _serves_small_sizes(self, first: Captured, ranges: dict[str, tuple[int, int | None]], low: int) -> bool:
        """Whether the module calls the same operators for sizes of 0 and 1, as far as they are declared."""
        if low == 2:
            return True
        for size in (0, 1):
            small = {s.name: size for s in self.symbols if ranges[s.name][0] <= size and (s.high is None or size <= s.high)}
            if not small:
                continue
            try:
                other = self._capture({s.name: small.get(s.name, s.hint) for s in self.symbols})
            except Exception:  # noqa: BLE001 - the range begins behind this size then
                return False
            targets = [[(n.op, str(n.target)) for n in c.recording.graph.nodes if n.op == "call_function"] for c in (first, other)]
            dims = [[n.meta["val"].dim() for n in c.recording.graph.nodes if isinstance(n.meta.get("val"), Tensor)] for c in (first, other)]
            outcomes = [[g.outcome for g in c.recording.log.guards] for c in (first, other)]
            if targets[0] != targets[1] or dims[0] != dims[1] or outcomes[0] != outcomes[1]:
                return False
            try:
                check_constants([first, other])
            except StructureError:
                return False
        return True


def grouped(symbols: list[Symbol], all_kinds: bool = False) -> list[Symbol]:
    """Hints with equal sizes as one symbol, and with `all_kinds` also named ones."""
    found: dict[Any, Symbol] = {}
    for s in symbols:
        key = s.name if s.kind == "named" and not all_kinds else s.hint
        if key in found:
            merged = found[key]
            merged.places = [*merged.places, *s.places]
            merged.low = max(merged.low, s.low)
            merged.high = s.high if merged.high is None else merged.high if s.high is None else min(merged.high, s.high)
            merged.kind = "DYNAMIC" if "DYNAMIC" in (merged.kind, s.kind) else merged.kind
        else:
            made = Symbol(s.name, s.hint, s.low, s.high, s.kind)
            made.places = list(s.places)
            found[key] = made
    return list(found.values())


def found_for(what: Exported, symbols: list[Symbol]) -> tuple[Captured, dict, list[Symbol]]:
    """The recording, the ranges, and the symbols that are left after those of Dim.AUTO were decided."""
    if all(s.kind == "named" for s in symbols):
        return (*Attempt(what, symbols).run(), symbols)
    try:
        return (*Attempt(what, symbols).run(), symbols)
    except UserError:
        groups = grouped(symbols)
    try:
        return (*Attempt(what, groups).run(), groups)
    except UserError:
        if not any(s.kind == "AUTO" for s in groups):
            raise
    kept = [s for s in groups if s.kind != "AUTO"]
    for symbol in (s for s in groups if s.kind == "AUTO"):  # one after the other
        try:
            Attempt(what, [*kept, symbol]).run()
        except UserError:
            continue
        kept.append(symbol)
    return (*Attempt(what, kept).run(), kept)


def _outputs(captured: Captured) -> list[OutputSpec]:
    specs = []
    for i, value in enumerate(captured.outputs):
        if isinstance(value, Node):
            kind = {float: SymFloatArgument, bool: SymBoolArgument}.get(type(value.meta.get("val")), SymIntArgument)
            made = kind(value.name) if not isinstance(value.meta.get("val"), Tensor) else TensorArgument(value.name)
        else:
            if isinstance(value, RecordedSize) or type(value) in (SymBool, RecordedFloat):
                value = captured.outputs[i] = value_of(value)
            if not isinstance(value, (int, float, bool, str, type(None))):
                raise UserError(f"[export] expected results that are tensors, numbers, strings or None, got {type(value).__name__}")
            made = ConstantArgument(f"output_{i}", value)
        specs.append(OutputSpec(OutputKind.USER_OUTPUT, made, None))
    return specs


def export(
    mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None, strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (), prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """Records the operators of a module's forward, for arguments like `args`.

    Forward runs on tensors without values. What Python computes from numbers is constant in the program. With dynamic sizes, it
    is recorded for several sizes, and the recordings must differ in nothing but numbers that follow from sizes.

    Args:
        mod: the module; its parameters and buffers become inputs of the graph, and are shared with the program.
        args, kwargs: example arguments: tensors, numbers, strings and None, in containers.
        dynamic_shapes: sizes that may differ, per argument: ``{"x": {0: Dim("batch")}}`` or a tuple in the order of the arguments.
        strict: also requires that torch.compile(fullgraph=True) captures forward, so that no Python code with other effects is left
            out. Forward runs in Python in both cases.
        preserve_module_call_signature: names of submodules whose arguments and results module_call_graph has. unflatten() makes
            modules that are called like them.

    Raises:
        TypeError, ValueError: an argument has the wrong type.
        UserError: a size that was declared dynamic is not, with the declarations that would serve; or the sizes do not fit the
            arguments.
        Unsupported: with `strict`, forward cannot be captured whole.
        GuardOnDataDependentSymNode: forward branches on values of tensors.
        NotImplementedError: forward does what cannot be recorded.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    if prefer_deferred_runtime_asserts_over_guards:
        raise NotImplementedError("[export] prefer_deferred_runtime_asserts_over_guards: guards are proved, or export raises")
    check_names(mod, preserve_module_call_signature)
    what = Exported(mod, args, ordered(mod, args, dict(kwargs or {})), tuple(preserve_module_call_signature))
    symbols = symbols_of(dynamic_shapes, mod, args, what.kwargs)
    if strict:
        check_whole(mod, args, what.kwargs)
    try:
        captured, ranges, kept = found_for(what, symbols)
    except ViolatedError as e:
        raise UserError(e.text(suggested_fixes(lambda s: Attempt(what, s).run(), symbols))) from e.__cause__
    return program_of(what, captured, ranges, kept)


def ordered(mod: Module, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments in the order of forward's parameters."""
    bound = inspect.signature(mod.forward).bind(*args, **kwargs)
    order = [n for n in bound.arguments if n in kwargs]
    return {k: kwargs[k] for k in [*order, *(k for k in kwargs if k not in order)]}


def program_of(what: Exported, captured: Captured, ranges: dict, symbols: list[Symbol]) -> ExportedProgram:
    """The program of a recording."""
    mod, args, kwargs, _ = what
    recording = captured.recording
    output_specs = _outputs(captured)
    with_plain_numbers(recording.graph)
    recording.graph.output(tuple(captured.outputs))
    without_mode_changes(recording.graph, recording.root, _C.is_grad_enabled())
    remove_unused_items(recording.graph, {v for c in captured.calls for v in (*c.inputs, *c.outputs) if isinstance(v, Node)})
    returned = list(next(n for n in reversed(recording.graph.nodes) if n.op == "output").args[0])
    for spec, value in zip(output_specs, returned):
        if isinstance(value, Node):
            spec.arg.name = value.name
    leaves, in_spec = pytree.tree_flatten((args, kwargs))
    signature = ExportGraphSignature(captured.input_specs, output_specs)
    names = [s.arg.name for s in captured.input_specs if s.kind == InputKind.USER_INPUT]
    sizes: dict[tuple[int, int], tuple] = {}
    for symbol in symbols:
        for leaf, dim, factor, offset in symbol.places:
            sizes[leaf, dim] = (symbol.name, factor, offset)
    expected = [
        (name, TensorInput([sizes.get((i, d), n) for d, n in enumerate(leaf.shape)], leaf.dtype) if isinstance(leaf, Tensor) else leaf)
        for i, (name, leaf) in enumerate(zip(names, leaves))
    ]
    state = state_of(mod)
    constants = dict(captured.constants)
    constants |= {n: b for n, b in mod.named_buffers() if n not in state}
    forward_names = _forward_names(mod, args, kwargs)
    call = ModuleCallSignature([], [], in_spec, captured.out_spec, forward_names)
    modules = entries(mod, call, captured.calls)
    constraints = {name: ValueRange(*bounds) for name, bounds in ranges.items()}
    for node in recording.graph.nodes:
        node.meta.pop("requires_grad", None)
    return ExportedProgram(
        recording.root, recording.graph, signature, state, constraints, modules, (args, kwargs), constants,
        input_check=InputCheck(in_spec, expected, ranges),
    )  # fmt: skip


def _forward_names(mod: Module, args: tuple, kwargs: dict[str, Any]) -> list[str]:
    parameters = inspect.signature(mod.forward).parameters
    names: list[str] = []
    for name, value in combined_args(mod, args, kwargs).items():
        kind = parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}_{i}" for i in range(len(value))]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            names += list(value)
        else:
            names.append(name)
    return names
