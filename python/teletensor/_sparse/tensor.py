"""SparseTensor: a tensor of layout sparse_coo, sparse_csr, sparse_csc, sparse_bsr or sparse_bsc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._component_tensor import ComponentTensor
from .._layouts import layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr

# Functions by the name of the engine's operator, set by calls.py: (arguments, into) -> result.
handlers: dict[str, Callable[[list, list | None], Any]] = {}
# Functions of upper files, which set them: "coalesce", "to_dense", "to", "repr", "reduce", "aligned", "both", "narrow_copy",
# "become", "replace_leaf".
hooks: dict[str, Callable] = {}

COMPRESSED = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
ROWS = (sparse_csr, sparse_bsr)  # the layouts that compress rows
BLOCKS = (sparse_bsr, sparse_bsc)
NAMES = {
    "torch.strided": "Strided", "torch.sparse_coo": "Sparse", "torch.sparse_csr": "SparseCsr", "torch.sparse_csc": "SparseCsc",
    "torch.sparse_bsr": "SparseBsr", "torch.sparse_bsc": "SparseBsc",
}  # fmt: skip


def layout_name(tensor: Tensor) -> str:
    """The layout as PyTorch's messages name it, such as "SparseCsr"."""
    return NAMES[str(tensor.layout)]


def not_implemented(name: str, tensor: Tensor) -> NotImplementedError:
    """PyTorch's error for an operator without a kernel for the tensor's layout."""
    backend = "Sparse" if tensor.layout == sparse_coo else "SparseCsr"
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend}{tensor.device.type.upper()}' backend. This could be because "
        "the operator doesn't exist for this backend: convert the tensor with to_dense()"
    )


def _layout_error(name: str, wanted: str, tensor: SparseTensor) -> RuntimeError:
    return RuntimeError(f"{name} expected {wanted} tensor layout but got {layout_name(tensor)}")


