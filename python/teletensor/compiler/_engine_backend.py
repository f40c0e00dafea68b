"""The backends "inductor" and "teletensor": graphs as Programs, which the engine runs as one instruction."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

from .._C import SymInt, Tensor
from .._C.torch import empty
from .._dynamo._backends import plain_forward, register_backend
from .._dynamo._logs import counters, log
from .._dynamo._tensors import mode_state, set_mode_state
from ..fx.node import map_arg
from .programs import trace_sizes


def engine(gm: Any, inputs: Sequence[Tensor]) -> Callable:
    """Makes a Program of the graph, which the engine runs as one instruction; if a Program cannot contain it, runs its operators."""
    forward = plain_forward(gm)
    before = mode_state()
    try:
        reason = _changed_input(gm, inputs)
        if not reason:
            is_flat = all(node.op in ("placeholder", "call_function", "call_method", "output") for node in gm.graph.nodes)
            sizes = _Sizes(gm, inputs)
            call = functools.partial(_call_nodes, gm) if is_flat or sizes.numbers else gm.forward
            program = trace_sizes(call, sizes.tensors(inputs), sizes.constant)
            reason = _reason_against(program, gm)
    except Exception as e:  # noqa: BLE001 - whatever a Program refuses runs one by one
        reason = f"{type(e).__name__}: {e}"
    finally:
        set_mode_state(before)
    if reason:
        counters["engine"]["one by one"] += 1
        log("graph_code", f"the graph runs operator by operator: {reason}")
        return forward
    counters["engine"]["programs"] += 1
    run = program._program.run
    if program._logged is not None:
        program._log(sizes.tensors(inputs))

    if sizes.are_dynamic:
        run = _dynamic_run(run, forward, sizes)

    def run_program(*tensors: Any) -> tuple:
        return run(tensors)

    run_program.run = run
    run_program.program = program
    return run_program


class _Sizes:
    """Which inputs of a graph have sizes that differ from run to run, or are ints that do.

    Attributes:
        numbers: the positions of ints. In a Program, each is the size of a tensor without elements.
        constant: the other sizes, as (position, dimension); True if all are constant.
    """

    def __init__(self, gm: Any, inputs: Sequence[Any]) -> None:
        placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
        self.numbers = {i for i, value in enumerate(inputs) if type(value) is int}
        dims = [() if i in self.numbers else node.meta.get("dynamic_dims") or () for i, node in enumerate(placeholders)]
        self.are_dynamic = bool(self.numbers) or any(dims)
        self.constant: Any = True
        if self.are_dynamic:
            pairs = enumerate(zip(inputs, dims))
            self.constant = [(i, d) for i, (v, of) in pairs if i not in self.numbers for d in range(v.dim()) if d not in of]

    def tensors(self, inputs: Sequence[Any]) -> list[Tensor]:
        """The inputs of the Program."""
        if not self.numbers:
            return list(inputs)
        return [empty([value, 0]) if i in self.numbers else value for i, value in enumerate(inputs)]


def _dynamic_run(run: Callable, forward: Callable, sizes: _Sizes) -> Callable:
    """Runs a Program; operator by operator if it requires other sizes than the guards."""

    def run_or_call(inputs: Sequence[Any]) -> tuple:
        try:
            return run(sizes.tensors(inputs))
        except ValueError as e:  # before anything has run
            if not str(e).startswith("[run_program] "):
                raise
        return forward(*inputs)

    return run_or_call


def _changed_input(gm: Any, inputs: Sequence[Tensor]) -> str:
    """Why the graph gives an input other metadata, which a Program's run cannot; empty if it does not."""
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    for node, tensor in zip(placeholders, inputs):
        example = node.meta.get("example_value")  # the capture has executed the graph's calls with it
        if isinstance(example, Tensor) and _metadata(example) != _metadata(tensor):
            return f"it changes the metadata of {node.name}"
    return ""


def _metadata(tensor: Tensor) -> tuple:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.requires_grad


def _call_nodes(gm: Any, *inputs: Tensor) -> tuple:
    """Calls the graph's functions, each from the user's line, which errors of a run then name."""
    values: dict[Any, Any] = {}
    tensors = iter(inputs)
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(tensors)
            if isinstance(node.meta.get("example_value"), SymInt):
                values[node] = values[node].size(0)
            continue
        args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
        if node.op == "output":
            return args[0]
        function = getattr(args[0], node.target) if node.op == "call_method" else node.target
        values[node] = _caller(*node.meta.get("site", ("<graph>", 1, "forward")))(
            function, args[1:] if node.op == "call_method" else args, kwargs
        )
    raise AssertionError("a graph without an output")


@functools.lru_cache(4096)
def _caller(file: str, line: int, name: str) -> Callable:
    """A function that calls another one from a line of a file."""
    code = (lambda function, args, kwargs: function(*args, **kwargs)).__code__
    code = code.replace(co_filename=file, co_firstlineno=line, co_name=name, co_qualname=name)
    return types.FunctionType(code, {})


def _reason_against(program: Any, gm: Any) -> str:
    """Why a Program must not be used although it could be traced; empty if there is no reason."""
    if program._prepare:
        return "it depends on an optimizer"
    if any(not isinstance(result, Tensor) and result is not None and type(result).__name__ != "object" for result in program._results):
        return "a result is not a tensor"
    if not program.captured:
        return ""
    # Tensors that the function creates from numbers are captured: each call of the function makes new ones.
    outputs = set(gm.graph.output_node().all_input_nodes)
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
        if name.endswith("_") and not name.endswith("__") or name in ("setitem",) or "out" in node.kwargs or name.startswith("i") and (
            getattr(node.target, "__module__", "") == "_operator" and name not in ("inv", "invert", "index", "is_", "is_not")
        ):
            return "it writes, and has tensors of constants"
        if node in outputs and not any(i.op == "placeholder" for i in _ancestors(node)):
            return "it returns a tensor of constants"
    return ""


def _ancestors(node: Any) -> set:
    found, left = set(), [node]
    while left:
        at = left.pop()
        for i in at.all_input_nodes:
            if i not in found:
                found.add(i)
                left.append(i)
    return found


for _name in ("inductor", "teletensor"):
    register_backend(engine, _name)
