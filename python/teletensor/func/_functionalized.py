"""Functional: a tensor of which writes in place are computed as new values (functionalize).

Views remember how they were made. A write to a view computes a new value of the tensor that it views, from which other
views are made again when they are next used. Writes to the function's inputs reach them once, when the function returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from .. import _C, _transforms
from .._C import Tensor
from .._library import aten
from .._library.engine_operators import Operator, operator_named
from . import tree
from ._transformed import Level, Transformed, innermost, inside_modes, read_inside, root, run_grad

# Operators that are declared as views, whose result may be a copy.
_MAY_COPY = frozenset(("reshape", "flatten", "ravel", "contiguous", "reshape_as", "unflatten"))
# Views whose copies are PyTorch's operators with the same arguments, and those that are other sizes of the same elements.
_COPIED = frozenset((
    "alias", "as_strided", "detach", "diagonal", "expand", "narrow", "permute", "select", "slice", "split", "split_with_sizes",
    "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view", "view_as_complex", "view_as_real",
))  # fmt: skip
_RESHAPED = frozenset(("reshape", "flatten", "ravel", "unflatten", "view_as", "reshape_as", "squeeze_dim"))


class _Storage:
    """The value of a tensor and of its views; `original` is the input that receives it at the end."""

    def __init__(self, value: Tensor, original: Tensor | None = None):
        self.value, self.original, self.writes = value, original, 0


class Functional(Transformed):
    """A tensor whose value is replaced by writes."""

    _level: FunctionalLevel
    _memory: _Storage
    _path: tuple  # the views by which it was made from the storage's value: (operator, further arguments, result)
    _seen: int
    _view: Tensor

    @property
    def _value(self) -> Tensor:
        if not self._path:
            return self._memory.value
        if self._seen != self._memory.writes:
            value = self._memory.value
            for op, arguments, place in self._path:
                value = self._level.views(op, [value, *arguments])[place]
            self._seen, self._view = self._memory.writes, value
        return self._view

    def with_value(self, change: Callable[[Tensor], Tensor]) -> Functional:
        return self._level.wrap(change(self._value))

    def as_leaf(self) -> Functional:
        return self.with_value(_transforms.leaf)

    def as_untaped(self) -> Functional:
        return self.with_value(_transforms.untaped)

    def __repr__(self, *, tensor_contents=None) -> str:
        return f"Functional(level={self._level.number}, value={self._value!r})"


read_inside(Functional)


class FunctionalLevel(Level):
    """One functionalize in progress."""

    def __init__(self, copies_views: bool):
        self.number, self.copies_views = _transforms.next_number(), copies_views

    def wrap(self, value: Tensor, view_of: Functional | None = None, path: tuple = (), original: Tensor | None = None) -> Functional:
        made = _C._make_wrapper(Functional, value.shape, list(value.stride()), value.storage_offset(), value.dtype, value.device)
        made._level = self
        if view_of is None:
            made._memory, made._path = _Storage(value, original), ()
        else:
            made._memory, made._path = view_of._memory, (*view_of._path, path)
            made._seen, made._view = made._memory.writes, value
        return made

    def has(self, value: Any) -> bool:
        return isinstance(value, Functional) and value._level is self

    def inside(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.inside(v) for v in value]
        return value._value if self.has(value) else value

    def views(self, op: Operator, arguments: list) -> list[Tensor]:
        """The results of a view operator, or copies of them."""
        if not self.copies_views:
            return op.call(arguments)
        name = op.name
        if name == "split" and isinstance(arguments[1], (list, tuple)):
            name = "split_with_sizes"
        if name in _COPIED:
            made = aten.packet(f"{name}_copy")(*arguments)
            return list(made) if isinstance(made, (list, tuple)) else [made]
        found = op.call(arguments)
        if name in _RESHAPED:
            return [aten.packet("view_copy")(arguments[0], list(found[0].shape))]
        if name in ("broadcast_to", "expand_as"):
            return [aten.packet("expand_copy")(arguments[0], list(found[0].shape))]
        return [f.clone() for f in found]

    def compute(self, name: str, arguments: list, into: list | None) -> list:
        op = operator_named(name)
        if into is not None:
            return self._write(op, arguments, into)
        values = [self.inside(a) for a in arguments]
        if op.is_view and self.has(arguments[0]):
            return self._view(op, arguments[0], values)
        for i, written in enumerate(op.written):  # such as running statistics
            if written and values[i] is not None:
                values[i] = [v.clone() for v in values[i]] if isinstance(values[i], list) else values[i].clone()
        results = op.call(values)
        for argument, value, written in zip(arguments, values, op.written, strict=True):
            if written and value is not None:
                pairs = zip(argument, value) if isinstance(value, list) else [(argument, value)]
                for target, changed in pairs:
                    self._set(target, changed) if self.has(target) else target.copy_(changed)
        return [self.wrap(r) for r in results]

    def _view(self, op: Operator, source: Functional, values: list) -> list:
        path = [(op, values[1:], i) for i in range(max(op.num_outputs, 0))]
        if op.name in _MAY_COPY:
            found = op.call(values)
            if root(found[0]).untyped_storage() != root(values[0]).untyped_storage():
                return [self.wrap(f) for f in found]
            results = self.views(op, values) if self.copies_views else found
        else:
            results = self.views(op, values)
        if len(path) != len(results):
            path = [(op, values[1:], i) for i in range(len(results))]
        return [self.wrap(r, source, p) for r, p in zip(results, path)]

    def _write(self, op: Operator, arguments: list, into: list) -> list:
        values = [self.inside(a) for a in arguments]
        if not all(map(self.has, into)):  # a tensor from outside of the function
            if any(map(self.has, into)):
                raise NotImplementedError(f"functionalize: {op.name} writes to tensors of the function and to others at once")
            op.call(values, into)
            return into
        before = [t._value for t in into]
        for target, result in zip(into, op.call(values), strict=True):
            value = target._value
            if op.name != "assign" and not _C.can_cast(result.dtype, value.dtype):
                raise RuntimeError(f"[{op.name}] result type {result.dtype} can't be cast to the desired output type {value.dtype}")
            if result.shape != value.shape:
                raise RuntimeError(
                    f"[{op.name}] output with shape {list(value.shape)} doesn't match the broadcast shape {list(result.shape)}"
                )
            result = result if result.dtype == value.dtype else result.to(value.dtype)
            if any(result is v for v in (*before, *values)):
                result = result.clone()
            self._set(target, result)
        return into

    def _set(self, target: Functional, value: Tensor) -> None:
        storage = target._memory
        if target._value.is_contiguous() and not value.is_contiguous():
            value = value.contiguous()  # as the tensor that is written
        bases = [storage.value]
        for op, arguments, place in target._path[:-1]:
            bases.append(self.views(op, [bases[-1], *arguments])[place])
        for (op, arguments, place), base in zip(reversed(target._path), reversed(bases)):
            value = _written_base(op, base, value, arguments, place)
        storage.value = value
        storage.writes += 1

    def gradients(self, outputs, grad_outputs, inputs, retain_graph: bool, create_graph: bool, allow_unused: bool) -> list:
        values = [self.inside(group) for group in (outputs, grad_outputs, inputs)]
        found = run_grad(*values, retain_graph, create_graph, allow_unused)
        return [g if g is None else self.wrap(g) for g in found]

    def backward(self, outputs, grad_outputs, retain_graph: bool, create_graph: bool, inputs: list) -> None:
        values = [self.inside(group) for group in (outputs, grad_outputs, inputs)]
        level = innermost([t for group in values for t in group])
        run = _C.backward if level is None else level.backward
        run(values[0], values[1], retain_graph, create_graph, values[2])

    def apply_function(self, function: type, args: tuple) -> Any:
        values = [self.inside(a) for a in args]
        versions = [v._version if isinstance(v, Tensor) else 0 for v in values]
        results = function.apply(*values)
        if versions != [v._version if isinstance(v, Tensor) else 0 for v in values]:
            raise NotImplementedError(f"functionalize: {function.__name__} writes to an argument in place, which is not supported")
        return tree.map_leaves(lambda r: self.wrap(r) if isinstance(r, Tensor) else r, results)


def _written_base(op: Operator, base: Tensor, value: Tensor, arguments: Sequence[Any], place: int) -> Tensor:
    """The tensor of which a view has the given value, and which is `base` elsewhere."""
    name, torch = op.name, _C.torch
    args = dict(zip(op.names[1:], arguments))
    if name in _RESHAPED or name in ("view", "squeeze", "unsqueeze", "contiguous", "alias", "detach"):
        return value.reshape(base.shape)
    if name in ("t", "transpose"):
        return value.t() if name == "t" else value.transpose(args["dim0"], args["dim1"])
    if name == "permute":
        dims = [d % base.dim() for d in args["dims"]]
        return value.permute([dims.index(i) for i in range(base.dim())])
    if name == "movedim":
        return value.movedim(args["destination"], args["source"])
    if name == "select":
        return aten.packet("select_scatter")(base, value, args["dim"], args["index"])
    if name == "slice":
        return aten.packet("slice_scatter")(base, value, args["dim"], args["start"], args["end"], args["step"])
    if name == "narrow":
        start = args["start"] if args["start"] >= 0 else args["start"] + base.shape[args["dim"]]
        return aten.packet("slice_scatter")(base, value, args["dim"], start, start + args["length"], 1)
    if name == "unbind":
        return aten.packet("select_scatter")(base, value, args["dim"], place)
    if name in ("split", "split_with_sizes", "chunk", "tensor_split"):
        before = op.call([base, *arguments])[:place]
        start = sum(b.shape[args["dim"]] for b in before)
        return aten.packet("slice_scatter")(base, value, args["dim"], start, start + value.shape[args["dim"]], 1)
    if name == "diagonal":
        return aten.packet("diagonal_scatter")(base, value, args["offset"], args["dim1"], args["dim2"])
    if name == "as_strided":
        return aten.packet("as_strided_scatter")(base, value, args["size"], args["stride"], args["storage_offset"])
    if name == "view_as_real":
        return torch.view_as_complex(value.contiguous())
    if name == "view_as_complex":
        return torch.view_as_real(value)
    if name in ("real", "imag"):
        if not base.is_complex():
            return value
        return torch.complex(value, base.imag) if name == "real" else torch.complex(base.real, value)
    if name == "view_of_dtype":
        return value.contiguous().view(base.dtype)
    raise NotImplementedError(f"functionalize: writes to the result of {name}() are not supported")


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """Returns a function with the same results and effects, in which no operator writes in place.

    Operators that write, also by out=, become the same ones without writes, whose results replace the values. Writes to
    arguments are made at the end, by copy_(). Tensors from outside of the function are written where the function does so.

    Args:
        remove: "mutations", or "mutations_and_views": then views become copies, such as view_copy(), too.
    Raises:
        RuntimeError: another value of ``remove``.
        NotImplementedError: (from the returned function) a write to an argument that shares memory with another one.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are: "
            "'mutations' and 'mutations_and_views'"
        )

    @wraps(func)
    def functional(*args: Any, **kwargs: Any):
        level = FunctionalLevel(remove == "mutations_and_views")
        wrapped: dict[int, Functional] = {}

        def wrap(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            if id(value) not in wrapped:
                wrapped[id(value)] = level.wrap(value, original=value)
            return wrapped[id(value)]

        with inside_modes():
            output = func(*tree.map_leaves(wrap, args), **tree.map_leaves(wrap, kwargs))
        results = tree.map_leaves(level.inside, output)
        storages = [t._memory for t in wrapped.values()]
        written = [s for s in storages if s.writes]
        if written:
            shared = [root(s.original).untyped_storage() for s in storages]
            for i, storage in enumerate(storages):
                if storage.writes and any(shared[i] == s for j, s in enumerate(shared) if j != i):
                    raise NotImplementedError("functionalize: a write to an argument that shares memory with another argument")
        for storage in written:
            storage.original.copy_(storage.value)
        return results

    return functional
