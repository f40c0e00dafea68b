"""run_decompositions(): a program without writes, in other operators."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .._C import Tensor
from ..fx.experimental._functional import Functionaliser
from ..fx.experimental._large_sizes import large_captures
from ..fx.experimental._merge import StructureError, Symbol, merge, sample_points
from ..fx.experimental._recording import DynamicSizesError
from ..fx.experimental._sizes import RecordedFloat, RecordedSize, SizeLog, operands_of
from ..fx.experimental._unbacked import Values
from ..fx.experimental._unbacked_plan import Plan
from ..fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ._capture import Captured
from ._checks import TensorInput, ValueRange
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

_WRITTEN = {
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION, InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}  # fmt: skip


def _sizes(program: Any, point: dict[str, int]) -> dict[str, list[int]]:
    """The sizes of the user's inputs, by name, for sizes of the symbols."""
    found = {}
    inputs = [s.arg.name for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    vals = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    for name, (_, expected) in zip(inputs, program._input_check.leaves):
        if isinstance(expected, TensorInput):
            sizes: list[int] = []
            for size, shown in zip(expected.sizes, tuple(vals[name].shape)):
                sizes.append(point[size[0]] * size[1] + size[2] if isinstance(size, tuple) else shown)
            found[name] = sizes
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


def _recorded(
    program: Any, table: dict[Any, Callable], point: dict[str, int], values: Values | None = None
) -> tuple[Captured, list[str]]:  # fmt: skip
    log = SizeLog(values)
    made = Functionaliser(program.graph_module, table, _sizes(program, point), point, log)
    module, written = made.run()
    found = Captured()
    found.recording, found.constants, found.out_spec = made.recording, {}, None
    found.recording.graph, found.recording.root = module.graph, module
    nodes = set(module.graph.nodes)
    log.expressions = [e for e in log.expressions if _remains(e, nodes)]
    end = next(n for n in reversed(module.graph.nodes) if n.op == "output")
    found.outputs = list(end.args[0])
    module.graph.erase_node(end)  # nodes that compute results are added behind the others
    return found, written


def _remains(size: Any, nodes: set[Node]) -> bool:
    """Whether the tensors that a size was computed from are still in the graph."""
    if type(size) not in (RecordedSize, RecordedFloat):
        return True
    kind, origin, *_ = size.recipe
    return origin in nodes if kind in ("size", "stride", "offset") else all(_remains(o, nodes) for o in operands_of(size))


def _functional(program: Any, table: dict[Any, Callable]) -> Functional:
    """The module, whose numbers serve all sizes of the program's ranges."""
    hints = _hints(program)
    symbols = [Symbol(n, hints[n], r.lower, r.upper, "named") for n, r in program.range_constraints.items() if n in hints]
    try:
        return _functional_backed(program, table, symbols)
    except (GuardOnDataDependentSymNode, DynamicSizesError):  # numbers depend on values
        plan = Plan(not symbols)
        try:
            return plan.run(lambda: _functional_unbacked(program, table, symbols, plan))
        except GuardOnDataDependentSymNode as e:
            raise NotImplementedError(f"[run_decompositions] a decomposition that depends on numbers of the program: {e}") from e


def _functional_backed(program: Any, table: dict[Any, Callable], symbols: list[Symbol]) -> Functional:
    """_functional() of a program without numbers that depend on values of tensors."""
    if not symbols:
        return *Functionaliser(program.graph_module, table).run(), {}
    points = sample_points(symbols, 2)
    small = [{s.name: k if s.low <= k and (s.high is None or k <= s.high) else s.hint for s in symbols} for k in (0, 1)]
    try:
        captures = [_recorded(program, table, point) for point in points]
        first, written = captures[0]
        calls = [(n.op, str(n.target)) for n in first.recording.graph.nodes]
        for point in small:
            other = _recorded(program, table, point)[0]
            if [(n.op, str(n.target)) for n in other.recording.graph.nodes] != calls:
                raise StructureError(f"the operators differ for the sizes {point}")
        made, fatal = [c for c, _ in captures], (GuardOnDataDependentSymNode, DynamicSizesError)
        more = large_captures(lambda p: _recorded(program, table, p)[0], symbols, made, fatal)
        merge(made + more[0], points + more[1])
    except (GuardOnDataDependentSymNode, DynamicSizesError):
        raise
    except (RuntimeError, ValueError, IndexError) as e:
        raise NotImplementedError(f"[run_decompositions] a decomposition that depends on dynamic sizes: {e}") from e
    graph = first.recording.graph
    graph.output(tuple(first.outputs))
    return GraphModule(first.recording.root, graph), written, {}


def _functional_unbacked(program: Any, table: dict[Any, Callable], symbols: list[Symbol], plan: Plan) -> Functional:
    """_functional() of a program with numbers that depend on values of tensors."""
    points = sample_points(symbols, 2)
    plan.check(lambda v: _recorded(program, table, points[0], v)[0])
    (first, written), values = plan.first(lambda v: _recorded(program, table, points[0], v))
    captures = [first]
    try:
        for i, point in enumerate(points[1:] if symbols else []):
            captures.append(plan.recorded(lambda v, point=point: _recorded(program, table, point, v)[0], i + 1)[0])
        if symbols:
            merge(captures, points)
    except GuardOnDataDependentSymNode:
        raise
    except (RuntimeError, ValueError, IndexError) as e:
        raise NotImplementedError(f"[run_decompositions] a decomposition that depends on dynamic sizes: {e}") from e
    extra = values.describe()
    ranges = {**plan.ranges(values), **dict.fromkeys(extra, (0, None))}
    graph = first.recording.graph
    graph.output(tuple(first.outputs))
    return GraphModule(first.recording.root, graph), written, ranges


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
    if ranges:  # the recording has other symbols than the program
        sizes = {n: r for n, r in program.range_constraints.items() if re.fullmatch(r"z?uf?\d+", n) is None}
        ranges = {**sizes, **{n: ValueRange(*r) for n, r in ranges.items()}}
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
        module, module.graph, ExportGraphSignature(inputs, outputs), program.state_dict, ranges or program.range_constraints,
        program.module_call_graph, program.example_inputs, constants, input_check=program._input_check, verifier="ATEN",
    )  # fmt: skip
