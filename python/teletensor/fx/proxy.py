"""Proxy: a value during tracing. Operations on it add nodes to a graph."""

from __future__ import annotations

import collections
import copy
import dis
import enum
import inspect
import operator
import traceback
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any, Callable, NoReturn

from .._C import Tensor
from . import traceback as fx_traceback
from .graph import Graph, magic_methods, reflectable_magic_methods
from .node import Argument, Node, Target, base_types, map_aggregate, map_arg
from .operator_schemas import check_for_mutable_operation

__all__ = [
    "TracerBase", "GraphAppendingTracer", "TraceError", "Proxy", "MetaProxy", "Attribute", "ParameterProxy", "Scope",
    "ScopeContextManager",
]  # fmt: skip


class Scope:
    """The submodule whose forward is being traced: its qualified name and type."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Sets a tracer's scope in place, and restores it on exit."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before = copy.copy(scope)
        self._scope = scope
        vars(scope).update(vars(current_scope))

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *_exc: Any) -> None:
        vars(self._scope).update(vars(self._before))


# Metadata that new nodes receive while fx.traceback.preserve_node_meta() is active.
_COPY_META_FIELDS = (
    "nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "ac_graph_id", "has_backward_hook",
    "from_node", "quantization_tag", "_numeric_debug_handle", "custom", "partitioner_tag",
)  # fmt: skip


class TraceError(ValueError):
    """The traced function performs an operation whose result depends on a value."""


class TracerBase:
    """Creates nodes and proxies in a graph.

    Attributes:
        graph: the graph.
        record_stack_traces: whether nodes store the source lines that created them.
        check_mutable_operations: whether in-place operations raise.
        trace_asserts: whether `assert proxy` becomes a node instead of an error.
        proxy_buffer_attributes: whether buffers that the function reads become get_attr nodes where they are read.
    """

    graph: Graph
    record_stack_traces = False
    _record_forward_stack_traces_only = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def __init__(self) -> None:
        self.scope = Scope("", None)
        self.module_stack: collections.OrderedDict[str, tuple[str, Any]] = collections.OrderedDict()
        self.node_name_to_scope: dict[str, tuple[str, Any]] = {}

    def create_node(
        self, kind: str, target: Target, args: tuple, kwargs: dict, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """Adds a node whose arguments are nodes and constants. Subclasses may reject or change nodes here."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            _copy_current_meta(node)
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            frames = self._filter_traceback_frames(traceback.extract_stack())
            if frames:
                node.stack_trace = "".join(frames.format()).strip()
        return node

    def _filter_traceback_frames(self, stack: traceback.StackSummary) -> traceback.StackSummary:
        """The frames from the first `forward` on, without those of this package."""
        if self._record_forward_stack_traces_only:
            anchors = fx_traceback._STACK_TRACE_ANCHORS
            frames = [f for f in stack if f.name == "forward" or (f.filename, f.name) in anchors]
        else:
            first = next((i for i, frame in enumerate(stack) if frame.name == "forward"), len(stack))
            frames = stack[first:]
        own = __file__.rpartition("fx")[0]
        return traceback.StackSummary.from_list([f for f in frames if not f.filename.startswith(own)])

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple,
        kwargs: dict,
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Adds a node whose arguments may contain proxies; returns its proxy."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """An argument of a call as a node's argument: proxies become nodes.

        Raises:
            NotImplementedError: for a type that a graph cannot contain.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(type(a), "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else _tuple_of(a, items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._create_key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if is_dataclass(a) and not isinstance(a, type):
            values = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", type(a), (), values)
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        if type(a).__module__.partition(".")[0] == "teletensor" and type(a).__name__ in ("memory_format", "layout", "qscheme"):
            return a
        if isinstance(a, type) and a in (bool, int, float, complex):  # dtypes' other names
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_key(self, key: Any) -> Any:
        if isinstance(key, str):
            return key
        key = self.create_arg(key)

        def refuse(_node: Node) -> NoReturn:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")

        map_arg(key, refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Called for bool(proxy): raises TraceError, since the value is unknown."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator:
        """Called for iter(proxy): raises TraceError, since the length is unknown."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types "
            "of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Called for **proxy and proxy.keys()."""
        return Attribute(obj, "keys")()


def _tuple_of(a: tuple, items: list) -> tuple:
    """A tuple of the items, of the type of `a` if they are the same."""
    return a if all(old is new for old, new in zip(a, items)) else tuple(items)


def _copy_current_meta(node: Node) -> None:
    """Copies the metadata of fx.traceback to a new node."""
    meta = fx_traceback.get_current_meta()
    if meta.get("stack_trace"):
        node.stack_trace = meta["stack_trace"]
    for field in _COPY_META_FIELDS:
        if field in meta:
            node.meta[field] = copy.copy(meta[field])
    if meta.get("in_grad_fn", 0) > 0:
        node.meta["seq_nr"] = meta["grad_fn_seq_nr"][-1]
    replayed = fx_traceback.get_current_replay_node()
    if replayed is not None:
        node.meta["is_functional_regenerated"] = True
        for field in ("custom", "stack_trace", "seq_nr"):
            if field in replayed.meta:
                node.meta[field] = replayed.meta[field]


class GraphAppendingTracer(TracerBase):
    """The tracer of proxies that are created without a tracer: adds nodes to the proxy's graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph


def assert_fn(x: object) -> None:
    """Called by a traced `assert`."""
    if not x:
        raise AssertionError("Assertion failed")


def _caller_instruction(frame: FrameType) -> tuple[list[dis.Instruction], int]:
    """The instructions of a frame's code, and the index of the one that is running."""
    instructions = list(dis.get_instructions(frame.f_code))
    return instructions, bisect_left([i.offset for i in instructions], frame.f_lasti)


class Proxy:
    """A value during tracing. Operators, attribute access, method calls and teletensor's functions add nodes.

    Args:
        node: the node that computes the value.
        tracer: creates further nodes; by default they are added to the node's graph.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)

    def __getstate__(self) -> dict:
        return self.__dict__

    def __setstate__(self, d: dict) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict) -> Proxy:
        return Proxy(copy.deepcopy(self.node, memo), copy.copy(self.tracer))

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        caller = inspect.currentframe().f_back
        instructions, i = _caller_instruction(caller)
        if instructions[i].opname == "UNPACK_SEQUENCE":  # a, b = proxy
            return (self[j] for j in range(instructions[i].argval))
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _is_assert(inspect.currentframe().f_back):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """The keys of a traced mapping."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Callable, types: Any, args: tuple | None = None, kwargs: dict | None = None
    ) -> Proxy:
        args, kwargs = args or (), kwargs or {}
        if len(args) == 2 and isinstance(args[1], (list, tuple)) and orig_method.__name__ == "einsum":
            args = (args[0], *args[1])  # PyTorch's function unpacks a list of operands before it is overridden
        tracers: dict[TracerBase, None] = {}

        def find(a: Any) -> Any:
            if isinstance(a, Proxy):
                tracers.setdefault(a.tracer)
            return a

        map_aggregate((args, kwargs), find)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        if _is_tensor_method(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        name = tracer.graph._target_to_str(orig_method.__name__)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


def _is_tensor_method(function: Callable) -> bool:
    """Whether a function is a method of Tensor, or reads one of its properties."""
    name = getattr(function, "__name__", "")
    return name == "__get__" or inspect.getattr_static(Tensor, name, None) is function


def _is_assert(frame: FrameType) -> bool:
    """Whether a frame is testing the condition of an `assert`."""
    instructions, i = _caller_instruction(frame)
    if not instructions[i].opname.startswith("POP_JUMP") or not instructions[i].opname.endswith("IF_TRUE"):
        return False
    following = instructions[i + 1]
    return following.opname == "LOAD_ASSERTION_ERROR" or following.argval == "AssertionError"


class MetaProxy(Proxy):
    """A proxy that also computes an example of the value, in a fake mode."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(
        cls, orig_method: Callable, types: Any, args: tuple | None = None, kwargs: dict | None = None
    ) -> MetaProxy:
        args, kwargs = args or (), kwargs or {}
        first = next((arg for arg in args if isinstance(arg, MetaProxy)), None)
        if first is None:
            raise AssertionError("No MetaProxy found in arguments, but one is expected.")
        proxy = super().__torch_function__(orig_method, types, args, kwargs)
        with first.fake_mode:
            values = [a.node.meta["val"] if isinstance(a, Proxy) else a for a in args]
            proxy.node.meta["val"] = orig_method(*values, **kwargs)
        return MetaProxy(proxy.node, proxy.tracer, first.fake_mode)


class Attribute(Proxy):
    """An attribute of a proxy: a method if it is called, otherwise a value, whose node is created when it is used."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        """The node that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter's proxy whose sizes are known, so that control flow may depend on them."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor) -> None:
        from ..nn import Parameter

        super().__init__(node, tracer)
        if not isinstance(param, Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's sizes."""
        return self.param.shape

    def size(self, *dim: int) -> Any:
        """The parameter's sizes, or its size in one dimension."""
        return self.param.size(*dim)

    def dim(self) -> int:
        """The parameter's number of dimensions."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The parameter's number of dimensions."""
        return self.param.ndim

    def numel(self) -> int:
        """The parameter's number of elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """The parameter's number of elements."""
        return self.param.numel()


def _define_operator(name: str, method_name: str, reflected: bool) -> None:
    """Adds an operator's method to Proxy."""
    target = getattr(operator, name, None)
    if target is None:  # "div", an alias for printing
        return

    def method(self: Proxy, *args: Any) -> Proxy:
        operands = (*args, self) if reflected else (self, *args)
        return self.tracer.create_proxy("call_function", target, operands, {})

    method.__name__ = method.__qualname__ = method_name
    setattr(Proxy, method_name, method)


for _name in magic_methods:
    _define_operator(_name, f"__{_name.strip('_')}__", reflected=False)
for _name in reflectable_magic_methods:
    _define_operator(_name, f"__r{_name.strip('_')}__", reflected=True)
