"""Records the operators that a function calls, as a graph with the interface of PyTorch's TorchScript graphs.

A dispatch mode receives the calls, above autocast and the recording of gradients (teletensor/_library/dispatch.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .. import _C, _composites
from .._C import Tensor
from .._tracing_state import TracingState, _get_tracing_state, set_tracing_state
from ..nn import Module
from ..utils._python_dispatch import TorchDispatchMode
from ._graph import Graph, Value
from ._graph_types import BoolType, FloatType, IntType, ListType, StringType, TensorType, Type, dtype_number, type_of
from ._traced_operators import Call, composite_node, is_dtype, node_of

__all__ = ["_flatten", "_get_trace_graph", "_unique_state_dict"]

_trace_module_map: dict[Module, str] | None = None  # PyTorch's exporters set it; modules push no scopes here
_ELEMENTS = {"int": IntType, "SymInt": IntType, "float": FloatType, "bool": BoolType, "str": StringType}


def _flatten(value: Any) -> Iterator[Any]:
    """The tensors of nested tuples, lists and dicts. Raises RuntimeError if there are other objects than str and None."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _flatten(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _flatten(item)
    elif value is not None and not isinstance(value, str):
        raise RuntimeError(
            "Only tuples, lists and Variables are supported as JIT inputs/outputs. Dictionaries and strings are also accepted, but "
            f"their usage is not recommended. Here, received an input of unsupported type: {type(value).__name__}"
        )


def _unique_state_dict(module: Module, keep_vars: bool = False) -> dict[str, Tensor]:
    """The module's parameters and persistent buffers, each once."""
    found: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        found.setdefault(tensor._handle, (name, tensor))
    return {name: tensor if keep_vars else tensor.detach() for name, tensor in found.values()}


