"""Programs of captured graphs: which tensors they receive, whose sizes may differ, and what they must not contain."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

from .. import _C, _trace_runs
from .._C import Tensor
from .._C.torch import empty
from .._dynamo._capture_store import reason_against_graph
from .._dynamo._tensors import MODE_FUNCTIONS, mode_state, set_mode_state
from .._library.custom_op import consists_of_engine_operators, is_operator
from ..autograd import gradients
from ..fx.node import map_arg
from ..optim._hooks import has_step_hooks
from .programs import TracedProgram, trace_sizes

_OF_CONSTANTS = frozenset(("tensor", "as_tensor", "asarray", "scalar_tensor"))
_MAX_TRACES = 8  # of a step


def _first_modes(nodes: list) -> str:
    """Why the modes of the thread do not permit a Program: a run has those that it begins with."""
    if _C.is_inference_mode() and any(node.target is _C.set_inference_mode and node.args == (False,) for node in nodes):
        return "it leaves inference mode"
    return ""


class GraphProgram:
    """The Program of a graph.

    Tensors that an optimizer in the graph updates are not inputs of the Program: it captures them.

    Args:
        gm: the GraphModule. Placeholders have "dynamic_dims", the dimensions whose sizes differ from run to run, and
            "is_captured" among their metadata.
        inputs: examples: tensors, and numbers that differ from run to run. In a Program, each int is the size of a tensor without
            elements, and each float a tensor without dimensions.

    Attributes:
        program: the Program.
        reason_against: why it must not be used; empty if there is no reason.

    Raises what trace() raises.
    """

    def __init__(self, gm: Any, inputs: Sequence[Any]) -> None:
        self.gm = gm
        nodes = list(gm.graph.nodes)
        placeholders = [node for node in nodes if node.op == "placeholder"]
        self._captured = {i for i, node in enumerate(placeholders) if node.meta.get("is_captured")}
        self._numbers = {i for i, value in enumerate(inputs) if type(value) is int}
        self._floats = {i for i, value in enumerate(inputs) if type(value) is float}
        self._kept = [i for i in range(len(inputs)) if i not in self._captured]
        self._given = list(inputs) if self._captured else []  # the guards require these tensors
        dims = [node.meta.get("dynamic_dims") or () for node in placeholders]
        has_sizes = bool(self._numbers) or any(dims)
        self.is_dynamic = has_sizes or bool(self._floats)
        self._constant: Any = True
        if has_sizes:
            others = self._numbers | self._floats
            self._constant = [
                (at, d) for at, i in enumerate(self._kept) if i not in others for d in range(inputs[i].dim()) if d not in dims[i]
            ]
        is_flat = all(node.op in ("placeholder", "call_function", "call_method", "get_attr", "output") for node in nodes)
        self._has_backward = any(node.target in ("backward", setattr, gradients.grad) for node in nodes)
        self._traces = 0
        # A run without gradients records nothing, but the graph may begin without gradients and enable them.
        self._enables_grad = not _C.is_grad_enabled() and any(
            node.target in MODE_FUNCTIONS and node.args == (True,) and "grad" in node.target.__name__ for node in nodes
        )
        # A Program contains its casts, and runs outside of autocast.
        self._has_autocast = any(_C.autocast_dtype(device) is not None for device in ("cpu", "cuda"))
        self._optimizers = [node.target.optimizer for node in nodes if hasattr(node.target, "optimizer")]
        self._has_steps = bool(self._optimizers)
        self._call = self._call_nodes if is_flat else gm.forward
        self.reason_against = _changed_input(gm, inputs) or _python_operator(gm) or _first_modes(nodes)
        if not is_flat and (self._numbers or self._floats or self._captured):
            self.reason_against = "it has submodules, and inputs that are no tensors"
        if not self.reason_against:
            self.program: TracedProgram = self._trace(inputs)
            self.reason_against = _reason_against(self.program, gm, self._has_steps)

    def _trace(self, inputs: Sequence[Any]) -> TracedProgram:
        return trace_sizes(self._call, self.tensors(inputs), self._constant, getattr(self.gm, "_function_name", "forward"))

    def tensors(self, inputs: Sequence[Any]) -> list[Tensor]:
        """The inputs of the Program."""
        if not self._numbers and not self._floats and not self._captured:
            return list(inputs)
        return [self._tensor(i, inputs[i]) for i in self._kept]

    def _tensor(self, i: int, value: Any) -> Tensor:
        if i in self._numbers:
            return empty([value, 0])
        return _C.tensor(value, dtype=_C.float64, device="cpu") if i in self._floats else value

    def reason_not_to_store(self) -> str:
        """Why another process cannot run the Program without the graph; empty if it can."""
        if self._has_steps or self.is_dynamic or self._has_backward or self._enables_grad or self._has_autocast or self._captured:
            return "a training step, autocast or sizes that are symbols"
        if len(self.program._results) != len(self.program._program.outputs):
            return "results that are no tensors"
        return reason_against_graph(self.gm)

    def _run(self, tensors: Sequence[Tensor]) -> tuple:
        if not self._enables_grad and not self._has_autocast:
            return self.program._program.run(tensors)
        before = mode_state()
        if self._enables_grad:
            _C.set_grad_enabled(True)
        for device in ("cpu", "cuda") if self._has_autocast else ():
            _C.set_autocast_enabled(device, False)
        try:
            return self.program._program.run(tensors)
        finally:
            set_mode_state(before)

    def run_function(self, forward: Callable, inputs: Sequence[Any]) -> Callable:
        """A function of the sequence of inputs that runs the Program, or `forward` where it does not fit."""
        if self.program._logged is not None:
            self.program._log(self.tensors(inputs))
        run = self._run
        if self._has_steps:
            return functools.partial(self._run_step, forward)
        if not self.is_dynamic and not self._has_backward and not self.program._program.written:
            return run if self._enables_grad or self._has_autocast else self.program._program.run

        def run_or_call(inputs: Sequence[Any]) -> tuple:
            try:
                return run(self.tensors(inputs))
            except (RuntimeError, ValueError) as e:  # before anything has run
                if not str(e).startswith("[run_program] "):
                    raise
            return forward(*inputs)

        return run_or_call

    def _run_step(self, forward: Callable, inputs: Sequence[Any]) -> tuple:
        """Runs a Program with an optimizer's step. If the optimizer's state is another one than traced, traces again. Hooks
        of the step, which a Program cannot call, may have been registered since.
        """
        if any(map(has_step_hooks, self._optimizers)):
            return forward(*inputs)
        while self._traces < _MAX_TRACES:
            try:
                return _trace_runs.prepared(self.program._prepare, lambda: self._run(self.tensors(inputs)))
            except (RuntimeError, ValueError) as e:  # before anything has run
                if not str(e).startswith("["):
                    raise
            self._traces += 1
            before = mode_state()
            try:
                self.program = self._trace(inputs)
            except Exception:  # noqa: BLE001 - whatever a Program refuses runs one by one
                break
            finally:
                set_mode_state(before)
        return forward(*inputs)

    def _call_nodes(self, *inputs: Tensor) -> tuple:
        """Calls the graph's functions, each from the user's line, which errors of a run then name."""
        values: dict[Any, Any] = {}
        tensors = iter(inputs)
        for i, node in enumerate(self.gm.graph.nodes):
            if node.op == "placeholder":
                values[node] = self._given[i] if i in self._captured else next(tensors)
                if i in self._numbers:
                    values[node] = values[node].size(0)
                continue
            if node.op == "get_attr":
                values[node] = getattr(self.gm, node.target)
                continue
            args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
            if node.op == "output":
                return args[0]
            function = getattr(args[0], node.target) if node.op == "call_method" else node.target
            values[node] = _caller(*node.meta.get("site", ("<graph>", 1, "forward")))(
                function, args[1:] if node.op == "call_method" else args, kwargs
            )
        raise AssertionError("a graph without an output")


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


@functools.lru_cache(4096)
def _caller(file: str, line: int, name: str) -> Callable:
    """A function that calls another one from a line of a file."""
    code = (lambda function, args, kwargs: function(*args, **kwargs)).__code__
    code = code.replace(co_filename=file, co_firstlineno=line, co_name=name, co_qualname=name)
    return types.FunctionType(code, {})


def _python_operator(gm: Any) -> str:
    """Why a Program cannot contain the graph if it calls a custom operator whose function every call must run."""
    graphs = [module.graph for module in gm.modules() if hasattr(module, "graph")]
    targets = [node.target for graph in graphs for node in graph.nodes if node.op == "call_function"]
    found = next((t for t in targets if is_operator(t) and not consists_of_engine_operators(t)), None)
    return "" if found is None else f"the function of the operator {found} is Python code"


def _reason_against(program: Any, gm: Any, has_steps: bool) -> str:
    """Why a Program must not be used although it could be traced; empty if there is no reason."""
    if has_steps and any(getattr(node.target, "__name__", "") in _OF_CONSTANTS for node in gm.graph.nodes):
        return "it writes, and has tensors of constants"
    if any(not isinstance(result, Tensor) and result is not None and type(result).__name__ != "object" for result in program._results):
        return "a result is not a tensor"
    if has_steps or not program.captured:
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
