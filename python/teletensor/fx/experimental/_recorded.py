"""RecordedTensor: what a function sees of a tensor while its operators are recorded as nodes of an fx graph."""

from __future__ import annotations

import functools
import operator
from typing import Any

from ... import _C
from ..._C import OverridableFunction, Tensor
from ..._symbolic_bool import SymBool
from ...overrides import TorchFunctionMode
from ..node import Node
from ._numbers import guard_error, is_number
from ._sizes import RecordedFloat, RecordedSize, is_expression, text_of
from .symbolic_shapes import GuardOnDataDependentSymNode


class GradientsRequestedError(NotImplementedError):
    """The function calls autograd.grad() or backward(), whose operators run in the engine."""


def _values_of(tensor: RecordedTensor) -> Any:
    """The numbers that depend on values, if the recording of a tensor permits them (_unbacked.Values); else None."""
    recording = tensor._recording
    return recording.log.unbacked if recording.log is not None and recording.outer is None and recording.fake else None


def _refuse_values(name: str):
    def refuse(self: RecordedTensor, *args: Any, **kwargs: Any):
        raise self._recording.failed(
            GuardOnDataDependentSymNode(
                f"Could not guard on data-dependent expression: {name} reads the value of a tensor ({self._node}) whose computation is "
                "recorded, so that a branch or a number would depend on data. Use torch.cond() for branches, or torch.where()"
            )
        )

    return refuse


