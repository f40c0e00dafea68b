"""MaskedTensor: data and a mask of the same shape and layout, whose False marks elements that operators leave out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._composed_operators import compose
from .._layouts import sparse_coo, sparse_csr, strided
from .._lazy import set_module
from .._sparse.convert import coalesce, sparse_mask
from .._sparse.tensor import SparseTensor, like
from .._storage import contiguous_strides
from ._sparse import where

# Functions by the name of the engine's operator, set by _calls.py: (arguments, into) -> result.
handlers: dict[str, Callable[[list, list | None], Any]] = {}
of_sparse: set[str] = set()  # those that also take sparse data, set by _calls.py
_DTYPES = (_C.float16, _C.float32, _C.float64, _C.bool, _C.int8, _C.int16, _C.int32, _C.int64)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether an object is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def checked(data: Any, mask: Any) -> tuple[Tensor, Tensor]:
    """The data and mask of a new masked tensor. Raises TypeError or ValueError, with PyTorch's messages, for others."""
    for name, value in (("data", data), ("mask", mask)):
        if is_masked_tensor(value) or not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a Tensor")
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout not in (strided, sparse_coo, sparse_csr):
        raise TypeError(f"data layout of {data.layout} is not supported.")
    for value in (data, mask):
        if _C._is_wrapper(value) and not isinstance(value, SparseTensor):
            raise NotImplementedError(f"[MaskedTensor] expected plain or sparse tensors, got {type(value).__name__}")
    if mask.dtype is not _C.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    return _aligned(data, mask) if isinstance(data, SparseTensor) else (data, mask)


def _aligned(data: SparseTensor, mask: SparseTensor) -> tuple[SparseTensor, SparseTensor]:
    """Sparse data with the mask's indices. Waits. Raises ValueError, as PyTorch does, if equally many indices differ."""
    if data.is_sparse:
        data, mask = coalesce(data), coalesce(mask)
    if data._nnz() != mask._nnz():
        coo = where(coalesce(data.to_sparse()), coalesce(mask.to_sparse()), 0)
        data = coo if data.is_sparse else coo.to_sparse_csr()
    if not same_indices(data, mask):
        kind, what = ("COO", "have the same") if data.is_sparse else ("CSR", "share either crow or col")
        raise ValueError(f"data and mask are both sparse {kind} tensors but do not {what} indices.")
    return data, mask


def same_indices(a: SparseTensor, b: SparseTensor) -> bool:
    """Whether two tensors of one layout have the same indices. Waits, unless they share them."""
    parts = [(a._coo, b._coo)] if a.is_sparse else [(a._compressed, b._compressed), (a._plain, b._plain)]
    return all(x is y or (x.shape == y.shape and bool((x == y).all())) for x, y in parts)


def values_of(tensor: Tensor) -> Tensor:
    """The values of a sparse tensor; another tensor itself."""
    return tensor._elements if isinstance(tensor, SparseTensor) else tensor


def with_values(tensor: Tensor, values: Tensor) -> Tensor:
    """The inverse of values_of(), for a result for each value."""
    return like(tensor, values) if isinstance(tensor, SparseTensor) else values


def not_supported(name: str) -> TypeError:
    """PyTorch's error for an operator that masked tensors lack."""
    return TypeError(
        f"Multiple dispatch failed for 'torch._ops.aten.{name}'; all __torch_dispatch__ handlers returned NotImplemented: "
        f"{name} is not implemented for MaskedTensor; use get_data() and get_mask(), or to_tensor(value)"
    )


def _text(data: Tensor, mask: Tensor) -> str:
    """PyTorch's notation of the elements: lists of numbers, with "--" for masked-out ones."""
    if data.dim() == 1:
        values, selected = data.tolist(), mask.tolist()
        shown = [f"{v:8.4f}" if isinstance(v, float) else str(v) for v in values]
        width = max((len(s) if keep else 8 for s, keep in zip(shown, selected, strict=True)), default=8)
        return "[" + ", ".join(s if keep else "--".rjust(width) for s, keep in zip(shown, selected, strict=True)) + "]"
    rows = [_text(d, m) for d, m in zip(data, mask, strict=True)]
    return "[\n" + ",\n".join("\n".join("  " + line for line in row.split("\n")) for row in rows) + "\n]"


