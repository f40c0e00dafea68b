"""Semi-structured sparsity: matrices of which two of every four elements of a row are zero, and their products."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor

__all__ = [
    "SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS", "to_sparse_semi_structured",
]  # fmt: skip
_DTYPES = (_C.float16, _C.bfloat16, _C.float32, _C.int8)


class SparseSemiStructuredTensor(Tensor):
    """A matrix [m, k] that stores two of every four elements of a row: values [m, k / 2] and their places, int16 [m, k / 16].

    ``mm``, ``matmul``, ``addmm`` and ``F.linear`` compute with the stored elements; other operators raise NotImplementedError.
    Made by to_sparse_semi_structured() and from_dense().
    """

    __torch_function__ = _C._disabled_torch_function_impl
    _values: Tensor
    _places: Tensor
    _transposed: bool
    BACKEND = "teletensor"
    _FORCE_CUTLASS = False
    _DTYPE_SHAPE_CONSTRAINTS = dict.fromkeys(_DTYPES, (1, 16))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Refuses operators that run_engine_call() does not compute."""
        raise NotImplementedError(
            f"`{cls.__name__}` matmul is implemented for mm, matmul, addmm and linear; got {func}: use to_dense()"
        )

    @staticmethod
    def run_engine_call(name: str, arguments: list, into: list | None) -> Any:
        """Computes an operator of the engine of which an argument is such a matrix."""
        if name not in _HANDLERS or into is not None:
            found = next(type(a).__name__ for a in arguments if isinstance(a, SparseSemiStructuredTensor))
            raise NotImplementedError(f"[{name}] is not implemented for {found}: use to_dense()")
        return _HANDLERS[name](*arguments)

    @classmethod
    def from_dense(cls, original_tensor: Tensor) -> SparseSemiStructuredTensor:
        """The matrix of a strided one. The two largest of every four elements of a row are stored, which are all of a 2:4 matrix."""
        _validate(original_tensor)
        values, places = _C.ops.sparse_semi_compress(original_tensor)
        return _wrapped(cls, values, places, tuple(original_tensor.shape), False)

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        """Whether gradients are computed for the values."""
        return self._values.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._values.requires_grad = value

    @property
    def grad_fn(self) -> Any:  # type: ignore[override]
        """The node of the graph that computed the values."""
        return self._values.grad_fn

    @property
    def packed(self) -> Tensor:
        """The values, [m, k / 2]."""
        return self._values

    @property
    def meta(self) -> Tensor:
        """The places of the values, int16 [m, k / 16]."""
        return self._places

    def values(self) -> Tensor:
        """The values, [m, k / 2]."""
        return self._values

    def indices(self) -> Tensor:
        """The places of the values, int16 [m, k / 16]."""
        return self._places

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """A strided matrix."""
        if masked_grad is False:
            raise NotImplementedError("[to_dense] masked_grad=False: the gradient has the stored elements")
        dense = _C.ops.sparse_semi_expand(self._values, self._places)
        dense = dense.mT if self._transposed else dense
        return dense if dtype is None else dense.to(dtype)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return f"{type(self).__name__}(shape={self.shape}{'' if tensor_contents is None else ', ' + tensor_contents})"

    __str__ = __repr__


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """PyTorch's class for CUTLASS; the same computation here."""

    BACKEND = "cutlass"


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """PyTorch's class for cuSPARSELt; the same computation here."""

    BACKEND = "cusparselt"


def _validate(tensor: Tensor) -> None:
    if not isinstance(tensor, Tensor) or _C._is_wrapper(tensor):
        raise RuntimeError(f"Error original_tensor must be a strided tensor, got {type(tensor).__name__}")
    if tensor.dim() != 2:
        raise RuntimeError(f"Error original_tensor.dim = {tensor.dim()} is not supported! Only 2d tensors are currently supported.")
    if not tensor.is_contiguous():
        raise RuntimeError("Error original_tensor is not contiguous!Only contiguous tensors are currently supported.")
    if tensor.dtype not in _DTYPES:
        raise RuntimeError(f"Error original_tensor.dtype {tensor.dtype} is not a supported dtype! dtype must be one of: {list(_DTYPES)}")
    if tensor.shape[0] == 0 or tensor.shape[1] == 0 or tensor.shape[1] % 16:
        raise RuntimeError(
            f"Error original_tensor.shape {tensor.shape} is not supported! Both dimensions must be larger or equal than and the second a "
            "multiple of (1, 16)"
        )