class _Recorder(TorchDispatchMode):
    """Adds a node to the graph for each operator that the program calls."""

    def __init__(self, graph: Graph, state: TracingState, force_outplace: bool) -> None:
        super().__init__()
        self._graph, self._state, self._force_outplace = graph, state, force_outplace
        self._values: dict[int, Value] = {}  # by the tensor's handle
        self._kept: list[Tensor] = []  # keeps their handles from being reused by other tensors
        self._in_composite = False

    def set(self, tensor: Tensor, value: Value) -> None:
        """Makes a value of the graph the tensor's."""
        self._values[tensor._handle] = value
        self._kept.append(tensor)

    def add_input(self, tensor: Tensor) -> None:
        """Adds an input to the graph."""
        self.set(tensor, self._graph._add_input(TensorType(tensor)))

    def value_of(self, tensor: Tensor) -> Value:
        """The tensor's value; a tensor that was not recorded becomes a constant.

        Raises:
            RuntimeError: a tensor that was not recorded requires grad.
        """
        found = self._values.get(tensor._handle)
        if found is not None:
            return found
        if tensor.requires_grad:
            raise RuntimeError(
                "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or detaching "
                f"the gradient\nTensor:\n{tensor}"
            )
        value = self._graph._add_constant(tensor, self._state.current_scope())
        self.set(tensor, value)
        return value

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if self._in_composite:
            return func(*args, **kwargs)
        call = node_of(func, args, kwargs)
        inputs = [self._argument(kind, value) for kind, value in call.arguments]
        result = func(*args, **kwargs)
        self._add(call, inputs, result, func._schema.is_mutable)
        return result

    def composite(self, name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Calls a function that is one operator in PyTorch, and adds one node for it."""
        if self._in_composite or _get_tracing_state() is not self._state:
            return function(*args, **kwargs)
        call = composite_node(name, args, kwargs, function)
        inputs = [self._argument(kind, value) for kind, value in call.arguments]
        self._in_composite = True
        try:
            result = function(*args, **kwargs)
        finally:
            self._in_composite = False
        self._add(call, inputs, result, False)
        return result

    def _argument(self, kind: str, value: Any) -> Value:
        scope = self._state.current_scope()
        if isinstance(value, Tensor):
            return self.value_of(value)
        if is_dtype(value):
            value = dtype_number(value)
        elif isinstance(value, (list, tuple)):
            element = kind.rstrip("?").removesuffix("[]").partition("[")[0].rstrip("?")
            values = [self._argument(element, v) for v in value]
            return self._graph._add_list(values, _element_type(element), scope)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            if kind == "Tensor":  # x + 1
                value = _number_as_tensor(value)
            elif kind.rstrip("?") == "float":
                value = float(value)
            elif kind.endswith("]") or "[" in kind:  # an int for a list of ints
                return self._argument(kind, [value])
        return self._graph._add_constant(value, scope)

    def _add(self, call: Call, inputs: list[Value], result: Any, mutable: bool) -> None:
        kind = call.kind.removesuffix("_") if self._force_outplace and mutable else call.kind
        scope = self._state.current_scope()
        if isinstance(result, list) or "[]" in call.schema.rpartition("->")[2]:  # the call determines the number of tensors
            node = self._graph._add(kind, inputs, [ListType(TensorType.get())], scope, call.schema)
            types = [type_of(item) for item in result]
            node = self._graph._add("prim::ListUnpack", [node.output()], types, scope)
            results = result
        else:
            results = list(result) if isinstance(result, tuple) else [] if result is None else [result]
            node = self._graph._add(kind, inputs, [type_of(item) for item in results], scope, call.schema)
        for item, value in zip(results, node.outputs()):
            if isinstance(item, Tensor):
                self.set(item, value)

    def output(self, result: Any) -> Value:
        """The value of a result: nested tuples, lists and dicts of tensors become one flat tuple."""
        values = [self.value_of(tensor) for tensor in _flatten(result)]
        return values[0] if len(values) == 1 else self._graph._add_tuple(values, self._state.current_scope())


def _element_type(name: str) -> Type:
    return _ELEMENTS[name].get() if name in _ELEMENTS else TensorType.get()


def _number_as_tensor(value: float) -> Tensor:
    return _C.tensor(value, dtype=_C.int64 if isinstance(value, int) else _C.float64)


def _get_trace_graph(
    f: Any, args: Any = (), kwargs: Any = None, strict: bool = True, _force_outplace: bool = False, return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> tuple:  # fmt: skip
    """Calls a function or module and records the operators that it calls.

    Nodes are PyTorch's operators by name, with all arguments (``aten::linear``, ``aten::_convolution``), and the engine's
    own operators in the namespace ``teletensor``. Sizes are constants in the graph. Nodes have the scopes that the program
    pushes with ``torch._C._get_tracing_state().push_scope()``.

    Args:
        args: the arguments: tensors, or tuples, lists and dicts of them. A tensor alone is one argument.
        strict: has no effect, since containers are flattened.
        _force_outplace: records operators that change a tensor under the names of those that return a new one.
        return_inputs: also returns the arguments.
        _return_inputs_states: also returns the arguments and the result as a pair.

    Returns:
        (graph, result), and the arguments if they are requested. The graph's inputs are the tensors among the arguments, then
        the module's parameters and buffers.

    Raises:
        RuntimeError: an argument or a result is of another type, or a tensor that requires grad is neither an argument, a
            parameter nor a recorded result.
    """
    args = args if isinstance(args, tuple) else (args,)
    if kwargs:
        raise TypeError(f"[_get_trace_graph] expected no keyword arguments, got {', '.join(kwargs)}")
    args = _distinct(args, set())
    graph = Graph()
    state = TracingState(graph)
    recorder = _Recorder(graph, state, _force_outplace)
    states = _unique_state_dict(f, keep_vars=True).values() if isinstance(f, Module) else ()
    for tensor in (*_flatten(args), *states):
        recorder.add_input(tensor)
    former, former_recorder = set_tracing_state(state), _composites.recorder
    _composites.set_recorder(recorder.composite)
    try:
        with recorder:
            result = f(*args)
        graph._register_output(recorder.output(result))
    finally:
        set_tracing_state(former)
        _composites.set_recorder(former_recorder)
    if return_inputs:
        return graph, result, args
    return (graph, result, (args, result)) if _return_inputs_states else (graph, result)


def _distinct(value: Any, seen: set[int]) -> Any:
    """The arguments, with a view in place of a tensor that occurs again, so that each is an input of the graph."""
    if isinstance(value, Tensor):
        if value._handle in seen:
            return value.view(value.shape)
        seen.add(value._handle)
        return value
    if isinstance(value, (tuple, list)):
        items = [_distinct(item, seen) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return {key: _distinct(item, seen) for key, item in value.items()} if isinstance(value, dict) else value