class SparseTensor(ComponentTensor):
    """Components in the engine; made by coo() and compressed(). Gradients are those of the values.

    Operators that PyTorch has for the layout are in calls.py; others raise NotImplementedError with the operator's name.

    Attributes:
        _coo: of sparse_coo, the indices, int64 [sparse_dim, nnz].
        _compressed, _plain: of the other layouts, the indices [*batch, n + 1] and [*batch, nnz], int64 or int32.
        _elements: values [nnz, *dense] or [*batch, nnz, (*block,) *dense].
        _coalesced: of sparse_coo, whether the indices are sorted and distinct.
        _dense_source: whether the values were selected from a strided tensor that requires grad, by to_sparse().
        _rows, _rows_version: the compressed row indices of a coalesced matrix, once computed, and the version of _coo then.
        _flipped: the coalesced matrix of which this one is the transpose, or None.
    """

    __torch_function__ = _C._disabled_torch_function_impl
    _layout: layout
    _coo: Tensor
    _compressed: Tensor
    _plain: Tensor
    _handlers = handlers
    _coalesced: bool
    _dense_source: bool
    _keeps_pattern: bool
    _rows: Tensor | None
    _rows_version: int
    _flipped: SparseTensor | None

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Runs custom operators, which take sparse tensors; refuses others."""
        if getattr(func, "kernels", None):
            return func.run(*func._schema.bind(args, kwargs or {}))
        found = next((a for a in args if isinstance(a, SparseTensor)), None)
        if found is None:
            raise NotImplementedError(f"[{func}] sparse tensors are not supported")
        raise not_implemented(str(func).removeprefix("aten.").removesuffix(".default"), found)

    @classmethod
    def _without_handler(cls, name: str, arguments: list, into: list | None) -> Any:
        flat = (v for a in (*arguments, *(into or ())) for v in (a if isinstance(a, (list, tuple)) else (a,)))
        raise not_implemented(name, next(v for v in flat if isinstance(v, SparseTensor)))

    # -- what it is

    @property
    def layout(self) -> layout:  # type: ignore[override]
        """The layout."""
        return self._layout

    @property
    def is_sparse(self) -> bool:  # type: ignore[override]
        """Whether the layout is sparse_coo."""
        return self._layout == sparse_coo

    @property
    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        """Whether the layout is sparse_csr."""
        return self._layout == sparse_csr

    def sparse_dim(self) -> int:
        """The number of sparse dimensions."""
        return self._coo.shape[0] if self.is_sparse else 2

    def dense_dim(self) -> int:
        """The number of dense dimensions, which are the last ones."""
        if self.is_sparse:
            return self._elements.dim() - 1
        return self._elements.dim() - self._plain.dim() - (2 if self._layout in BLOCKS else 0)

    _dimI, _dimV = sparse_dim, dense_dim

    def _nnz(self) -> int:
        """The number of stored elements (blocks, of a block layout); of each batch. Waits if the engine computed it."""
        return self._coo.shape[1] if self.is_sparse else self._plain.shape[-1]

    def is_coalesced(self) -> bool:
        """Whether the indices are known to be sorted and distinct."""
        self._only_coo("is_coalesced")
        return self._coalesced or self._nnz() < 2

    def coalesce(self) -> SparseTensor:
        """The tensor with sorted, distinct indices; values of equal indices are added."""
        self._only_coo("coalesce")
        return hooks["coalesce"](self)

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Sets the flag; the indices are not checked."""
        self._only_coo("_coalesced_")
        self._coalesced = bool(coalesced)
        return self

    def indices(self) -> Tensor:
        """The indices of a coalesced tensor, int64 [sparse_dim, nnz]."""
        self._only_coo("indices")
        if not self.is_coalesced():
            raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
        return _C.ops.alias(self._coo)  # whose writes count as those of _coo

    def values(self) -> Tensor:
        """The values; of sparse_coo, of a coalesced tensor."""
        if self.is_sparse and not self.is_coalesced():
            raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
        return _C.ops.alias(self._elements) if self._elements.requires_grad and _C.is_grad_enabled() else self._elements.detach()

    def _indices(self) -> Tensor:
        """The indices as they are stored."""
        if not self.is_sparse:
            raise not_implemented("_indices", self)
        return _C.ops.alias(self._coo)

    def _values(self) -> Tensor:
        """The values as they are stored, without history."""
        if not self.is_sparse:
            raise not_implemented("_values", self)
        return self._elements.detach()

    def crow_indices(self) -> Tensor:
        """The compressed row indices of sparse_csr and sparse_bsr."""
        return self._index("crow_indices", "row", self._layout in ROWS, True)

    def col_indices(self) -> Tensor:
        """The column indices of sparse_csr and sparse_bsr."""
        return self._index("col_indices", "row", self._layout in ROWS, False)

    def ccol_indices(self) -> Tensor:
        """The compressed column indices of sparse_csc and sparse_bsc."""
        return self._index("ccol_indices", "column", self._layout not in ROWS, True)

    def row_indices(self) -> Tensor:
        """The row indices of sparse_csc and sparse_bsc."""
        return self._index("row_indices", "column", self._layout not in ROWS, False)

    def _index(self, name: str, kind: str, has: bool, compressed: bool) -> Tensor:
        if self.is_sparse or not has:
            raise _layout_error(name, f"sparse {kind} compressed", self)
        return (self._compressed if compressed else self._plain).detach()

    def _only_coo(self, name: str) -> None:
        if not self.is_sparse:
            raise _layout_error(name, "sparse coordinate", self)

    # -- gradients: those of the values

    def _with_gradient(self, gradient: Tensor) -> SparseTensor:
        """The gradient has the same layout and indices (distinct ones, if the tensor is not coalesced)."""
        return gradient_of(self, gradient)

    def _elements_of_gradient(self, gradient: Any) -> Any:
        if gradient.shape != self.shape:
            raise RuntimeError(f"assigned grad has data of a different size, got {list(gradient.shape)} and {list(self.shape)}")
        return hooks["aligned"](self, gradient)

    @classmethod
    def _elements_of_gradients(cls, roots: list, gradients: list) -> list:
        """The gradients at the roots' indices."""
        given = []
        for root, gradient in zip(roots, gradients, strict=True):
            if gradient is None or not isinstance(root, SparseTensor):
                if gradient is None and root.numel() != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                given.append(hooks["to_dense"](gradient, None, None) if isinstance(gradient, SparseTensor) else gradient)
            else:
                given.append(hooks["aligned"](root, gradient))
        return given

    def detach_(self) -> SparseTensor:
        """Detaches the tensor from its graph, in place."""
        self._elements = self._elements.detach()
        self._dense_source = False
        return self

    @property
    def data(self) -> SparseTensor:  # type: ignore[override]
        """The tensor without gradient history."""
        return self.detach()

    @data.setter
    def data(self, value: SparseTensor) -> None:
        if not isinstance(value, SparseTensor):
            raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type.")
        hooks["replace_leaf"](self, value, self.requires_grad)

    # -- conversions

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """A strided tensor with the values; its gradient is masked with the indices."""
        return hooks["to_dense"](self, dtype, masked_grad)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Converts the values to a dtype, or copies the components to a device."""
        return hooks["to"](self, *args, **kwargs)

    def cpu(self, memory_format: Any = None) -> SparseTensor:
        """Copies to the engine's CPU."""
        return self.to("cpu", memory_format=memory_format)

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> SparseTensor:
        """Copies to a GPU of the engine."""
        return self.to(_C.device("cuda" if device is None else device), non_blocking=non_blocking, memory_format=memory_format)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(f"Cannot assign to a sparse tensor: got the index {index!r} and a value of type {type(value).__name__}")

    @staticmethod
    def laid_out(name: str, result: SparseTensor, memory_format: Any) -> SparseTensor:
        """Refuses a memory format, except for an empty_like() or zeros_like() of a compressed layout, which PyTorch accepts."""
        if name == "clone":
            raise RuntimeError(f"unsupported memory format option {memory_format}")
        if result.is_sparse or (name == "empty_like" and memory_format != "torch.contiguous_format"):
            raise RuntimeError("memory format option is only supported by strided tensors")
        return result

    def fill_(self, value: Any) -> Tensor:
        """Sets the specified values of a compressed layout. sparse_coo has only zero_()."""
        if self.is_sparse:
            raise not_implemented("fill_", self)
        return Tensor.fill_(self, value)

    def type_as(self, other: Tensor) -> SparseTensor:
        """The tensor with another one's dtype and device. Raises RuntimeError if the layouts differ, as PyTorch does."""
        if self.layout != other.layout:
            names = layout_name(self), layout_name(other)
            raise RuntimeError(
                "to(options) doesn't support converting to a different layout, but got self.layout being {} and options.layout set as "
                "{}".format(*names)
            )
        return self.to(other)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """PyTorch's name of the type; or a conversion to a dtype, also by the name of a type of another layout."""
        if isinstance(dtype, str):
            return self.to(dtype=Tensor.type(self._elements, dtype.replace("sparse.", "")).dtype, non_blocking=non_blocking)
        if dtype is not None:
            return self.to(dtype=dtype, non_blocking=non_blocking)
        if not self.is_sparse:
            raise RuntimeError(f"Unimplemented backend SparseCsr{self.device.type.upper()}")
        name = Tensor.type(self._elements).removeprefix("torch.")
        return f"torch.cuda.sparse.{name.removeprefix('cuda.')}" if self.device.type == "cuda" else f"torch.sparse.{name}"

    def item(self) -> Any:
        """The number of a tensor with one element. Waits for the engine."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.to_dense().item()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def tolist(self) -> Any:
        """Raises RuntimeError, as PyTorch does: use to_dense()."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    data_ptr = const_data_ptr = tolist  # type: ignore[assignment]

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """Raises RuntimeError, as PyTorch does: the components have sizes in bytes."""
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the nbytes of the indices and "
            "values.  If you want the size of the  equivalent dense tensor, multiply numel() by element_size()"
        )

    def untyped_storage(self) -> Any:
        """Raises NotImplementedError, as PyTorch does: the components have storages."""
        raise NotImplementedError("Cannot access storage of SparseTensorImpl")

    storage = untyped_storage

    def numpy(self, *, force: bool = False) -> Any:
        """Raises TypeError, as PyTorch does: use to_dense()."""
        raise TypeError(
            f"can't convert {layout_name(self)} layout tensor to numpy. Use Tensor.to_dense() first."
            + (" force=True does not change this." if force else "")
        )

    def stride(self, dim: int | None = None) -> Any:
        """Zeros, for sparse_coo. Raises RuntimeError for other layouts, as PyTorch does."""
        if not self.is_sparse:
            raise RuntimeError("Sparse CSR tensors do not have strides")
        return (0,) * self.dim() if dim is None else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False, for sparse_coo. Raises RuntimeError for other layouts, as PyTorch does."""
        if not self.is_sparse:
            raise RuntimeError("Sparse CSR tensors do not have is_contiguous")
        if memory_format not in (None, "torch.contiguous_format"):
            raise RuntimeError(f"[is_contiguous] expected torch.contiguous_format for a sparse tensor, got {memory_format}")
        return False

    def conj(self) -> SparseTensor:
        """The complex conjugates."""
        return like(self, self._elements.conj().resolve_conj()) if self.is_complex() else self

    @property
    def real(self) -> SparseTensor:  # type: ignore[override]
        """The real parts."""
        return like(self, self._elements.real, False) if self.is_complex() else self

    @property
    def imag(self) -> SparseTensor:  # type: ignore[override]
        """The imaginary parts."""
        if not self.is_complex():
            raise TypeError("imag is not implemented for tensors with non-complex dtypes.")
        return like(self, self._elements.imag, False)

    @property
    def H(self) -> SparseTensor:  # type: ignore[override]  # noqa: N802 - PyTorch's name
        """The conjugate transpose."""
        return self.t().conj()

    @property
    def mT(self) -> SparseTensor:  # type: ignore[override]  # noqa: N802 - PyTorch's name
        """The transpose."""
        return self.transpose(-2, -1)

    @property
    def mH(self) -> SparseTensor:  # type: ignore[override]  # noqa: N802 - PyTorch's name
        """The conjugate transpose."""
        return self.mT.conj()

    def narrow_copy(self, dim: int, start: int, length: int) -> SparseTensor:
        """A range of a dimension."""
        return hooks["narrow_copy"](self, dim, start, length)

    def transpose_(self, dim0: int, dim1: int) -> SparseTensor:
        """Exchanges two dimensions, in place."""
        return hooks["become"](self, self.transpose(dim0, dim1))

    swapaxes_ = swapdims_ = transpose_

    def t_(self) -> SparseTensor:
        """Exchanges rows and columns, in place."""
        return hooks["become"](self, self.t())

    def resize_(self, *sizes: Any, memory_format: Any = None) -> Any:
        """Raises NotImplementedError: use sparse_resize_()."""
        raise not_implemented("resize_", self)

    # -- text

    def __reduce_ex__(self, _protocol: Any) -> tuple:
        """Pickles the components' bytes. Waits for the engine."""
        return hooks["reduce"](self)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        """Returns PyTorch's notation. Waits for the values, unless ``tensor_contents`` replaces them."""
        return hooks["repr"](self, tensor_contents)

    __str__ = __repr__


