"""export(): records a module's forward as an ExportedProgram."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from .. import _C
from .._C import Tensor
from ..fx.experimental._recording import DynamicSizesError
from ..fx.experimental._regions import without_mode_changes
from ..fx.experimental._sizes import SizeLog, Symbol
from ..fx.experimental._symbolic import numbers_of
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
from ._module_calls import entries
from ._preserved import check_names
from ._settled import Settled, described
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


def found_for(what: Exported, symbols: list[Symbol]) -> tuple[Captured, Settled]:
    """The recording, and the sizes that it serves.

    Raises:
        ViolatedError: it does not serve all that were declared.
    """
    try:
        return _recorded(what, symbols, None)
    except (GuardOnDataDependentSymNode, DynamicSizesError):  # numbers may depend on values
        plan = Plan(not symbols)
        return plan.run(lambda: _recorded(what, symbols, plan))


def _recorded(what: Exported, symbols: list[Symbol], plan: Plan | None) -> tuple[Captured, Settled]:
    """found_for(). `plan`: of numbers that depend on values of tensors; None if they are not permitted."""

    def record(values: Values | None, stores_lines: bool = False) -> Captured:
        log = SizeLog(values, symbols)
        return capture(what.module, what.args, what.kwargs, numbers_of(log, symbols), log, stores_lines, what.preserved)

    if plan is None:
        captured = record(None, True)
        return captured, described(captured.recording, symbols)
    plan.check(record)
    captured, values = plan.first(lambda v: record(v, True))
    found = described(captured.recording, symbols)
    extra = values.describe()
    return captured, found._replace(ranges={**found.ranges, **plan.ranges(values), **dict.fromkeys(extra, (0, None))})


def _outputs(captured: Captured) -> list[OutputSpec]:
    specs = []
    for i, value in enumerate(captured.outputs):
        if isinstance(value, Node):
            kind = {float: SymFloatArgument, bool: SymBoolArgument}.get(type(value.meta.get("val")), SymIntArgument)
            made = kind(value.name) if not isinstance(value.meta.get("val"), Tensor) else TensorArgument(value.name)
        else:
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

    Forward runs once, on tensors without values, whose dynamic sizes are symbols. Where Python code decides by a size, or needs it as
    a number, the program serves the sizes for which it would do the same.

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
    return program_of(what, *found_for(what, symbols))


def ordered(mod: Module, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments in the order of forward's parameters."""
    bound = inspect.signature(mod.forward).bind(*args, **kwargs)
    order = [n for n in bound.arguments if n in kwargs]
    return {k: kwargs[k] for k in [*order, *(k for k in kwargs if k not in order)]}


def program_of(what: Exported, captured: Captured, found: Settled) -> ExportedProgram:
    """The program of a recording."""
    mod, args, kwargs, _ = what
    recording = captured.recording
    output_specs = _outputs(captured)
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
    for symbol in found.symbols:
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
    constraints = {name: ValueRange(*bounds) for name, bounds in found.ranges.items()}
    for node in recording.graph.nodes:
        node.meta.pop("requires_grad", None)
    return ExportedProgram(
        recording.root, recording.graph, signature, state, constraints, modules, (args, kwargs), constants,
        input_check=InputCheck(in_spec, expected, found.ranges, found.checks),
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
