"""Builder: makes the nodes of one ONNX graph. Translations of operators call it.

A Value stands for a result of a node. Constants and sizes of the program (ints, or int64 scalars that the graph computes) may be
given wherever an input is expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _C
from ._dtypes import dtype_of, dtype_of_array, elem_type, is_float, numpy_dtype

_BOOLEAN = frozenset("Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor Not IsNaN IsInf".split())
_INT64 = frozenset("Shape Size ArgMax ArgMin NonZero".split())
_SAME_SHAPE = frozenset(
    """
    Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast Ceil Celu Clip Cos Cosh CumSum Elu Erf Exp Floor Gelu HardSigmoid HardSwish
    Identity IsInf IsNaN LayerNormalization LeakyRelu Log LogSoftmax Mish Neg Not Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh
    Softmax Softplus Softsign Sqrt Tan Tanh ThresholdedRelu Trilu
""".split()
)


class Value:
    """A result of a node, an input or a constant.

    Attributes:
        name: in the graph.
        dtype: the engine's dtype; None if unknown.
        shape: sizes, with the expression of a dynamic one or None; None if even the number of dimensions is unknown.
        const: the value, if it is a small constant.
    """

    __slots__ = ("builder", "const", "dtype", "name", "shape")

    def __init__(
        self, builder: Builder, name: str, dtype: Any, shape: tuple | None = None, const: np.ndarray | None = None
    ) -> None:
        self.builder, self.name, self.dtype, self.shape, self.const = builder, name, dtype, shape, const

    @property
    def rank(self) -> int:
        """The number of dimensions.

        Raises:
            ValueError: it is unknown.
        """
        if self.shape is None:
            raise ValueError(f"[onnx.export] the number of dimensions of {self.name} is unknown")
        return len(self.shape)

    def __repr__(self) -> str:
        return f"Value({self.name}, {self.dtype}, {self.shape})"

    def _with(self, op_type: str, other: Any, reflected: bool = False) -> Value:
        if isinstance(other, Value):
            return self.builder.op(op_type, *((other, self) if reflected else (self, other)))
        other = self.builder.const(other, self.dtype)
        return self.builder.op(op_type, *((other, self) if reflected else (self, other)), shape=self.shape)

    def __add__(self, other: Any) -> Value:
        return self._with("Add", other)

    def __radd__(self, other: Any) -> Value:
        return self._with("Add", other, True)

    def __sub__(self, other: Any) -> Value:
        return self._with("Sub", other)

    def __rsub__(self, other: Any) -> Value:
        return self._with("Sub", other, True)

    def __mul__(self, other: Any) -> Value:
        return self._with("Mul", other)

    def __rmul__(self, other: Any) -> Value:
        return self._with("Mul", other, True)

    def __truediv__(self, other: Any) -> Value:
        return self._with("Div", other)

    def __rtruediv__(self, other: Any) -> Value:
        return self._with("Div", other, True)

    def __neg__(self) -> Value:
        return self.builder.op("Neg", self)


Size = Any  # an int, or an int64 scalar Value


class NodeRecord:
    """A node of the graph before it becomes a NodeProto."""

    __slots__ = ("attributes", "doc", "domain", "inputs", "metadata", "op_type", "outputs")

    def __init__(
        self, op_type: str, inputs: list[str], outputs: list[str], attributes: dict[str, Any], domain: str, metadata: dict[str, str],
    ) -> None:  # fmt: skip
        self.op_type, self.inputs, self.outputs, self.attributes, self.domain = (
            op_type,
            inputs,
            outputs,
            attributes,
            domain,
        )
        self.metadata, self.doc = metadata, ""


class Shared:
    """What the graphs of one model share: names, constants, opset versions."""

    def __init__(self, opset: int) -> None:
        self.opset, self.domains = opset, {"": opset}
        self.names: set[str] = set()
        self.counts: dict[str, int] = {}
        self.constants: dict[tuple, Value] = {}
        self.initializers: dict[str, np.ndarray] = {}
        self.functions: dict[tuple[str, str], Any] = {}  # FunctionProto of onnxscript, by domain and name

    def fresh(self, prefix: str) -> str:
        """A name that nothing else has."""
        name = prefix
        while name in self.names:
            count = self.counts[prefix] = self.counts.get(prefix, 0) + 1
            name = f"{prefix}_{count}"
        self.names.add(name)
        return name


class Builder:
    """The nodes of a graph.

    Attributes:
        opset: the version of ONNX's operators.
        dtype, shape: of the result of the operator that is being translated; lists if it has several.
        metadata: of the nodes that are made next.
        node: of the program, that is being translated.
    """

    def __init__(self, shared: Shared, parent: Builder | None = None) -> None:
        self.shared, self.parent, self.opset = shared, parent, shared.opset
        self.nodes: list[NodeRecord] = []
        self.shapes: dict[str, Value] = {}
        self.sizes: dict[tuple[str, Any], Value] = {}
        self.dtype: Any = None
        self.shape: Any = None
        self.metadata: dict[str, str] = {}
        self.node: Any = None
        self.prefix = "val"

    # ---- Nodes

    def op(
        self, op_type: str, *inputs: Any, dtype: Any = None, shape: tuple | None = None, outputs: int = 1, domain: str = "",
        **attributes: Any,
    ) -> Any:  # fmt: skip
        """Adds a node.

        Args:
            inputs: values, constants and None for those that are left out.
            dtype, shape: of the result, if they do not follow from the inputs; lists for several.
            outputs: how many results the node has.
            attributes: None is left out.

        Returns:
            A Value, or a tuple of them.
        """
        given = [v if v is None or isinstance(v, Value) else self.value(v) for v in inputs]
        while given and given[-1] is None:
            given.pop()
        if dtype is None:
            dtype = self._inferred(op_type, given, attributes)
        if shape is None and op_type in _SAME_SHAPE and not domain:
            shape = given[0].shape
        names = [self.shared.fresh(self.prefix) for _ in range(outputs)]
        plain = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(
            NodeRecord(op_type, ["" if v is None else v.name for v in given], names, plain, domain, dict(self.metadata))
        )
        dtypes = list(dtype) if isinstance(dtype, (list, tuple)) else [dtype] * outputs
        shapes = list(shape) if isinstance(shape, list) else [shape] * outputs
        made = [Value(self, n, d, s) for n, d, s in zip(names, dtypes, shapes)]
        return made[0] if outputs == 1 else tuple(made)

    @staticmethod
    def _inferred(op_type: str, inputs: list[Value | None], attributes: dict[str, Any]) -> Any:
        if op_type in _BOOLEAN:
            return _C.bool
        if op_type in _INT64:
            return _C.int64
        if op_type == "Cast":
            return dtype_of(attributes["to"])
        place = 1 if op_type == "Where" else 0
        return inputs[place].dtype if len(inputs) > place and inputs[place] is not None else None

    # ---- Constants and sizes

    def const(self, value: Any, dtype: Any = None) -> Value:
        """A constant, of a Python number, a list or an array."""
        array = np.asarray(
            value, dtype=None if dtype is None else numpy_dtype(dtype) if dtype is not _C.bfloat16 else np.float32
        )
        if dtype is _C.bfloat16:
            return self.cast(self.const(array), dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        found = self.shared.constants.get(key)
        if found is None:
            name = self.shared.fresh("const")
            self.shared.initializers[name] = array
            found = self.shared.constants[key] = Value(self, name, dtype_of_array(array), array.shape, array)
        return found

    def value(self, value: Any, dtype: Any = None) -> Value:
        """A value as it is, or a number as a constant scalar."""
        if isinstance(value, Value):
            return value if dtype is None or value.dtype is dtype else self.cast(value, dtype)
        if dtype is None and isinstance(value, bool):
            dtype = _C.bool
        if dtype is None:
            dtype = (
                _C.int64
                if isinstance(value, int) or (isinstance(value, (list, tuple)) and all(type(v) is int for v in value))
                else _C.float32
            )
        return self.const(value, dtype)

    def ints(self, values: Sequence[Size] | Size) -> Value:
        """A vector of sizes."""
        values = list(values) if isinstance(values, (list, tuple)) else [values]
        if not any(isinstance(v, Value) for v in values):
            return self.const([int(v) for v in values], _C.int64)
        parts: list[Value] = []
        run: list[int] = []
        for v in values:
            if isinstance(v, Value) and v.const is None:
                if run:
                    parts.append(self.const(run, _C.int64))
                    run = []
                parts.append(self.op("Unsqueeze", v, self.const([0], _C.int64), shape=(1,)))
            else:
                run.append(int(v.const) if isinstance(v, Value) else int(v))
        if run:
            parts.append(self.const(run, _C.int64))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0, shape=(len(values),))

    def shape_of(self, x: Value) -> Value:
        """The sizes of a value, as a vector."""
        if x.shape is not None and all(type(n) is int for n in x.shape):
            return self.const(list(x.shape), _C.int64)
        if x.name not in self.shapes:
            self.shapes[x.name] = self.op("Shape", x, shape=None if x.shape is None else (x.rank,))
        return self.shapes[x.name]

    def size(self, x: Value, dim: int) -> Size:
        """A size of a value: an int if it is constant."""
        if x.shape is not None and type(x.shape[dim]) is int:
            return x.shape[dim]
        dim = dim % x.rank if x.shape is not None else dim
        text = x.shape[dim] if x.shape is not None else None
        key = ("", text) if isinstance(text, str) else (x.name, dim)  # equal expressions are equal sizes
        outer = self.parent
        while outer is not None and text is not None:
            if key in outer.sizes:
                return outer.sizes[key]
            outer = outer.parent
        if key not in self.sizes:
            vector = self.op("Shape", x, start=dim, end=dim + 1, shape=(1,))
            self.sizes[key] = self.op("Squeeze", vector, self.const([0], _C.int64), shape=())
        return self.sizes[key]

    def sizes_of(self, x: Value) -> list[Size]:
        """All sizes of a value."""
        return [self.size(x, d) for d in range(x.rank)]

    def arithmetic(self, op_type: str, a: Size, b: Size) -> Size:
        """Add, Sub, Mul, Div (rounded down, of numbers that are not negative) or Mod of sizes."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            return (
                {"Add": a + b, "Sub": a - b, "Mul": a * b}[op_type]
                if op_type in ("Add", "Sub", "Mul")
                else (a // b if op_type == "Div" else a % b)
            )
        return self.op(op_type, self.value(a, _C.int64), self.value(b, _C.int64), shape=())

    # ---- Common nodes

    def cast(self, x: Value, dtype: Any) -> Value:
        """The value in another dtype; itself if it has it."""
        if x.dtype is dtype:
            return x
        if x.const is not None and x.const.size <= 64 and dtype is not _C.bfloat16 and x.dtype is not _C.bfloat16:
            return self.const(x.const.astype(numpy_dtype(dtype)), dtype)
        return self.op("Cast", x, to=elem_type(dtype))

    def reshape(self, x: Value, sizes: Sequence[Size] | Value, shape: tuple | None = None) -> Value:
        """The elements with other sizes, one of which may be -1. Sizes of 0 are those of empty tensors, not copied ones."""
        if not isinstance(sizes, Value):
            computed = [i for i, n in enumerate(sizes) if isinstance(n, Value)]
            if len(computed) == 1 and all(type(n) is int and n > 0 for i, n in enumerate(sizes) if i != computed[0]):
                shape = tuple(None if isinstance(n, Value) else n for n in sizes) if shape is None else shape
                sizes = [-1 if i == computed[0] else n for i, n in enumerate(sizes)]  # it follows from the number of elements
        vector = sizes if isinstance(sizes, Value) else self.ints(sizes)
        if shape is None and not isinstance(sizes, Value):
            shape = tuple(n if type(n) is int and n >= 0 else None for n in sizes)
        without_rest = isinstance(sizes, Value) or not any(type(n) is int and n < 0 for n in sizes)
        has_zeros = vector.const is not None and bool((vector.const == 0).any())
        keeps_zeros = has_zeros or (vector.const is None and without_rest)
        return self.op("Reshape", x, vector, shape=shape, allowzero=1 if keeps_zeros else None)

    def unsqueeze(self, x: Value, dims: Sequence[int]) -> Value:
        """With sizes of 1 at these places of the result."""
        shape = None
        if x.shape is not None:
            rank = x.rank + len(dims)
            places = {d % rank for d in dims}
            rest = iter(x.shape)
            shape = tuple(1 if d in places else next(rest) for d in range(rank))
        return self.op("Unsqueeze", x, self.ints(list(dims)), shape=shape)

    def squeeze(self, x: Value, dims: Sequence[int]) -> Value:
        """Without these dimensions, whose sizes are 1."""
        shape = None
        if x.shape is not None:
            places = {d % x.rank for d in dims}
            shape = tuple(n for d, n in enumerate(x.shape) if d not in places)
        return self.op("Squeeze", x, self.ints(list(dims)), shape=shape) if dims else x

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        """With the dimensions in another order."""
        order = [d % x.rank for d in order]
        if order == sorted(order):
            return x
        return self.op(
            "Transpose", x, perm=order, shape=tuple(x.shape[d] for d in order) if x.shape is not None else None
        )

    def moved(self, x: Value, source: int, destination: int) -> Value:
        """With one dimension at another place."""
        order = [d for d in range(x.rank) if d != source % x.rank]
        order.insert(destination % x.rank, source % x.rank)
        return self.transpose(x, order)

    def slice(self, x: Value, dim: int, start: Size, end: Size, step: int = 1) -> Value:
        """Elements of one dimension."""
        shape = None if x.shape is None else tuple(None if d == dim % x.rank else n for d, n in enumerate(x.shape))
        return self.op(
            "Slice",
            x,
            self.ints([start]),
            self.ints([end]),
            self.ints([dim]),
            self.ints([step]) if step != 1 else None,
            shape=shape,
        )

    def expand(self, x: Value, sizes: Sequence[Size] | Value, shape: tuple | None = None) -> Value:
        """Repeated along dimensions of size 1."""
        return self.op("Expand", x, sizes if isinstance(sizes, Value) else self.ints(sizes), shape=shape)

    def reduce(self, op_type: str, x: Value, dims: Sequence[int], keepdim: bool) -> Value:
        """A reduction over some dimensions; over all if the list is empty."""
        shape = None
        if x.shape is not None:
            places = {d % x.rank for d in dims} if dims else set(range(x.rank))
            shape = tuple(1 if d in places else n for d, n in enumerate(x.shape) if keepdim or d not in places)
        if x.shape == ():
            return x
        return self.op(op_type, x, self.ints(list(dims)) if dims else None, keepdims=int(keepdim), shape=shape)

    def where(self, condition: Value, a: Any, b: Any, dtype: Any = None) -> Value:
        """Elements of a where the condition is true, of b elsewhere."""
        dtype = dtype or next(v.dtype for v in (a, b) if isinstance(v, Value))
        return self.op("Where", condition, self.value(a, dtype), self.value(b, dtype))

    def arange(self, end: Size, dtype: Any = None) -> Value:
        """0, 1, 2, ... as int64 or another dtype."""
        made = self.op("Range", self.value(0, _C.int64), self.value(end, _C.int64), self.value(1, _C.int64),
                       shape=(end if type(end) is int else None,))  # fmt: skip
        return made if dtype is None else self.cast(made, dtype)

    def filled(self, sizes: Sequence[Size], value: Any, dtype: Any) -> Value:
        """A tensor with one value in all elements."""
        if (
            all(type(n) is int for n in sizes)
            and int(np.prod(sizes, dtype=np.int64)) <= 16
            and dtype is not _C.bfloat16
        ):
            return self.const(np.full(tuple(sizes), value), dtype)
        shape = tuple(n if type(n) is int else None for n in sizes)
        return self.expand(self.const(value, dtype), sizes, shape)

    def computed(self, x: Value, needs_float: bool = True) -> Value:
        """The value as floating-point numbers of the result's dtype, or float32."""
        if not needs_float or is_float(x.dtype):
            return x
        return self.cast(
            x,
            self.dtype
            if self.dtype is not None and not isinstance(self.dtype, list) and is_float(self.dtype)
            else _C.float32,
        )

    # ---- Parts

    def part(self) -> Builder:
        """A builder for a graph within this one (a branch, the body of a loop), which may read this one's values."""
        made = Builder(self.shared, self)
        made.metadata = dict(self.metadata)
        return made


class Graph:
    """A finished graph within another one: an attribute of If, Loop or Scan."""

    def __init__(self, builder: Builder, inputs: list[Value], outputs: list[Value], name: str) -> None:
        self.builder, self.inputs, self.outputs, self.name = builder, inputs, outputs, name
