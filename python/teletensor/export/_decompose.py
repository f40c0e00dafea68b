"""run_decompositions(): a program without writes, in other operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._C import Tensor
from ..fx.experimental._functional import Functionaliser
from ..fx.node import Node
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

_WRITTEN = {
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION, InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}  # fmt: skip


def decomposed(program: Any, table: dict[Any, Callable]) -> Any:
    """An ExportedProgram in functional form, with the table's functions in place of operators."""
    if program.range_constraints and any(not isinstance(n.meta.get("val"), Tensor) and n.op == "call_function" and n.users
                                         and "symbolic_value" in n.meta for n in program.graph.nodes):  # fmt: skip
        raise NotImplementedError("[run_decompositions] programs that compute with dynamic sizes")
    module, written = Functionaliser(program.graph_module, table).run()
    signature = program.graph_signature
    specs = {s.arg.name: s for s in signature.input_specs}
    inputs: list[InputSpec] = []
    for node, old in zip((n for n in module.graph.nodes if n.op == "placeholder"), signature.input_specs):
        arg = ConstantArgument(node.name, old.arg.value) if isinstance(old.arg, ConstantArgument) else TensorArgument(node.name)
        inputs.append(InputSpec(old.kind, arg, old.target, old.persistent))
    returned = list(next(n for n in reversed(module.graph.nodes) if n.op == "output").args[0])
    outputs: list[OutputSpec] = []
    for name, value in zip(written, returned):
        spec = specs[name]
        if spec.kind not in _WRITTEN:
            raise NotImplementedError(f"[run_decompositions] a write to the constant {spec.target}")
        target = spec.target if spec.kind != InputKind.USER_INPUT else name
        outputs.append(OutputSpec(_WRITTEN[spec.kind], TensorArgument(value.name), target))
    for old, value in zip(signature.output_specs, returned[len(written) :], strict=True):
        arg = TensorArgument(value.name) if isinstance(value, Node) else ConstantArgument(old.arg.name, value)
        outputs.append(OutputSpec(old.kind, arg, old.target))
    return type(program)(
        module, module.graph, ExportGraphSignature(inputs, outputs), program.state_dict, program.range_constraints,
        program.module_call_graph, program.example_inputs, program.constants, input_check=program._input_check, verifier="ATEN",
    )  # fmt: skip