class MaskedTensor(Tensor):
    """Data and a mask. Elements whose mask is False are left out by reductions, and have no defined value.

    The engine has the data and the mask, and records the gradients of the data; nothing waits except repr, item() and bool().
    Operators that PyTorch has for masked tensors, and operators that move elements, are in _calls.py; others raise TypeError.

    Args:
        data: a tensor of float16, float32, float64, bool or a signed integer dtype; copied. Its layout is strided, sparse_coo or
            sparse_csr.
        mask: a bool tensor of the same shape and layout; copied.
        requires_grad: whether gradients are recorded.
    """

    __torch_function__ = _C._disabled_torch_function_impl
    _masked_data: Tensor
    _masked_mask: Tensor
    _saved_with_state = True  # torch.save writes its attributes
    _file_name = "torch.masked.maskedtensor.core MaskedTensor"
    _file_requires_grad = False  # whether the file that contains the tensor says that it requires grad

    @staticmethod
    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        tensor, selected = checked(data, mask)
        warnings.warn(
            "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a Github issue "
            "for feature requests and see our documentation on the torch.masked module for further information about the project.",
            UserWarning, stacklevel=2,
        )  # fmt: skip
        if tensor.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can use "
                "data.detach().clone()", UserWarning, stacklevel=2,
            )  # fmt: skip
        return wrapped(tensor.detach().clone().requires_grad_(requires_grad), selected.detach().clone(), cls)

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        """See the class: __new__ has set the data and the mask."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Refuses operators that are not the engine's."""
        raise not_supported(str(func).removeprefix("aten."))

    @staticmethod
    def run_engine_call(name: str, arguments: list, into: list | None) -> Any:
        """Computes an operator of the engine of which an argument is masked."""
        if name in handlers and (name in of_sparse or not any(isinstance(a, MaskedTensor) and a.is_sparse for a in arguments)):
            return handlers[name](arguments, into)
        result = compose(name, arguments, into, TypeError)
        if result is NotImplemented:
            raise not_supported(name)
        return result

    # -- data and mask

    @property
    def layout(self) -> Any:  # type: ignore[override]
        """The layout of the data and of the mask."""
        return self._masked_data.layout

    def get_data(self) -> Tensor:
        """The data, also of masked-out elements; differentiable."""
        return with_values(self._masked_data, _C.ops.alias(values_of(self._masked_data)))

    def get_mask(self) -> Tensor:
        """The mask."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """The strided data with ``value`` in place of masked-out elements; differentiable."""
        dense = self.to_dense()
        return dense._masked_data.masked_fill(~dense._masked_mask, value)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool = True) -> MaskedTensor:
        """The tensor with strided data, in which elements that sparse data lacks are masked out."""
        if dtype is not None or masked_grad is not True:
            raise NotImplementedError("[to_dense] expected no dtype and masked_grad=True for a MaskedTensor")
        return wrapped(self._masked_data.to_dense(), self._masked_mask.to_dense()) if self.is_sparse else self

    @property
    def is_sparse(self) -> bool:  # type: ignore[override]
        """Whether the layout is sparse_coo or sparse_csr."""
        return self.layout != strided

    def is_sparse_coo(self) -> bool:
        """Whether the layout is sparse_coo."""
        return self.layout == sparse_coo

    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        """Whether the layout is sparse_csr."""
        return self.layout == sparse_csr

    def to_sparse(self) -> MaskedTensor:
        """The tensor with sparse_coo data: the unmasked elements."""
        return self._to_layout(sparse_coo)

    to_sparse_coo = to_sparse

    def to_sparse_csr(self) -> MaskedTensor:
        """The tensor with sparse_csr data: the unmasked elements of a matrix."""
        if self.dim() != 2:
            raise ValueError(f"Only 2D tensors can be converted to the SparseCsr layout but got shape: {self.shape}")
        return self._to_layout(sparse_csr)

    def _to_layout(self, layout: Any) -> MaskedTensor:
        if self.layout == layout:
            return self
        mask = self._masked_mask.to_sparse(layout=layout)
        data = self._masked_data
        return wrapped(data.to_sparse(layout=layout) if self.is_sparse else sparse_mask(data, mask), mask)

    # -- gradients, which the engine records for the data

    @property
    def requires_grad(self) -> bool:
        """Whether gradients of the data are recorded."""
        return self._masked_data.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._masked_data.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> MaskedTensor:
        """Sets requires_grad."""
        self._masked_data.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether the data is not a result that requires a gradient."""
        return self._masked_data.is_leaf

    @property
    def grad_fn(self) -> Any:
        """The node of the data's graph."""
        return self._masked_data.grad_fn

    @property
    def grad(self) -> MaskedTensor | None:
        """The gradient, with the tensor's mask."""
        found = self._masked_data.grad
        return None if found is None else wrapped(found, self._masked_mask)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self._masked_data.grad = value._masked_data if isinstance(value, MaskedTensor) else value

    def detach_(self) -> MaskedTensor:
        """Detaches the tensor from its graph, in place."""
        self._masked_data = self._masked_data.detach()
        return self

    def retain_grad(self) -> None:
        """Keeps the gradient of a tensor that is not a leaf."""
        self._masked_data.retain_grad()

    def register_hook(self, hook: Callable) -> Any:
        """Calls ``hook`` with the gradient, as a masked tensor."""

        def on_data(gradient: Tensor) -> Tensor | None:
            result = hook(wrapped(gradient, self._masked_mask))
            return result._masked_data if isinstance(result, MaskedTensor) else result

        return self._masked_data.register_hook(on_data)

    @property
    def data(self) -> MaskedTensor:  # type: ignore[override]
        """The tensor without its gradient history."""
        return wrapped(self._masked_data.detach(), self._masked_mask)

    @staticmethod
    def run_backward(roots: list, gradients: list, retain: bool, create_graph: bool, into: list) -> Any:
        """A backward pass from masked tensors, or into them."""
        return _C.backward(_plain(roots), _plain(gradients), retain, create_graph, _plain(into))

    @staticmethod
    def run_grad(roots: list, gradients: list, targets: list, retain: bool, create_graph: bool, unused: bool) -> list:
        """The gradients of roots with respect to targets: masked tensors of masked targets."""
        found = _C.grad(_plain(roots), _plain(gradients), _plain(targets), retain, create_graph, unused)
        return [
            wrapped(g, t._masked_mask) if g is not None and isinstance(t, MaskedTensor) else g for g, t in zip(found, targets, strict=True)
        ]

    # -- values

    def item(self) -> Any:
        """The only element as a number. Waits. Raises ValueError if it is masked out."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        if not self._masked_mask.item():
            raise ValueError("[item] expected an element whose mask is True: this one is masked out")
        return self._masked_data.item()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    __index__ = __int__

    def tolist(self) -> Any:
        """Raises RuntimeError, as PyTorch does: use to_tensor()."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got MaskedTensor")

    def numpy(self, *, force: bool = False) -> Any:
        """Raises RuntimeError, as PyTorch does: use to_tensor()."""
        raise RuntimeError(f".numpy() is not supported for tensor subclasses, also with force={force}.")

    def contiguous(self, memory_format: Any = None) -> MaskedTensor:
        """The tensor itself, or a contiguous copy."""
        self._refuse_sparse("is_contiguous")
        if memory_format not in (None, "torch.contiguous_format"):
            raise NotImplementedError(f"[contiguous] expected torch.contiguous_format, got {memory_format}")
        if self._masked_data.is_contiguous() and self._masked_mask.is_contiguous():
            return self
        return wrapped(self._masked_data.contiguous(), self._masked_mask.contiguous())

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the data is contiguous. Raises ValueError for sparse data, as PyTorch does."""
        self._refuse_sparse("is_contiguous")
        return self._masked_data.is_contiguous(*() if memory_format is None else (memory_format,))

    def _refuse_sparse(self, name: str) -> None:
        if self.is_sparse:
            raise ValueError(f"MaskedTensors with sparse data do not have {name}")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise not_supported(f"index_put_ (of index {index!r} and a value of type {type(value).__name__})")

    def __deepcopy__(self, memo: dict) -> MaskedTensor:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError("Only Tensors created explicitly by the user support the deepcopy protocol at the moment")
            data = self._masked_data.detach().clone().requires_grad_(self.requires_grad)
            memo[id(self)] = wrapped(data, self._masked_mask.clone())
        return memo[id(self)]

    def __reduce_ex__(self, _protocol: Any) -> tuple:
        """Pickles the data and the mask. Waits for the engine."""
        return MaskedTensor._restored, (self._masked_data, self._masked_mask)

    @classmethod
    def _restored(cls, data: Tensor, mask: Tensor) -> Tensor:
        """A tensor of a pickle, which names the public class so that reading it imports the operators."""
        return wrapped(data, mask, cls)

    def _file_state(self) -> dict[str, Tensor]:
        """The attributes that files contain."""
        return {"_masked_data": self._masked_data.detach(), "_masked_mask": self._masked_mask}

    def __setstate__(self, state: Any) -> None:
        """Sets the data and the mask of a file. Raises ValueError or TypeError if they do not fit the tensor."""
        if not isinstance(state, dict) or set(state) != {"_masked_data", "_masked_mask"}:
            raise ValueError(f"expected the data and the mask of a MaskedTensor, got {state!r:.200}")
        data, mask = checked(state["_masked_data"], state["_masked_mask"])
        if data.shape != self.shape or data.dtype is not self.dtype or data.layout != strided:
            raise ValueError(f"expected strided data of {tuple(self.shape)} and {self.dtype}, got {tuple(data.shape)} and {data.dtype}")
        if self._file_requires_grad and not (data.dtype.is_floating_point or data.dtype.is_complex):
            raise ValueError(f"expected data of a dtype that has gradients, got {data.dtype}")
        self._masked_data, self._masked_mask = data.requires_grad_(self._file_requires_grad), mask

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        """Returns PyTorch's notation. Waits for the values, unless ``tensor_contents`` replaces them."""
        if tensor_contents is not None:
            return f"MaskedTensor({tensor_contents})"
        if self.device.type == "meta":
            return f"MaskedTensor(..., size={tuple(self.shape)})"
        dense = self.to_dense()
        data, mask = dense._masked_data.detach(), dense._masked_mask
        if self.dim() == 0:
            value, keep = data.item(), mask.item()
            shown = f"{value:8.4f}" if isinstance(value, float) else str(value)
            return f"MaskedTensor({shown if keep else '--'}, {keep})"
        return "MaskedTensor(\n" + "\n".join("  " + line for line in _text(data, mask).split("\n")) + "\n)"

    __str__ = __repr__




def _plain(values: list) -> list:
    return [v._masked_data if isinstance(v, MaskedTensor) else v for v in values]


def wrapped(data: Tensor, mask: Tensor, cls: type = MaskedTensor) -> MaskedTensor:
    """The masked tensor with this data and mask, which it shares."""
    if data.layout not in (strided, sparse_coo, sparse_csr):
        raise TypeError(f"data layout of {data.layout} is not supported.")
    place = (tuple(contiguous_strides(data.shape)), 0) if isinstance(data, SparseTensor) else (data.stride(), data.storage_offset())
    made = _C._make_wrapper(cls, data.shape, *place, data.dtype, data.device)
    made._masked_data, made._masked_mask = data, mask
    return made


def same_masks(a: MaskedTensor, b: MaskedTensor) -> bool:
    """Whether two masks are equal. Waits, unless they are one tensor."""
    first, second = a._masked_mask, b._masked_mask
    if isinstance(first, SparseTensor) and first is not second:
        if first.shape != second.shape or not same_indices(first, second):
            return False
        first, second = first._elements, second._elements
    return first is second or (first.dim() == second.dim() and first.shape == second.shape and bool((first == second).all()))


set_module("teletensor.masked.maskedtensor.core", MaskedTensor)