SparseTensor.__module__ = "teletensor"


def coo(indices: Tensor, values: Tensor, size: Any, coalesced: bool = False, dense_source: bool = False) -> SparseTensor:
    """The sparse_coo tensor with these components, which it shares."""
    made = _C._make_wrapper(SparseTensor, tuple(size), None, 0, values.dtype, values.device)
    made._layout, made._coo, made._elements, made._coalesced = sparse_coo, indices, values, coalesced
    made._rows, made._rows_version, made._flipped = None, 0, None
    made._dense_source, made._keeps_pattern = dense_source, False
    return made


def compressed(kind: layout, indices: Tensor, plain: Tensor, values: Tensor, size: Any, dense_source: bool = False) -> SparseTensor:
    """The tensor of a compressed layout with these components, which it shares."""
    made = _C._make_wrapper(SparseTensor, tuple(size), None, 0, values.dtype, values.device)
    made._layout, made._compressed, made._plain, made._elements = kind, indices, plain, values
    made._dense_source, made._keeps_pattern = dense_source, False
    return made


def like(tensor: SparseTensor, values: Tensor, coalesced: bool | None = None) -> SparseTensor:
    """A tensor with the indices of another one, and other values of the same sizes."""
    if not tensor.is_sparse:
        return compressed(tensor._layout, tensor._compressed, tensor._plain, values, tensor.shape, tensor._dense_source)
    made = coo(tensor._coo, values, tensor.shape, tensor._coalesced if coalesced is None else coalesced, tensor._dense_source)
    made._rows, made._rows_version = tensor._rows, tensor._rows_version
    return made


def gradient_of(tensor: SparseTensor, gradient: Tensor) -> SparseTensor:
    """The gradient of a sparse tensor, from that of its values.

    Values of equal indices have equal gradients, because results depend on their sum: the gradient has each index once.
    """
    if not tensor.is_sparse or tensor._coalesced or tensor._nnz() < 2 or tensor.sparse_dim() == 0:
        made = like(tensor, gradient)
        made._keeps_pattern = True
        return made
    summed = hooks["coalesce"](coo(tensor._coo, gradient, tensor.shape))
    ones = _C.torch.ones(tensor._coo.shape[1], dtype=gradient.dtype, device=gradient.device)
    counts = hooks["coalesce"](coo(tensor._coo, ones, tensor.shape[: tensor.sparse_dim()]))._elements
    return like(summed, summed._elements / counts.reshape(-1, *(1,) * tensor.dense_dim()))
