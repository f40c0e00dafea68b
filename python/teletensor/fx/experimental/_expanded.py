"""The operators of a function and of its backward passes, as the engine executes them.

The function is traced as a Program, in which autograd.grad() is one instruction. The engine replaces it by the calls of the tape's
formulas (engine/program/passes/expand.h), and the calls are recorded as nodes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ... import _C, _trace_runs
from ..._C import Tensor
from ..._library.engine_operators import operator_named
from ...overrides import documented_parameters
from ...utils import _pytree as pytree
from ..graph_module import GraphModule
from ._functional import functional
from ._recorded import RecordedTensor
from ._recording import Recording


class Expanded:
    """The calls of a traced function.

    Attributes:
        instructions: the calls, with names of values.
        sources: by name, beginning at 1: the tensor that the value is, an argument or a captured tensor.
        results: the leaves of the function's result: a name for a tensor, else the value itself.
        spec: the result's structure.
    """

    def __init__(self, f: Callable, args: tuple) -> None:
        leaves, spec = pytree.tree_flatten(args)
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        tracing = _C.ProgramTrace(tensors)
        try:
            inputs = tracing.inputs
            stand_ins = iter(inputs)
            given = pytree.tree_unflatten([next(stand_ins) if isinstance(x, Tensor) else x for x in leaves], spec)
            with _trace_runs.collected() as prepare:
                result, self.spec = pytree.tree_flatten(f(*given))
            if prepare:
                raise NotImplementedError("[make_fx] an optimizer's step; call it after the function")
            places = {t._handle: i for i, t in enumerate(inputs)}
            outputs: dict[int, Tensor] = {}
            for value in result:
                if isinstance(value, Tensor) and value._handle not in places:
                    outputs.setdefault(value._handle, value)
            program = tracing.finish([t.detach() if t.requires_grad else t for t in outputs.values()], True)
        finally:
            tracing.stop()
        captured = list(program.captured)
        known = {t._handle: t for t in captured}
        computed = [h for h in outputs if h not in known]
        found = json.loads(program.expanded(tensors)) if program.instructions else {"instructions": [], "outputs": []}
        if len(found["outputs"]) != len(computed):
            raise NotImplementedError("[make_fx] backward() stores gradients in .grad; use torch.autograd.grad()")
        self.instructions = found["instructions"]
        self.sources = [tensors[i] if i < len(tensors) else captured[i - len(tensors)] for i in program.order]
        self.arguments = tensors
        names = dict(zip(computed, found["outputs"]))
        order = {i: n for n, i in enumerate(program.order, 1)}
        names |= {h: order[i] for h, i in places.items()}
        names |= {t._handle: order[len(tensors) + i] for i, t in enumerate(captured)}
        self.results = [_Name(names[v._handle]) if isinstance(v, Tensor) else v for v in result]

    def replay(self, values: list[Tensor]) -> list[Any]:
        """Calls the operators with other tensors in place of `sources`; returns the leaves of the result."""
        known: dict[int, Any] = dict(enumerate(values, 1))
        for call in self.instructions:
            operator = operator_named(call["op"])
            given = call["args"]
            defaults = {} if len(given) == len(operator.names) else {n: d for n, d, _ in documented_parameters(operator.function)}
            arguments = [_value(given[n], known) if n in given else defaults[n] for n in operator.names]
            if call["op"] == "literal":  # a constant
                content, size, dtype, device = arguments
                content = content.encode() if isinstance(content, str) else content
                known.update(zip(call["results"], [_C.from_bytes(content, dtype, size, device)]))
                continue
            if call["into"]:
                operator.call(arguments, [known[n] for n in call["results"]])
                continue
            known.update(zip(call["results"], operator.call(arguments)))
        return [known[v] if isinstance(v, _Name) else v for v in self.results]


class _Name(int):
    """The name of a value in a Program."""


def _value(value: Any, known: dict[int, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    (kind, content), = value.items()
    if kind == "name":
        return known[content]
    if kind == "names":
        return [known[n] if n else None for n in content]
    if kind == "complex":
        return complex(*content)
    if kind == "bytes":  # of a literal
        return bytes.fromhex(content)
    return getattr(_C, content) if kind == "dtype" else _C.device(content)


def nested_gradients_error() -> NotImplementedError:
    """The error for functions that make tensors from outside require grad, or ask for a gradient in another way than by
    autograd.grad() or a transform of torch.func."""
    return NotImplementedError(
        "[make_fx] a function that makes tensors from outside require grad, or stores gradients with a history: call "
        "torch.autograd.grad(), or a transform of torch.func, with tensors of the function or inputs that require grad"
    )


def expanded_graph(f: Callable, args: tuple, decompositions: dict[Any, Callable] | None = None) -> GraphModule:
    """The graph of a function that computes gradients, in functional form. Its inputs are the tensors among the arguments.

    Raises:
        NotImplementedError: the engine cannot expand the function's backward passes, or they store gradients in `.grad`.
    """
    try:
        expanded = Expanded(f, args)
    except NotImplementedError as e:
        if not any(text in str(e) for text in ("[requires_grad]", "create_graph=True")):
            raise
        raise nested_gradients_error() from e
    recording = Recording(True, decompositions)
    inputs = {}
    for i, leaf in enumerate(pytree.tree_leaves(args)):
        if isinstance(leaf, Tensor):
            inputs[leaf._handle] = recording.placeholder(f"arg{i}_1", leaf.detach())
        else:
            recording.number(f"arg{i}_1", leaf)
    made = []
    for tensor in expanded.sources:
        made.append(inputs[tensor._handle] if tensor._handle in inputs else recording.constant(tensor, fresh=False, detached=True))
    with recording:
        leaves = expanded.replay(made)
    nodes = [recording.own(v)._node if isinstance(v, RecordedTensor) else v for v in leaves]
    recording.graph.output(pytree.tree_unflatten(nodes, expanded.spec))
    module, written = functional(GraphModule(recording.root, recording.graph))
    if written:
        raise NotImplementedError(f"[make_fx] a function that computes gradients and writes to {', '.join(written)}")
    return module
