"""Calls of tensor functions and methods: nodes of the graph."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

from .. import _C, _functions, _grad_mode, fx
from .._C import Tensor
from .._library import fake_context
from .._library.custom_op import consists_of_engine_operators, is_operator, overload_with_fake
from ..fx._mutation import _mutates
from ..utils import _pytree as pytree
from . import _marks, config
from ._attributes import MISSING as MISSING
from ._attributes import is_python_class, lookup
from ._source import (
    CALL,
    CHECK_EQUAL,
    CHECK_IS,
    CHECK_MISSING,
    CHECK_TYPE_MISSING,
    INSTANCE_DICT,
    TYPE_ATTRIBUTE,
    Source,
    constant,
)
from ._symbols import NeedsConstantSizes, unbacked_dims
from ._unbacked import BY_VALUES, OF_SIZES, ItemExample, is_item
from ._values import (
    Break,
    BuiltinMethod,
    ComputedFloat,
    Constant,
    DictValue,
    ExceptionValue,
    FloatOperand,
    FloatValue,
    ItemValue,
    MethodValue,
    NeedsPlainRun,
    ObjectValue,
    Raised,
    RunTimeNumber,
    SequenceValue,
    SliceValue,
    SymbolValue,
    TensorValue,
    Value,
    kind,
)  # fmt: skip
from ._wrap import is_namedtuple, is_structseq

_OVERRIDABLE = type(_C.overridable(lambda: None, "teletensor", "f"))
_MODULES = ("torch", "functional", "ops", "linalg", "fft", "special", "nn", "_nn")
_NOT_IN_GRAPHS = frozenset((
    "from_numpy", "frombuffer", "from_file", "from_dlpack", "set_default_dtype", "set_printoptions", "set_default_device", "save", "load",
    "compile", "item", "equal", "allclose", "is_nonzero", "tolist", "bincount", "_assert",
    "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",
))  # fmt: skip
# Attributes and methods whose results are Python values that depend on nothing but metadata.
METADATA_ATTRIBUTES = frozenset((
    "dtype", "device", "ndim", "requires_grad", "is_cuda", "is_cpu", "layout", "is_sparse", "is_quantized", "itemsize", "nbytes", "is_meta",
    "names", "is_mps", "is_xpu", "is_nested", "is_mkldnn",
))  # fmt: skip
METADATA_FUNCTIONS = frozenset((
    "dim", "ndimension", "numel", "nelement", "stride", "is_contiguous", "is_floating_point", "is_complex", "is_signed", "element_size",
    "get_device", "is_same_size", "is_conj", "is_neg", "is_inference", "broadcast_shapes", "promote_types", "can_cast", "result_type",
    "is_tensor", "is_storage", "is_grad_enabled", "is_inference_mode_enabled", "get_default_dtype", "is_autocast_enabled",
    "is_autocast_cpu_enabled", "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_available",
    "finfo", "iinfo", "__len__", "is_distributed", "type", "is_pinned",
))  # fmt: skip
_TENSOR_ATTRIBUTES = frozenset(("T", "mT", "H", "mH", "real", "imag", "data"))
_NOT_METHODS = frozenset((
    "backward", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "requires_grad_", "data_ptr", "const_data_ptr",
    "storage", "untyped_storage", "numpy", "numpy_async", "item", "item_async", "tolist", "tolist_async", "set_", "resize_", "resize_as_",
    "share_memory_", "__dlpack__", "__array__", "__reduce_ex__", "__deepcopy__", "apply_", "map_", "map2_", "nonzero", "unique", "equal",
    "allclose", "is_nonzero", "is_shared", "to_dense", "detach_", "storage_offset", "__bool__", "__int__", "__float__", "__index__",
    "__complex__", "__contains__", "__repr__", "__format__", "__hash__", "__setstate__", "as_subclass", "is_set_to", "__dir__", "new",
    "storage_type", "unique_consecutive", "masked_select", "__iter__", "__array_wrap__", "cuda", "cpu_async",
    "_make_subclass", "module_load", "swap_",
))  # fmt: skip
_MODE_FUNCTIONS = tuple(
    getattr(_C, name)
    for name in (
        "set_grad_enabled", "set_inference_mode", "set_autocast_enabled", "set_autocast_fast_dtype", "set_autocast_dtype",
        "set_autocast_cache_enabled", "add_autocast_nesting", "end_autocast_regions", "clear_autocast_cache",
    )
)  # fmt: skip
MODE_FUNCTIONS = (*_MODE_FUNCTIONS, _grad_mode._set_grad_enabled)
MODE_QUERIES = tuple(
    getattr(_C, name)
    for name in (
        "is_grad_enabled", "is_inference_mode", "autocast_dtype", "autocast_fast_dtype", "autocast_cache_enabled", "default_dtype",
        "is_tracing", "autocast_policy", "promote_types", "can_cast",
    )
)  # fmt: skip


_MAX_ITEMS_OF_LIST = 64  # each is a node of the graph


def _functions_of_bindings() -> frozenset[int]:
    found = set()
    for name in _MODULES:
        module = getattr(_C, name, None)
        for function_name, function in vars(module).items() if isinstance(module, types.ModuleType) else ():
            if callable(function) and not isinstance(function, type) and function_name not in _NOT_IN_GRAPHS:
                found.add(id(function))
    return frozenset(found)


_BINDINGS = _functions_of_bindings()
allowed: dict[int, Callable] = {}  # functions that the user allows in graphs, by id
disallowed: dict[int, Callable] = {}
_marks.registries += [allowed, disallowed]


def is_graph_function(function: Any) -> bool:
    """Whether calls of a function become nodes."""
    if id(function) in disallowed:
        return False
    if id(function) in _BINDINGS or id(function) in allowed:
        return True
    if is_operator(function):
        return consists_of_engine_operators(function) or overload_with_fake(function) is not None
    if type(function) is _OVERRIDABLE:
        name = getattr(function, "__name__", "")
        return name not in _NOT_IN_GRAPHS and "Tensor." not in getattr(function, "__qualname__", "")
    return function in (_functions.tensor, _functions.as_tensor) if isinstance(function, types.FunctionType) else False


def has_size_by_values(function: Any) -> bool:
    """Whether the sizes of a tensor function's results depend on values."""
    is_tensor_function = type(function) is _OVERRIDABLE or getattr(function, "__module__", "") == _C.torch.__name__
    return is_tensor_function and function.__name__ in BY_VALUES


