"""run_decompositions(): a program without writes, in other operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._C import Tensor
from ..fx.experimental._functional import Functionaliser
from ..fx.experimental._recording import DynamicSizesError, Recording
from ..fx.experimental._sizes import SizeLog, Symbol
from ..fx.experimental._unbacked import Values
from ..fx.experimental._unbacked_plan import Plan
from ..fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ._checks import InputCheck, TensorInput, ValueRange
from ._fixes import ViolatedError
from ._settled import described
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

# A module without writes, the names of the inputs that it writes, and the ranges of its numbers that depend on values of tensors.
Functional = tuple[GraphModule, list[str], dict[str, tuple[Any, Any]]]


class _Recorded(NamedTuple):
    """A recording of a program without writes, as Plan compares it."""

    recording: Recording
    module: GraphModule
    written: list[str]
    outputs: list[Any]
    out_spec: Any
    constants: dict[str, Tensor]


_WRITTEN = {
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION, InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}  # fmt: skip


def _numbers(program: Any, log: SizeLog) -> dict[str, dict[int, int]]:
    """The sizes of the user's inputs that are symbols, by name and dimension."""
    found = {}
    inputs = [s.arg.name for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    for name, (_, expected) in zip(inputs, program._input_check.leaves):
        if isinstance(expected, TensorInput):
            found[name] = {d: log.number_at(*size) for d, size in enumerate(expected.sizes) if isinstance(size, tuple)}
    return found


def _hints(program: Any) -> dict[str, int]:
    """The sizes of the symbols in the example."""
    found: dict[str, int] = {}
    inputs = {s.arg.name for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT}
    vals = [n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder" and n.name in inputs]
    for val, (_, expected) in zip(vals, program._input_check.leaves):
        if isinstance(expected, TensorInput):
            for size, shown in zip(expected.sizes, tuple(val.shape)):
                if isinstance(size, tuple):
                    found.setdefault(size[0], (shown - size[2]) // size[1])
    return found


def _functional(program: Any, table: dict[Any, Callable]) -> Functional:
    """The module, whose numbers serve the sizes in the returned ranges."""
    hints = _hints(program)
    symbols = [Symbol(n, hints[n], r.lower, r.upper, "named") for n, r in program.range_constraints.items() if n in hints]
    comparisons = list(program._input_check.comparisons) if program._input_check is not None else []

    def record(values: Values | None) -> _Recorded:
        log = SizeLog(values, symbols)
        for text in comparisons:
            log.assume(text)
        made = Functionaliser(program.graph_module, table, _numbers(program, log) if symbols else None, log)
        module, written = made.run()
        end = next(n for n in reversed(module.graph.nodes) if n.op == "output")
        return _Recorded(made.recording, module, written, list(end.args[0]), None, {})

    try:
        made, more = record(None), {}
    except (GuardOnDataDependentSymNode, DynamicSizesError):  # numbers depend on values
        plan = Plan(not symbols)

        def attempt() -> tuple[_Recorded, dict]:
            plan.check(record)
            found, values = plan.first(record)
            extra = values.describe()
            return found, {**plan.ranges(values), **dict.fromkeys(extra, (0, None))}

        try:
            made, more = plan.run(attempt)
        except GuardOnDataDependentSymNode as e:
            raise NotImplementedError(f"[run_decompositions] a decomposition that depends on numbers of the program: {e}") from e
    try:
        ranges = described(made.recording, symbols, comparisons).ranges
    except ViolatedError as e:
        raise NotImplementedError(f"[run_decompositions] a decomposition that depends on dynamic sizes: {e}") from e
    return made.module, made.written, {**ranges, **more}


def _lifted(module: GraphModule, inputs: list[InputSpec], known: dict[str, Tensor]) -> dict[str, Tensor]:
    """Makes inputs of the constant tensors that decompositions have added to the graph; returns them by name."""
    graph, found = module.graph, {}
    place = sum(s.kind != InputKind.USER_INPUT for s in inputs)
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    for node in [n for n in graph.nodes if n.op == "get_attr"]:
        value = getattr(module, node.target)
        if not isinstance(value, Tensor):
            continue
        target = f"lifted_tensor_{sum(n.startswith('lifted_tensor_') for n in (*known, *found))}"
        with graph.inserting_before(placeholders[place] if place < len(placeholders) else next(iter(graph.nodes))):
            made = graph.placeholder(f"c_{target}")
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
        graph.erase_node(node)
        inputs.insert(place, InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(made.name), target))
        found[target] = value.detach()
        place += 1
        placeholders.insert(place - 1, made)
    if found:
        module.recompile()
    return found


def decomposed(program: Any, table: dict[Any, Callable]) -> Any:
    """An ExportedProgram in functional form, with the table's functions in place of operators."""
    module, written, ranges = _functional(program, table)
    check = program._input_check
    if check is not None:
        check = InputCheck(check.in_spec, check.leaves, {n: ranges.get(n, r) for n, r in check.ranges.items()}, list(check.comparisons))
    signature = program.graph_signature
    specs = {s.arg.name: s for s in signature.input_specs}
    inputs: list[InputSpec] = []
    for node, old in zip((n for n in module.graph.nodes if n.op == "placeholder"), signature.input_specs):
        arg = ConstantArgument(node.name, old.arg.value) if isinstance(old.arg, ConstantArgument) else TensorArgument(node.name)
        inputs.append(InputSpec(old.kind, arg, old.target, old.persistent))
    constants = {**program.constants, **_lifted(module, inputs, program.constants)}
    returned = list(next(n for n in reversed(module.graph.nodes) if n.op == "output").args[0])
    outputs: list[OutputSpec] = []
    for name, value in zip(written, returned):
        spec = specs[name]
        if spec.kind not in _WRITTEN:
            raise NotImplementedError(f"[run_decompositions] a write to the constant {spec.target}")
        target = spec.target if spec.kind != InputKind.USER_INPUT else name
        outputs.append(OutputSpec(_WRITTEN[spec.kind], TensorArgument(value.name), target))
    for old, value in zip(signature.output_specs, returned[len(written) :], strict=True):
        kind = type(old.arg) if isinstance(old.arg, (SymIntArgument, SymFloatArgument, SymBoolArgument)) else TensorArgument
        arg = kind(value.name) if isinstance(value, Node) else ConstantArgument(old.arg.name, value)
        outputs.append(OutputSpec(old.kind, arg, old.target))
    return type(program)(
        module, module.graph, ExportGraphSignature(inputs, outputs), program.state_dict,
        {n: ValueRange(*r) for n, r in ranges.items()}, program.module_call_graph, program.example_inputs, constants, input_check=check,
        verifier="ATEN",
    )  # fmt: skip