class RecordedTensor(Tensor):
    """A tensor of a recording: its node in the graph, and a tensor with its values or, in fake mode, without values."""

    has_no_values = True  # functions that would read values compute in another way (_ops/overloads.py)

    _value: Tensor
    _node: Node
    _recording: Any
    _state: Tensor | None = None  # the parameter or buffer that it is a placeholder of
    _operand: Node | None = None  # the node, of the outermost graph that has it, of the operand that a placeholder of a part is
    _layout: Any = None  # the sizes as expressions (_size_nodes.Layout); None if they are the same in all runs
    _is_read = False  # whether the recording contains the state's values as they are now

    __torch_function__ = _C._disabled_torch_function_impl

    @staticmethod
    def wrap(value: Tensor, node: Node, recording: Any, device: Any) -> RecordedTensor:
        """A recorded tensor with the sizes, strides and dtype of `value`, which is on `device` in the program."""
        made = _C._make_wrapper(RecordedTensor, tuple(value.shape), list(value.stride()), value.storage_offset(), value.dtype, device)
        made._value, made._node, made._recording = value, node, recording
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise RuntimeError(f"[{func}] received a tensor of a recording outside of it, or within a mode that suspends it")

    def read_state(self) -> Tensor | None:
        """The parameter or buffer that this stands for, for code that makes its values part of the program. None if there is none,
        or if the recording has changed it."""
        if self._state is None or self._value._version:
            return None
        self._is_read = True
        return self._state

    def check_read_state(self) -> None:
        """Raises an error if the recording changes a parameter or buffer after its values were read."""
        if self._is_read and self._value._version:
            raise self._recording.failed(
                GuardOnDataDependentSymNode(
                    f"Could not guard on data-dependent expression: {self._node.name} was read as a constant, and is changed by the program"
                )
            )

    def plain_sizes(self) -> tuple[int, ...]:
        """The sizes in this recording, without a guard."""
        return tuple(self._value.shape)

    def _sizes(self) -> list:
        values = list(self.plain_sizes())
        return [self._recorded_size(i, n) for i, n in enumerate(values)] if self._recording.log else values

    def _recorded_size(self, dim: int, value: int) -> Any:
        """The size of a dimension, which the graph computes."""
        log = self._recording.log
        if log.unbacked is not None and dim in log.unbacked.dims_of(self._node):
            return log.unbacked.size(self._node, dim, value)
        return self._number(log, ("size", self.source(), dim), value if self._layout is None else self._layout.sizes[dim])

    @staticmethod
    def _number(log: Any, recipe: tuple, number: int) -> Any:
        return RecordedSize.of(log.facts.simplified(number), recipe, log) if is_expression(number) else number

    def source(self) -> Node:
        """The node that texts of sizes name: within the graph of a function that an operator receives, that of the operand."""
        return self._operand or self._node

    def require_sizes(self) -> None:
        """Makes guards of the sizes."""
        if self._recording.log is not None:
            for size in self._sizes():
                _ = int(size) if type(size) is RecordedSize else size

    def depends_on_values(self) -> bool:
        """Whether sizes may depend on values of tensors."""
        log = self._recording.log
        return log is not None and log.unbacked is not None and bool(log.unbacked.dims_of(self._node))

    def _refuse_if_dependent(self, name: str) -> None:
        if self.depends_on_values():
            raise self._recording.log.unbacked.failed(guard_error(f"{name}() of {self._node}, whose sizes depend on values"))

    def _of_layout(self, recipe: tuple, value: int, number: int | None) -> Any:
        """A number of the strides or the offset, which the graph computes. It is constant together with numbers of values."""
        log = self._recording.log
        if log is None or number is None:
            made = value
        elif self._layout.is_guess and not log.is_at_least_2(number):  # sizes of 0 and 1 may have another layout
            made = log.define(value, recipe, of=(number,))
        else:
            made = self._number(log, recipe, number)
        return made if log is None or log.unbacked is None else int(made)

    def stride(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse_if_dependent("stride")
        found = self._value.stride(*map(_plain_dim, args), **kwargs)
        numbers = self._layout.strides if self._layout else [None] * self.dim()
        if type(found) is tuple:
            return tuple(self._of_layout(("stride", self.source(), i), n, numbers[i]) for i, n in enumerate(found))
        dim = int(args[0] if args else kwargs["dim"]) % self.dim()
        return self._of_layout(("stride", self.source(), dim), found, numbers[dim])

    def storage_offset(self) -> Any:
        self._refuse_if_dependent("storage_offset")
        return self._of_layout(("offset", self.source()), self._value.storage_offset(), self._layout and self._layout.offset)

    def is_contiguous(self, *args: Any, **kwargs: Any) -> bool:
        found = self.is_dense(*args, **kwargs)
        log = self._recording.log
        if log is not None and log.unbacked is None and self._layout is not None and not self._is_known_dense(*args, **kwargs):
            for number in (*self._layout.sizes, *self._layout.strides):
                log.facts.specialise(number)
            log.note_guards()
        return found

    def require_joins(self) -> None:
        """Makes guards of which neighbouring dimensions are one in memory, by which reshape() and contiguous() return a view or a copy."""
        log = self._recording.log
        if log is None or log.unbacked is not None or self._layout is None:
            return
        facts, step = log.facts, 1
        for size, stride in reversed(list(zip(self._layout.sizes, self._layout.strides))):
            if not facts.decide("==", size, 1):  # the stride of a size of 1 is not used
                facts.decide("==", stride, step)
                step = facts.compute("*", stride, size)
        log.note_guards()

    def _is_known_dense(self, *args: Any, **kwargs: Any) -> bool:
        """Whether the outcome of is_dense() is the same in all runs."""
        from ._size_nodes import Layout

        with self._recording.unrecorded(), _C.DisableTorchFunction():
            like = _C.torch.empty(self._value.shape, device="meta").contiguous(*args, **kwargs)
            dense = Layout.dense(self._recording.log.facts, like, self._layout.sizes).strides
        facts = self._recording.log.facts
        known = [facts.known("==", a, b) for a, b in zip(self._layout.strides, dense)]
        return all(known) if self.is_dense(*args, **kwargs) else False in known

    def is_dense(self, *args: Any, **kwargs: Any) -> bool:
        """is_contiguous() of code that gives the same result in both cases: no guard."""
        found = self._value.is_contiguous(*args, **kwargs)
        if not found:  # it is for sizes of 0 and 1
            self._refuse_if_dependent("is_contiguous")
        return found

    def as_subclass(self, cls: type) -> Tensor:
        if cls in (Tensor, type(self)):
            return self
        log = self._recording.log
        if log is not None and (not log.constant or self.depends_on_values()):  # another class returns plain numbers
            raise NotImplementedError(f"[as_subclass] expected torch.Tensor in a recording for many sizes, got {cls.__name__}")
        return Tensor.as_subclass(self, cls)

    def is_same_size(self, other: Any) -> bool:
        return bool(self.shape == other.shape)

    @property
    def nbytes(self) -> Any:
        return self.numel() * self.element_size()

    @property
    def shape(self) -> Any:
        return _C.Size(self._sizes()) if self._recording.log is None else RecordedShape(self._sizes())

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            return self.shape
        if self._recording.log is None:
            return self._value.size(dim)
        if is_number(dim):
            dim.refuse()
        dim = _plain_dim(dim)
        return self._recorded_size(dim % self.dim(), self._value.size(dim))

    def numel(self) -> int:
        if self._recording.log is None:
            return self._value.numel()
        return self.shape.numel()

    nelement = numel

    def __len__(self) -> int:
        if self.dim() == 0:
            raise TypeError("len() of a 0-d tensor")
        return int(self.size(0))

    @property
    def requires_grad(self) -> bool:
        return self._value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> RecordedTensor:
        if requires_grad != self._value.requires_grad:
            raise GradientsRequestedError("[requires_grad_] a recording by operators does not change whether a tensor requires grad")
        return self

    @property
    def is_leaf(self) -> bool:
        return self._value.is_leaf

    @property
    def grad_fn(self) -> Any:
        return self._value.grad_fn

    @property
    def grad(self) -> None:
        return None

    @property
    def data(self) -> Tensor:
        return self.detach()

    @staticmethod
    def run_backward(*_args: Any) -> None:
        """A backward pass within a recording."""
        raise GradientsRequestedError("[backward] the operators of a backward pass are not recorded one by one")

    @staticmethod
    def run_grad(_roots: list, _gradients: list, targets: list, *_options: Any) -> list:
        """autograd.grad() within a recording: an error, or tensors like the gradients if the recording only notes what sizes decide."""
        if all(isinstance(t, RecordedTensor) and t._recording.notes_sizes_only for t in targets):
            return [t.clone() for t in targets]
        raise GradientsRequestedError("[grad] the operators of a backward pass are not recorded one by one")

    def item(self) -> Any:
        """The value as a number that the graph computes, if the recording permits it."""
        unbacked = _values_of(self)
        found = None if unbacked is None else unbacked.item(self._recording, self)
        return _refuse_values("item")(self) if found is None else found

    def tolist(self) -> Any:
        """The values as numbers that the graph computes, if the recording permits them and the sizes are known."""
        if _values_of(self) is None or self.depends_on_values():
            return _refuse_values("tolist")(self)
        return [part.tolist() for part in self.unbind(0)] if self.dim() else self.item()

    def __getitem__(self, index: Any) -> Any:
        index = _with_items(self, index)
        if _has_number(index) or self.depends_on_values() and not _is_advanced(index):
            return indexed(self, index)
        try:
            return Tensor.__getitem__(self, index)
        except IndexError:  # for these sizes, and the program may catch it
            self.require_sizes()
            raise

    def __setitem__(self, index: Any, value: Any) -> None:
        if is_number(value) or type(value) in (RecordedSize, RecordedFloat):
            value = _C.torch.full([], value, dtype=self.dtype, device=self.device)
        index = _with_items(self, index)
        if _has_number(index) or self.depends_on_values() and not _is_advanced(index):
            view = indexed(self, index)
            _ = view.copy_(value) if isinstance(value, Tensor) else view.fill_(value)
        else:
            Tensor.__setitem__(self, index, value)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        sizes = ", ".join(map(text_of, self._sizes()))
        return f"RecordedTensor({self._node}, size=({sizes}), dtype={self.dtype})"

    def __copy__(self) -> RecordedTensor:
        made = RecordedTensor.wrap(self._value, self._node, self._recording, self.device)
        made._operand, made._layout = self._operand, self._layout
        return made

    def __deepcopy__(self, memo: dict) -> Tensor:
        return memo.setdefault(id(self), self.detach().clone())


class RecordedShape(tuple):
    """The sizes of a recorded tensor, with torch.Size's methods."""

    def numel(self) -> int:
        """The product of the sizes."""
        return functools.reduce(operator.mul, self) if self else 1

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return RecordedShape(found) if isinstance(key, slice) else found

    def __repr__(self) -> str:
        return f"torch.Size({[n.refuse() if is_number(n) else int(n) for n in self]})"


for _name in (
    "numpy", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__array__", "__contains__",
    "untyped_storage", "data_ptr",
):  # fmt: skip
    setattr(RecordedTensor, _name, _refuse_values(_name))


_OWN: dict[Any, Any] = {
    getattr(Tensor, name): getattr(RecordedTensor, name)
    for name in ("__len__", "as_subclass", "is_contiguous", "item", "nelement", "numel", "size", "storage_offset", "stride", "tolist")
} | {Tensor.shape.__get__: RecordedTensor.shape.fget}  # fmt: skip


def own_read(func: Any, args: tuple) -> Any:
    """The method of RecordedTensor in place of the base class's, such as torch.Tensor.size(x), which returns constants; else None."""
    found = _OWN.get(func)
    return found if found is not None and args and isinstance(args[0], RecordedTensor) else None


class ReadMode(TorchFunctionMode):
    """Makes the base class's methods that read sizes those of RecordedTensor."""

    def __torch_function__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        read = own_read(func, args)
        if read is None and len(args) == 2 and not kwargs and SymBool in map(type, args) and any(isinstance(v, Tensor) for v in args):
            is_bool = any(isinstance(v, Tensor) and v.dtype == _C.bool for v in args)  # x * (n > 2)
            return func(*((bool(v) if is_bool else v.as_int()) if type(v) is SymBool else v for v in args))
        is_last = not types and not _C._len_torch_function_stack()  # otherwise a mode of the user receives the call, too
        if read is None and is_last and type(func) is OverridableFunction:  # it may call functions of the user
            with self:
                return _C._call_without_one_override(func, types, args, kwargs or {})
        return (read or func)(*args, **(kwargs or {}))


def is_dense(tensor: Tensor) -> bool:
    """Whether a tensor is contiguous, for code that gives the same result in both cases."""
    return tensor.is_dense() if isinstance(tensor, RecordedTensor) else tensor.is_contiguous()


def _plain_dim(value: Any) -> Any:
    return int(value) if type(value) is RecordedSize else value


def _with_items(tensor: RecordedTensor, index: Any) -> Any:
    """An index whose slices have numbers instead of tensors as bounds, if the recording permits them."""
    if _values_of(tensor) is None:
        return index
    if type(index) is tuple:
        return tuple(_with_items(tensor, part) for part in index)
    if isinstance(index, slice):
        return slice(*(n.item() if isinstance(n, Tensor) else n for n in (index.start, index.stop, index.step)))
    return index


def _parts(index: Any) -> tuple:
    return index if type(index) is tuple else (index,)


def _has_number(index: Any) -> bool:
    """Whether an index contains a number that depends on values."""
    return any(is_number(n) for p in _parts(index) for n in ((p.start, p.stop, p.step) if isinstance(p, slice) else (p,)))


def _is_advanced(index: Any) -> bool:
    """Whether an index has tensors or lists, and no parts whose meaning depends on the sizes."""
    parts = _parts(index)
    if not any(isinstance(p, (list, Tensor)) or type(p) is bool for p in parts):
        return False
    if any(isinstance(p, slice) and p != slice(None) or type(p) is int and p < 0 for p in parts):
        raise NotImplementedError("[index] slices or negative numbers together with tensors, for sizes that depend on values")
    return True


def _bounds(part: slice) -> tuple:
    """The arguments of a slice's call."""
    return part.start, part.stop, 1 if part.step is None else part.step


def indexed(tensor: Any, index: Any) -> Any:
    """tensor[index] as one call for each part: calls with bounds of slices and numbers as they are, which are not known."""
    call = tensor._recording.call
    parts = list(_parts(index))
    if any(isinstance(p, (list, Tensor)) or type(p) is bool for p in parts):
        raise NotImplementedError("[index] a number that depends on values together with tensors or bools as indices")
    count = sum(p is not None and p is not Ellipsis for p in parts)
    if not any(p is Ellipsis for p in parts):
        parts.append(Ellipsis)
    at = next(i for i, p in enumerate(parts) if p is Ellipsis)
    parts[at : at + 1] = [slice(None)] * (tensor.dim() - count)
    dim = 0
    for part in parts:
        if part is None:
            tensor, dim = tensor.unsqueeze(dim), dim + 1
        elif isinstance(part, slice):
            if not (part.start is None and part.stop is None and part.step is None):
                tensor = call("slice.Tensor", tensor, dim, *_bounds(part))
            dim += 1
        else:
            tensor = call("select.int", tensor, dim, part)
    return tensor