_FAST_DTYPES = {device: functools.partial(_C.autocast_fast_dtype, device) for device in ("cpu", "cuda")}


def mode_state() -> tuple:
    """The modes of the thread that a function can change; last, the number of autocast regions."""
    return (
        _C.is_grad_enabled(), _C.is_inference_mode(),
        *((_C.autocast_dtype(d), _C.autocast_fast_dtype(d)) for d in ("cpu", "cuda")), _C.autocast_cache_enabled(),
        _C.add_autocast_nesting(0),
    )  # fmt: skip


def set_mode_state(state: tuple) -> None:
    """Sets the modes of the thread."""
    change_modes((*state[:-1], state[-1] - _C.add_autocast_nesting(0)))


def change_modes(state: tuple) -> None:
    """Sets the modes of the thread, and enters, or leaves, as many autocast regions as the last number says."""
    grad, inference, cpu, cuda, cache, regions = state
    _C.set_grad_enabled(grad)
    _C.set_inference_mode(inference)
    for device, (dtype, fast) in (("cpu", cpu), ("cuda", cuda)):
        _C.set_autocast_fast_dtype(device, fast)
        _C.set_autocast_enabled(device, dtype is not None)
    _C.set_autocast_cache_enabled(cache)
    if regions and _C.add_autocast_nesting(regions) == 0:
        _C.end_autocast_regions()


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_OPERATOR_METHODS = {
    **{name: (f"__{name}__", f"__r{name}__") for name in _BINARY},
    **{"i" + name: (f"__i{name}__", f"__{name}__", f"__r{name}__") for name in _BINARY},
    **{name: (f"__{name}__",) for name in ("neg", "pos", "invert", "abs", "getitem", "setitem", "round")},
    **{name: (f"__{name}__",) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}
_OPERATOR_METHODS |= {name + "_": _OPERATOR_METHODS[name] for name in ("and", "or")}
_OPERATOR_METHODS |= {"iand": ("__iand__", "__and__", "__rand__"), "ior": ("__ior__", "__or__", "__ror__"), "inv": ("__invert__",)}


def _is_users(found: Any) -> bool:
    """Whether an attribute of a class of tensors was assigned by the user."""
    if isinstance(found, property):
        found = found.fget
    found = getattr(found, "__func__", found)
    if isinstance(found, types.FunctionType):
        return not found.__globals__.get("__name__", "").startswith("teletensor")
    return found is not MISSING and is_python_class(type(found)) and not type(found).__module__.startswith("teletensor")


def _fake_of(overload: Any) -> Callable:
    """The function that infers metadata of the results of a custom operator, which runs as one node of the graph."""

    def infer(*args: Any, **kwargs: Any) -> Any:
        results = fake_context.in_context(overload.name(), overload.fake)(*args, **kwargs)
        given = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor) and t.requires_grad]
        if not given or not _C.is_grad_enabled():
            return results
        if overload.backward is None:
            raise NotImplementedError("gradients of a custom operator without register_autograd()")
        zero = sum(t.flatten()[:0].abs().sum() for t in given)  # real

        def recorded(result: Any) -> Any:
            is_recorded = isinstance(result, Tensor) and (result.is_floating_point() or result.is_complex())
            return result + zero.to(result.dtype) if is_recorded else result

        return pytree.tree_map(recorded, results)

    return infer