def _wrapped(cls: type, values: Tensor, places: Tensor, shape: tuple[int, int], transposed: bool) -> SparseSemiStructuredTensor:
    made = _C._make_wrapper(cls, shape[::-1] if transposed else shape, None, 0, values.dtype, values.device)
    made._values, made._places, made._transposed = values, places, transposed
    return made


def to_sparse_semi_structured(original_tensor: Tensor, transposed: bool = False) -> SparseSemiStructuredTensor:
    """The matrix with the two largest of every four elements of each row, which are all of a 2:4 matrix.

    Args:
        original_tensor: [m, k], contiguous, with k a multiple of 16; float16, bfloat16, float32 or int8.
        transposed: not supported, as in current versions of PyTorch.
    """
    if transposed:
        raise NotImplementedError("[to_sparse_semi_structured] transposed=True was removed: transpose the result with t()")
    return SparseSemiStructuredTensor.from_dense(original_tensor)


def _product(a: SparseSemiStructuredTensor, x: Tensor) -> Tensor:
    """a x, with a stored by rows."""
    if x.shape[0] != a.shape[1]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {x.shape[0]}x{x.shape[1]})")
    if x.dtype is not a.dtype:
        raise RuntimeError(f"expected a strided matrix of dtype {a.dtype}, got {x.dtype}")
    return _C.ops.sparse_semi_mm(a._values, a._places, x)


def _mm(a: Tensor, b: Tensor) -> Tensor:
    if a.dim() != 2 or b.dim() != 2:
        raise RuntimeError(f"[mm] expected matrices, got tensors of {a.dim()} and {b.dim()} dimensions")
    if isinstance(a, SparseSemiStructuredTensor) and isinstance(b, SparseSemiStructuredTensor):
        raise NotImplementedError("`SparseSemiStructuredTensor @ SparseSemiStructuredTensor` is not supported by the hardware")
    if isinstance(a, SparseSemiStructuredTensor):
        if a._transposed:
            raise NotImplementedError("`SparseSemiStructuredTensor.t() @ Tensor` is not supported by the hardware")
        return _product(a, b)
    if not b._transposed:
        raise NotImplementedError("`Tensor @ SparseSemiStructuredTensor` is not supported by the hardware")
    return _product(_t(b), a.mT).mT


def _addmm(input: Tensor, a: Tensor, b: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    product = _mm(a, b)
    return product * alpha + input * beta if beta != 0 else product * alpha


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if not isinstance(weight, SparseSemiStructuredTensor) or weight._transposed:
        raise NotImplementedError("[linear] expected the weight to be a SparseSemiStructuredTensor stored by rows")
    rows = x.reshape(-1, x.shape[-1])
    product = _product(weight, rows.mT).mT.reshape(*x.shape[:-1], weight.shape[0])
    return product if bias is None else product + bias


def _t(a: SparseSemiStructuredTensor) -> SparseSemiStructuredTensor:
    shape = (a.shape[1], a.shape[0]) if a._transposed else (a.shape[0], a.shape[1])
    return _wrapped(type(a), a._values, a._places, shape, not a._transposed)


def _same(change: Any):
    def handle(a: SparseSemiStructuredTensor, *rest: Any) -> SparseSemiStructuredTensor:
        shape = (a.shape[1], a.shape[0]) if a._transposed else (a.shape[0], a.shape[1])
        return _wrapped(type(a), *change(a._values, a._places, *rest), shape, a._transposed)

    return handle


_HANDLERS = {
    "mm": _mm, "matmul": _mm, "addmm": _addmm, "linear": _linear, "t": _t, "detach": _same(lambda v, p: (v.detach(), p)),
    "alias": _same(lambda v, p: (v, p)), "clone": _same(lambda v, p: (v.clone(), p.clone())),
    "to_device": _same(lambda v, p, device: (v.to(device), p.to(device))), "to_dtype": _same(lambda v, p, dtype: (v.to(dtype), p)),
    "transpose": lambda a, first, second: _t(a) if first % 2 != second % 2 else a,
}  # fmt: skip