_OF_STRIDES = frozenset(("stride", "is_contiguous", "as_strided", "as_strided_", "view", "view_as", "storage_offset", "is_set_to"))


class Selection:
    """A result of x[i] with an integer in a tensor: a view of x in eager code, and a copy in a graph."""

    def __init__(self, base: Tensor, index: Any, result: Tensor) -> None:
        self.base, self.result = base, result
        items = index if isinstance(index, tuple) else (index,)
        view = base[tuple(0 if isinstance(i, Tensor) else i for i in items)] if result.numel() else result
        self.has_strides = view.stride() == result.stride()  # of the view
        self.base_version, self.version, self.storage = base._version, result._version, result._storage[0]


def _selects(index: Any) -> bool:
    """Whether an index consists of parts that make views and integers in tensors."""
    items = index if isinstance(index, tuple) else (index,)
    tensors = [i for i in items if isinstance(i, Tensor)]
    is_view = all(i is None or i is Ellipsis or isinstance(i, (slice, int, Tensor, _C.SymInt)) and not isinstance(i, bool) for i in items)
    return is_view and bool(tensors) and all(t.dim() == 0 and t.dtype not in (_C.bool, _C.uint8) for t in tensors)


class Tensors:
    """A part of Executor: the graph."""

    graph: fx.Graph
    trace: _C.ProgramTrace | None = None
    session_tensor: Tensor | None = None
    calls = 0  # nodes that are not inputs
    mutates = False
    selections: tuple[Selection, ...] = ()
    has_modes = False
    # Whether the regions of modes that are left were entered before the code that is captured, which continues a function.
    leaves_regions = False
    modes_at_start: tuple | None = None  # after such regions, if the graph begins there

    def begin_trace(self) -> None:
        """Starts inference of metadata, for the session of the first tensor."""
        if self.trace is None:
            if self.needs_seed:  # nothing that requires grad can be made while the trace lasts
                self.seed = _C.torch.zeros([], device="cpu").requires_grad_()
            self.trace = _C.ProgramTrace([], True, only_metadata=True, records_sizes=self.follows_sizes)

    def stand_in(self, tensor: Tensor, dims: tuple[int, ...] = ()) -> Tensor:
        """A tensor with the metadata of another and without values. The sizes `dims` are symbols."""
        self.begin_trace()
        try:
            return self.trace.add_input(tensor, dims)
        except (RuntimeError, NotImplementedError) as e:
            raise Break(str(e)) from None

    def node_of(self, value: TensorValue) -> fx.Node:
        """The node of a tensor; a tensor that exists becomes an input."""
        if value.node is None:
            if value.source is None:
                raise Break("a tensor of a function that an operator has called, outside of that function")
            name = value.source.text(self.slot_names)
            value.node = self.add_input(value, name)
        return self.here(value.node)

    def arguments(self, value: Value) -> tuple[Any, Any]:
        """An argument of a call in the graph, and the example that infers metadata."""
        value = self.real(value)
        if isinstance(value, TensorValue):
            return self.node_of(value), value.example
        if isinstance(value, FloatOperand):
            number = value.number
            if isinstance(number, (ComputedFloat, RunTimeNumber)):
                number.node = number.node or self.add_computed(number)
                return self.here(number.node), number.original
            number.node = number.node or self.add_input(number, number.source.text(self.slot_names))
            return self.here(number.node), number.original
        value = self.as_number(self.plain(value) if isinstance(value, FloatValue) else value)
        if isinstance(value, SymbolValue):
            return self.node_of_symbol(value), value.example
        if is_item(value):
            return self.node_of_item(value), ItemExample()
        if isinstance(value, Constant):
            obj = value.value
            if self.is_numpy_scalar(obj):
                obj = self.number_of(obj)
            return obj, obj
        if isinstance(value, ObjectValue) and isinstance(value.entries, SequenceValue):
            value = value.entries  # operators read it like a list or tuple
        if isinstance(value, SequenceValue):
            pairs = [self.arguments(item) for item in value.items]
            nodes, examples = [p[0] for p in pairs], [p[1] for p in pairs]
            if value.cls is list:
                return nodes, examples
            if value.cls is tuple:
                return tuple(nodes), tuple(examples)
            if value.cls is _C.Size:
                return tuple(nodes), _C.Size(examples)
            if is_namedtuple(value.cls) or is_structseq(value.cls):
                return tuple(nodes), tuple(examples)
        if isinstance(value, DictValue) and value.cls is dict:
            pairs = {k.value: self.arguments(v) for k, v in value.items.values() if isinstance(k, Constant)}
            if len(pairs) == len(value.items):
                return {k: p[0] for k, p in pairs.items()}, {k: p[1] for k, p in pairs.items()}
        if isinstance(value, SliceValue):
            pairs = [self.arguments(p) for p in value.parts]
            return slice(*(p[0] for p in pairs)), slice(*(p[1] for p in pairs))
        raise Break(f"a {kind(value)} as an argument of a call in a graph")

    def number_of(self, scalar: Any) -> int | float:
        """The number in Python that tensor functions take for a scalar of NumPy."""
        if type(scalar) is self.numpy.int64:
            return int(scalar)
        if type(scalar) is self.numpy.float64:
            return float(scalar)
        raise Break(f"a {kind(scalar)} of NumPy as an argument of a call in a graph")

    def _implementation(self, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """The function by which the class of an operand, a quantized weight, implements another one; None if there is no such operand."""
        owners = [v for v in map(self.real, (*args, *kwargs.values())) if isinstance(v, ObjectValue) and issubclass(v.cls, Tensor)]
        if not owners:
            return None
        found = owners[0].cls._functions.get(target) if callable(target) else None
        if found is None:
            raise Break(f"a tensor of the class {owners[0].cls.__name__}")
        return self.wrap(found, constant(found))

    def call_in_graph(self, op: str, target: Any, args: list[Value], kwargs: dict[str, Value] | None = None) -> Value:
        """Adds a call of a function (op "call_function") or a method ("call_method"), and returns its result."""
        own = self._implementation(target, args, kwargs or {})
        if own is not None:
            named = DictValue({k: (Constant(k), v) for k, v in (kwargs or {}).items()})
            return self.call(own, [Constant(target), SequenceValue([], tuple), SequenceValue(args, tuple), named], {})
        self.begin_trace()
        first = self.real(args[0]) if args else None
        if isinstance(first, Constant) and self.is_numpy_scalar(first.value) and op == "call_function":
            raise Break("a scalar of NumPy as the first operand")  # its own operators may come first
        pairs = [self.arguments(a) for a in args]
        keyword_pairs = {k: self.arguments(v) for k, v in (kwargs or {}).items()}
        examples, keywords = [p[1] for p in pairs], {k: p[1] for k, p in keyword_pairs.items()}
        name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
        if op == "call_method":
            self.check_tensor_method(self.real(args[0]), target)
        if getattr(target, "__module__", "") in ("_operator", "builtins"):
            self._check_special_methods(name, self.tensors_in([*args, *(kwargs or {}).values()]))
        is_unbacked = self.has_unbacked([*args, *(kwargs or {}).values()])
        if is_unbacked and keywords.get("out") is not None:
            raise Break(f"{name}(out=) with sizes that depend on values")
        if target is operator.getitem and len(args) == 2 and isinstance(self.real(args[0]), TensorValue):
            found = self.call_of_dynamic_shape(op, target, args, {})
            if found is not None:
                return found
        function = (lambda self_, *a, **k: getattr(self_, target)(*a, **k)) if op == "call_method" else target
        if is_operator(target) and not consists_of_engine_operators(target):
            if any(not each.is_early for each in self.prints):
                raise Break("a call of a custom operator, which may print, after print()")
            self.has_custom_calls = True
            function = _fake_of(overload_with_fake(target))
        if self.uses_unbacked:
            examples, keywords = self.check_floats(name, function, examples, keywords)
        is_input = {id(v.example): v for v in self.tensors_in([*args, *(kwargs or {}).values()])}
        if self.selections:
            if self.has_selection([v.example for v in is_input.values()], only_stale=True):
                raise NeedsPlainRun("x[i] with an integer in a tensor, which is read after a write to x")
            others = {s.storage for s in self.selections if not s.has_strides}
            if others and name in _OF_STRIDES and any(v.example._storage[0] in others for v in is_input.values()):
                raise NeedsPlainRun("the strides of x[i] with an integer in a tensor")
        mutates = _mutates(name) or "out" in keywords or keywords.get("inplace") is True or name in ("batch_norm", "instance_norm")
        shapes = [v.example.shape for v in is_input.values()] if mutates and self.follows_sizes else []
        if name == "is_inference" and len(args) == 1 and (given := self.real(args[0])).source is not None:
            examples = [given.original]  # a stand-in is no inference tensor
        try:
            result = function(*examples, **keywords)
        except Exception as e:  # noqa: BLE001 - the call itself will raise it
            raise Break(f"{name}: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}") from None
        if shapes and any(v.source is not None and v.example.shape != s for v, s in zip(is_input.values(), shapes)):
            raise NeedsConstantSizes  # sizes of arguments are read before the graph runs
        if self.selections:
            self._check_writes_to_selections()
        if target is operator.getitem and isinstance(result, Tensor) and _selects(examples[1]):
            self.selections += (Selection(*examples, result),)
        if is_unbacked and not self.has_known_dim(name, args, kwargs or {}):
            self.check_unbacked_call(name, args, kwargs or {}, result)
        if not self._has_tensors(result):
            if is_unbacked and (isinstance(result, _C.SymInt) or name in OF_SIZES):
                raise Break(f"{name}() of sizes that depend on values")
            if isinstance(result, _C.SymInt):
                node = self.graph.create_node(op, target, tuple(p[0] for p in pairs), {k: p[0] for k, p in keyword_pairs.items()})
                return SymbolValue(result, ("node", node))
            if result is None and _mutates(name):
                pass
            elif name in METADATA_FUNCTIONS or (name in ("eq", "ne") and isinstance(result, bool)):
                return self.constant_value(result)
            elif result is NotImplemented:
                raise Break(f"{name} is not defined for these operands")
            elif result is not None or not is_input:
                raise Break(f"{name} returns a {kind(result)}")
        node = self.graph.create_node(op, target, tuple(p[0] for p in pairs), {k: p[0] for k, p in keyword_pairs.items()})
        self.note_place(node)
        self.calls += 1
        self.mutates |= mutates
        return self._result(result, node, is_input, is_unbacked)

    def has_selection(self, examples: list[Tensor], only_stale: bool = False) -> bool:
        """Whether one of the examples has the storage of a selection's result; `only_stale`: after a write to its base."""
        storages = {s.storage for s in self.selections if not only_stale or s.base._version != s.base_version}
        return bool(storages) and any(x._storage[0] in storages for x in examples)

    def _check_writes_to_selections(self) -> None:
        for selection in self.selections:
            if selection.result._version != selection.version:
                if not self._stores_item():
                    raise NeedsPlainRun("a write to x[i] with an integer in a tensor, which is a view of x")
                selection.version = selection.result._version

    def _stores_item(self) -> bool:
        """Whether the current instruction is the operator of `x[i] += y`, which then stores the result in x."""
        assert self.frame is not None
        names = [i.name for i in self.frame.instructions[self.frame.at - 1 :][:5] if i.name not in ("CACHE", "SWAP")]
        return names[:2] == ["BINARY_OP", "STORE_SUBSCR"]

    def _has_tensors(self, result: Any) -> bool:
        if isinstance(result, Tensor):
            return True
        return isinstance(result, (tuple, list)) and any(self._has_tensors(r) for r in result)

    @staticmethod
    def _is_used(value: TensorValue) -> bool:
        """Whether the graph has computed the tensor, and others from it."""
        return value.source is None and value.node is not None and bool(value.node.users)

    def tensors_in(self, values: list[Value]) -> list[TensorValue]:
        """The tensors among values and in their containers."""
        found: list[TensorValue] = []
        for value in values:
            value = self.real(value)
            if isinstance(value, TensorValue):
                found.append(value)
            elif isinstance(value, SequenceValue):
                found += self.tensors_in(value.items)
            elif isinstance(value, DictValue):
                found += self.tensors_in([v for _, v in value.items.values()])
        return found

    def _result(self, result: Any, node: fx.Node, known: dict[int, TensorValue], is_unbacked: bool = False) -> Value:
        if isinstance(result, Tensor):
            if id(result) in known:
                return known[id(result)]
            if type(result) is not Tensor and not hasattr(type(result), "run_engine_call"):
                raise Break(f"a result of the class {kind(result)}")
            node.meta["example_value"] = result
            made = TensorValue(node, result, Tensor, is_leaf=None)
            made.is_unbacked = is_unbacked and result.dim() > 0
            return made
        if isinstance(result, (tuple, list)):
            items = []
            for i, item in enumerate(result):
                if isinstance(item, (Tensor, tuple, list)):
                    part = self.graph.call_function(operator.getitem, (node, i))
                    items.append(self._result(item, part, known, is_unbacked))
                else:
                    items.append(self.constant_value(item))
            return SequenceValue(items, type(result) if type(result) is not list else list)
        return self.constant_value(result)

    def constant_value(self, result: Any) -> Value:
        """The value of a Python object that is known and immutable."""
        if isinstance(result, tuple):
            return SequenceValue([self.constant_value(r) for r in result], type(result))
        if isinstance(result, list):
            return SequenceValue([self.constant_value(r) for r in result], list)
        return Constant(int(result) if isinstance(result, _C.SymInt) else result)  # int() requires the number of later calls

    def begin_modes(self) -> None:
        """Remembers modes that guards compare only where the function reads them."""
        self._fast_dtypes = {device: query() for device, query in _FAST_DTYPES.items()}

    def guard_fast_dtype(self, device: str) -> None:
        """Adds a guard on the dtype of autocast, which `autocast(device)` reads, at the start of the function."""
        if device in _FAST_DTYPES:
            self.guards.check(CHECK_EQUAL, constant(_FAST_DTYPES[device]).then(CALL), self._fast_dtypes[device])

    def set_mode(self, function: Callable, args: list[Value]) -> Value:
        """A call that changes a mode of the thread. It takes effect until the capture ends, and in the graph."""
        values = [self.real(a) for a in args]
        if not all(isinstance(a, Constant) for a in values):
            raise Break("a mode that depends on values")
        result = function(*(a.value for a in values))
        if self.follows_sizes and any(_C.autocast_dtype(device) is not None for device in ("cpu", "cuda")):
            raise NeedsConstantSizes
        if self.leaves_regions and not self.calls and not self.has_modes:
            self.modes_at_start = mode_state()
        else:
            self.graph.call_function(function, tuple(a.value for a in values))
            self.has_modes = True
        return Constant(result)

    def tensor_attribute(self, value: TensorValue, name: str) -> Value:
        """An attribute of a tensor."""
        if name in value.attributes:
            return value.attributes[name]
        found = self.tensor_class_attribute(value.cls, name)
        if _is_users(found):
            if isinstance(found, types.FunctionType):
                return MethodValue(self.wrap_class_function(found), value)
            if isinstance(found, property) and isinstance(found.fget, types.FunctionType):
                return self.call(self.wrap_class_function(found.fget), [value], {})
            raise Break(f"{value.cls.__name__}.{name}")
        if name == "shape":
            return self.shape_of(value)
        if name == "__class__":
            return self.type_constant(value.cls)
        if name == "nbytes" and value.is_unbacked:
            raise Break("nbytes of sizes that depend on values")
        if name == "nbytes":
            return self.operation("*", self.symbol(value.example.numel(), ("numel", value)), Constant(value.example.itemsize))
        if name in METADATA_ATTRIBUTES:
            return self.constant_value(getattr(value.example, name))
        if name == "is_leaf" and value.is_leaf is not None:
            return Constant(value.is_leaf)
        if name in _TENSOR_ATTRIBUTES:
            return self.call_in_graph("call_function", getattr, [value, Constant(name)])
        if name == "grad" and (found := self.grad_of(value)) is not None:
            return found
        if name == "grad" and value.source is not None:
            return self.wrap(value.original.grad, value.source.attribute("grad"))
        if not hasattr(Tensor, name) or name == "__dict__":
            return self._users_attribute(value, name)
        if callable(getattr(Tensor, name)):
            return BuiltinMethod(value, name)
        raise Break(f"Tensor.{name}")

    def tensor_class_attribute(self, cls: type, name: str) -> Any:
        """What the class of a tensor defines under a name, with a guard."""
        found = lookup(cls, name)
        if found is MISSING:
            self.guards.check(CHECK_TYPE_MISSING, constant(cls), name)
        else:
            self.guards.check(CHECK_IS, constant(cls).then(TYPE_ATTRIBUTE, name), found)
        return found

    def _check_special_methods(self, name: str, tensors: list[TensorValue]) -> None:
        """Guards on the special methods that an operator calls."""
        for method in _OPERATOR_METHODS.get(name, ()):
            for tensor in tensors:
                self.check_tensor_method(tensor, method)

    def check_tensor_method(self, value: Value, name: str) -> None:
        """Adds a guard on a method of a tensor's class; ends the graph if the user has replaced it."""
        if isinstance(value, TensorValue) and _is_users(self.tensor_class_attribute(value.cls, name)):
            raise Break(f"{value.cls.__name__}.{name} was replaced")

    def _users_attribute(self, value: TensorValue, name: str) -> Value:
        if name == "__dict__":
            raise Break("__dict__ of a tensor")
        if name in value.users_attributes:
            return value.users_attributes[name]
        if value.source is None:
            raise Raised(ExceptionValue(AttributeError, [Constant(f"'Tensor' object has no attribute '{name}'")]))
        if hasattr(value.cls, name):
            raise Break(f"{value.cls.__name__}.{name}")
        source = Source(INSTANCE_DICT, value.source)
        if name in vars(value.original):
            return self.wrap(vars(value.original)[name], value.source.instance_item(name))
        self.guards.check(CHECK_MISSING, source, name)
        raise Raised(ExceptionValue(AttributeError, [Constant(f"'{value.cls.__name__}' object has no attribute '{name}'")]))

    def can_keep_item(self, value: TensorValue) -> bool:
        """Whether item() returns a number that the capture can do without."""
        is_captured = config.capture_scalar_outputs or self.is_whole
        return is_captured and not value.example.dtype.is_complex and value.example.numel() == 1

    def are_sizes(self, args: list[Value]) -> bool:
        """Whether legacy constructors take the arguments as sizes."""
        values = [self.real(a) for a in args]
        if len(values) == 1 and isinstance(values[0], SequenceValue):
            return values[0].cls is _C.Size
        return all(isinstance(v, SymbolValue) or isinstance(v, Constant) and type(v.value) is int for v in values)

    def _list_of_items(self, value: TensorValue) -> Value | None:
        """The numbers of a tensor in lists, as tolist() returns them; None if the graph would end at item()."""
        count = value.example.numel()
        if value.is_unbacked or unbacked_dims(value) or not 0 < count <= _MAX_ITEMS_OF_LIST:
            return None
        if value.example.dim() == 0:
            return self.call_tensor_method(value, "item", [], {}) if self.can_keep_item(value) else None
        parts = [self.call_in_graph("call_function", operator.getitem, [value, Constant(i)]) for i in range(len(value.example))]
        found = [self._list_of_items(part) for part in parts]
        return None if None in found else SequenceValue(found, list)

    def operand_of_item(self, item: ItemValue, other: TensorValue) -> Value:
        """A tensor without dimensions that stands for the number in arithmetic with a tensor, or the number."""
        dtype, is_float = other.example.dtype, item.cls is float
        if item.tensor.example.dtype == _C.uint64:
            raise Break("item() of a tensor of uint64 in arithmetic")  # int64 does not have all its numbers
        if other.example.dim() == 0 or (dtype not in (_C.float32, _C.float64) if is_float else dtype.itemsize < 4):
            if is_float:
                return item
            raise Break("item() in arithmetic whose result depends on the kind of number")
        reshaped = self.call_in_graph("call_method", "reshape", [item.tensor, SequenceValue([], tuple)])
        return self.call_in_graph("call_method", "to", [reshaped, Constant(_C.float64 if is_float else _C.int64)])

    def call_tensor_method(self, value: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of a method of a tensor."""
        self.check_tensor_method(value, name)
        if name == "size" and not args and kwargs.keys() == {"dim"}:
            args, kwargs = [kwargs["dim"]], {}
        if name == "size" and not kwargs:
            values = [self.plain(self.real(a)) for a in args]
            if not all(isinstance(a, Constant) for a in values):
                raise Break("size() of a dimension that is not a number")
            try:
                if not values or values[0].value is None:
                    return self.shape_of(value)
                size = value.example.size(*(a.value for a in values))
                if unbacked_dims(value) and len(values) == 1:
                    return self.size_at(value, values[0].value % value.example.dim())
                if value.is_unbacked:
                    return self.unbacked_size(value, ("size", value, *(a.value for a in values)), value.example.shape[values[0].value])
                return self.symbol(size, ("size", value, *(a.value for a in values)))
            except (IndexError, TypeError) as e:
                raise Raised(ExceptionValue(type(e), [Constant(str(e))])) from None
        if name in ("numel", "nelement") and value.is_unbacked and not args and not kwargs:
            return self.unbacked_size(value, ("numel", value), value.example.numel())
        if name in ("numel", "nelement") and unbacked_dims(value) and not args and not kwargs:
            return functools.reduce(lambda a, b: self.operation("*", a, b), (self.size_at(value, i) for i in range(value.example.dim())))
        if name in ("numel", "nelement") and not args and not kwargs:
            return self.symbol(value.example.numel(), ("numel", value))
        if name == "backward":
            return self.backward(value, args, kwargs)
        if name == "item" and not args and not kwargs and self.can_keep_item(value):
            # The number is read after the graph, which may write to the tensor.
            return ItemValue(self.call_in_graph("call_method", "clone", [self.call_in_graph("call_method", "detach", [value])]), value)
        if name == "item" and not value.is_unbacked and not unbacked_dims(value) and value.example.numel() != 1:
            raise Break(f"RuntimeError: a Tensor with {value.example.numel()} elements cannot be converted to Scalar")
        if name == "register_hook" and len(args) + len(kwargs) == 1:
            try:
                return self.register_hook(value, [*args, *kwargs.values()][0])
            except Break as e:
                if self._is_used(value):
                    raise NeedsPlainRun(str(e)) from None
                raise
        if name == "new" and args and not kwargs and self.are_sizes(args):
            return self.call_in_graph("call_method", "new_empty", [value, *args])
        if name == "tolist" and not args and not kwargs and (found := self._list_of_items(value)) is not None:
            return found
        if name in BY_VALUES:
            found = self.call_of_dynamic_shape("call_method", name, [value, *args], kwargs)
            if found is not None:
                return found
        if name in ("retain_grad", "register_hook") and self._is_used(value):
            raise NeedsPlainRun(f"Tensor.{name}() of a tensor that the function has computed and used")
        if name in _NOT_METHODS or name == "size":
            raise Break(f"Tensor.{name}()")
        if any(isinstance(self.real(a), ObjectValue) for a in args):
            raise Break(f"Tensor.{name}() of an object")
        if name == "type":
            args, kwargs = [self._named_type(a) for a in args], {k: self._named_type(a) for k, a in kwargs.items()}
        return self.call_in_graph("call_method", name, [value, *args], kwargs)

    def _named_type(self, value: Value) -> Value:
        """The name of a legacy tensor type, such as torch.DoubleTensor: a graph contains no classes."""
        value = self.real(value)
        if not isinstance(value, Constant) or not isinstance(value.value, type):
            return value
        if not hasattr(value.value, "kind"):  # not a legacy type
            raise Break(f"Tensor.type() of {value.value.__name__}")
        return Constant(f"{value.value.__module__.replace('teletensor', 'torch', 1)}.{value.value.__name__}")
