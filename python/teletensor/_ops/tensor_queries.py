"""Methods and properties of tensors, and functions of the same names, that describe layouts, devices and graphs, and methods
that apply to other layouts only.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any, Callable

from .. import _C, storage
from .._C import Tensor
from .._layouts import by_layout, strided
from .._options import check_kind

_METHODS: dict[str, Any] = {}


def _method(function: Callable) -> Callable:
    _METHODS[function.__name__] = function
    return function


@_method
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element of a tensor is not zero. Waits for the engine."""
    return bool(input)


@_method
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same sizes."""
    check_kind("is_same_size", "other", other, Tensor)
    return input.is_same_size(other) if input.is_nested else input.shape == other.shape


@_method
def is_signed(input: Tensor) -> bool:
    """Whether the dtype can represent negative numbers."""
    return input.dtype.is_signed


@_method
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was created in inference mode, or is a view of such a tensor."""
    return input._is_inference


@_method
def is_distributed(input: Tensor) -> bool:
    """Returns False, as PyTorch does."""
    return False


def get_device(input: Tensor) -> int:
    """The index of a tensor's GPU, -1 for a tensor on a CPU."""
    return input.get_device()


def typename(obj: Any, /) -> str:
    """The full name of an object's type; of a class or function, its own full name."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") or hasattr(obj, "__name__") else type(obj)
    module = getattr(obj, "__module__", "") or "" if named is obj else named.__module__ or ""
    name = getattr(named, "__qualname__", None) or named.__name__
    module = "torch" if module == "teletensor" else module.replace("teletensor.", "torch.", 1)
    return name if module in ("", "builtins") else f"{module}.{name}"


def get_device_module(device: Any = None) -> ModuleType:
    """The module of a device type, such as torch.cuda; by default of the accelerator, else of the CPU."""
    from .. import cpu, cuda, mps, mtia, xpu
    from .._plugin_devices import accelerator_module, device_module

    if device is None:
        return accelerator_module() or cpu
    if isinstance(device, (str, _C.device)):
        name = _C.device(device).type
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    module = {"cpu": cpu, "cuda": cuda, "mps": mps, "mtia": mtia, "xpu": xpu}.get(name) or device_module(name)
    if module is None:
        raise RuntimeError(f"Device '{name}' does not have a corresponding module registered as 'torch.{name}'.")
    return module


@_method
def dim_order(self: Tensor, *, ambiguity_check: bool = False) -> tuple[int, ...]:
    """The dimensions from the one with the largest stride to the one with the smallest."""
    if ambiguity_check is not False:
        raise NotImplementedError("Tensor.dim_order: only ambiguity_check=False is implemented")
    if self.is_contiguous():
        return tuple(range(self.dim()))
    strides = self.stride()
    return tuple(sorted(range(self.dim()), key=lambda d: -strides[d]))


@_method
def hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    """functional.hardshrink."""
    return _C.functional.hardshrink(self, lambd)


@_method
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """The old name of reshape to the other tensor's sizes."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
    return self.resize(*tensor.shape)


@_method
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Returns what load_state_dict stores in place of this tensor: ``other`` if ``assign``, else this tensor with its values."""
    return other.detach() if assign else self.copy_(other).detach()


@_method
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable) -> Tensor:
    """Applies a Python function to each triple of elements, in place. Waits for the engine."""
    columns = (self.reshape(-1), x.expand_as(self).reshape(-1), y.expand_as(self).reshape(-1))
    values = [callable(*row) for row in zip(*(column.tolist() for column in columns))]
    return self.copy_(_C.tensor(values, dtype=self.dtype, device=self.device).reshape(self.shape))


@_method
def unsafe_split_with_sizes(self: Tensor, split_sizes, dim: int = 0):
    """split_with_sizes."""
    return self.split_with_sizes(split_sizes, dim)


@_method
def slice_inverse(self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """A view, with the sizes and strides of ``src``, of the storage that this tensor is a slice of."""
    index = [slice(None)] * src.dim()
    index[dim % src.dim()] = slice(start, end, step)
    offset = src[tuple(index)].storage_offset() - src.storage_offset()
    return self.as_strided(list(src.shape), list(src.stride()), self.storage_offset() - offset)


@_method
def storage_type(self: Tensor) -> type:
    """The legacy class of the tensor's storage, such as torch.FloatStorage."""
    name = self.type().rpartition(".")[2].removesuffix("Tensor") + "Storage"
    if not self.is_cuda:
        return getattr(storage, name)
    from ..cuda import _storages

    return getattr(_storages, name)


@_method
def reinforce(self: Tensor, reward: Any) -> None:
    """Raises RuntimeError, as PyTorch does: stochastic functions were removed."""
    raise RuntimeError("Tensor.reinforce was removed from PyTorch: use the score function of torch.distributions")


def _removed(name: str, replacement: str) -> Callable:
    def method(self: Tensor, *args: Any, **kwargs: Any):
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. Use `torch.linalg.{replacement}` instead of Tensor.{name}."
        )

    method.__name__, method.__doc__ = name, f"Raises RuntimeError, as PyTorch does: use torch.linalg.{replacement}."
    return method


for _name, _other in {"eig": "eig", "lstsq": "lstsq", "solve": "solve", "symeig": "eigh"}.items():
    _METHODS[_name] = _removed(_name, _other)


def _sparse() -> Any:
    from .._sparse import functions

    return functions


# -- methods of sparse and quantized tensors: a strided tensor of floats has the results or errors of PyTorch


@_method
@by_layout
def dense_dim(self: Tensor) -> int:
    """The number of dense dimensions: all."""
    return self.dim()


@_method
@by_layout
def sparse_dim(self: Tensor) -> int:
    """Returns 0."""
    return 0


@_method
@by_layout
def dequantize(self: Tensor) -> Tensor:
    """The values as float32."""
    return self.to(_C.float32)


def _only_of(name: str, layout: str) -> Callable:
    def method(self: Tensor):
        raise RuntimeError(f"{name} expected {layout} tensor layout but got Strided")

    method.__name__, method.__doc__ = name, f"Raises RuntimeError, as PyTorch does for tensors that are not {layout}."
    return by_layout(method)


def _only_quantized(name: str) -> Callable:
    def method(self: Tensor):
        found = f"expected a quantized tensor, got one of {self.dtype}"
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: {found}")

    method.__name__, method.__doc__ = name, "For quantized tensors; raises NotImplementedError for others."
    return by_layout(method)


for _name, _layout in {
    "coalesce": "sparse coordinate", "is_coalesced": "sparse coordinate", "indices": "sparse coordinate", "values": "sparse",
    "crow_indices": "sparse row compressed", "col_indices": "sparse row compressed",
    "ccol_indices": "sparse column compressed", "row_indices": "sparse column compressed",
}.items():  # fmt: skip
    _METHODS[_name] = _only_of(_name, _layout)
for _name in (
    "int_repr", "q_scale", "q_zero_point", "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points", "qscheme",
):  # fmt: skip
    _METHODS[_name] = _only_quantized(_name)


# -- conversions to sparse tensors, which are imported at their first use


@_method
def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout=None, blocksize=None, dense_dim: int | None = None):
    """The elements other than zero, as a sparse tensor: of layout sparse_coo by default."""
    return _sparse().to_sparse(self, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)


@_method
def to_sparse_coo(self: Tensor):
    """to_sparse() with the layout sparse_coo."""
    return _sparse().to_sparse(self)


@_method
def to_sparse_csr(self: Tensor, dense_dim: int | None = None):
    """to_sparse() with the layout sparse_csr."""
    return _sparse().to_sparse_csr(self, dense_dim)


@_method
def to_sparse_csc(self: Tensor, dense_dim: int | None = None):
    """to_sparse() with the layout sparse_csc."""
    return _sparse().to_sparse_csc(self, dense_dim)


@_method
def to_sparse_bsr(self: Tensor, blocksize, dense_dim: int | None = None):
    """to_sparse() with the layout sparse_bsr."""
    return _sparse().to_sparse_bsr(self, blocksize, dense_dim)


@_method
def to_sparse_bsc(self: Tensor, blocksize, dense_dim: int | None = None):
    """to_sparse() with the layout sparse_bsc."""
    return _sparse().to_sparse_bsc(self, blocksize, dense_dim)


@_method
def sparse_mask(self: Tensor, mask: Tensor):
    """The values at the indices of a sparse tensor."""
    return _sparse().sparse_mask(self, mask)


@_method
def sparse_resize_(self: Tensor, size, sparse_dim: int, dense_dim: int):
    """Changes the size of a sparse_coo tensor, which must not shrink if it has elements."""
    return _sparse().sparse_resize_(self, size, sparse_dim, dense_dim)


@_method
def sparse_resize_and_clear_(self: Tensor, size, sparse_dim: int, dense_dim: int):
    """Changes the size of a sparse_coo tensor and removes all elements."""
    return _sparse().sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)


@_method
def resize_as_sparse_(self: Tensor, the_template: Tensor):
    """Gives a sparse tensor the size of another one."""
    return _sparse().resize_as_sparse_(self, the_template)


@_method
def smm(self: Tensor, mat2: Tensor):
    """The product of a sparse_coo and a strided matrix, as sparse_coo."""
    return _sparse().smm(self, mat2)


@_method
def sspaddmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1):
    """beta self + alpha mat1 mat2, as sparse_coo."""
    return _sparse().sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)


@_method
def to_mkldnn(self: Tensor, dtype: Any = None) -> Tensor:
    """A copy of a tensor. It stays strided: the engine selects the layouts of its libraries itself, for all tensors on CPUs.

    Args:
        dtype: of the copy; None: the tensor's.

    Raises:
        RuntimeError: the tensor is not on a CPU, has no dimension, or is neither float32, bfloat16, float16, uint8 nor int8, or
            dtype converts from or to 8 bits, or from one type of 16 bits to the other.
        NotImplementedError: the tensor is sparse.
    """
    if self.layout is not strided:
        raise NotImplementedError(f"[to_mkldnn] expected a strided tensor, got one of layout {self.layout}")
    if self.device.type != "cpu":
        raise RuntimeError(f"[to_mkldnn] expected a tensor on the CPU, got one on {self.device}")
    wanted = self.dtype if dtype is None else dtype
    if not {self.dtype, wanted} <= {_C.float32, _C.bfloat16, _C.float16, _C.uint8, _C.int8}:
        raise RuntimeError(f"dense_to_mkldnn expects float, bfloat16, half, uint8, int8 tensor input, got {self.dtype} and dtype={wanted}")
    if dtype is not None and self.dtype in (_C.int8, _C.uint8) and wanted is not self.dtype:
        raise RuntimeError("For int8, uint8 cpu_tensor input, we should not change the data type.")
    if not self.dim() or {self.dtype, wanted} == {_C.bfloat16, _C.float16}:
        raise RuntimeError(
            f"[to_mkldnn] expected dimensions, and no conversion of bfloat16 and float16, got {tuple(self.shape)} of {self.dtype}"
        )
    return self.to(wanted, copy=True)


def to_padded_tensor(self: Tensor, padding: float, output_size: Any = None) -> Tensor:
    """Pads a nested tensor; those have a method of their own, and any other tensor is refused with PyTorch's NotImplementedError."""
    if self.is_nested:
        return type(self).to_padded_tensor(self, padding, output_size)
    raise NotImplementedError(
        f"[to_padded_tensor] expected a nested tensor to pad with {padding} to {output_size or 'the largest sizes'}, got one that "
        "is not nested"
    )


_METHODS["to_padded_tensor"] = to_padded_tensor


def _to_absent_device(name: str, error: type[Exception], message: str) -> Callable:
    def method(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None):
        raise error(message)

    method.__name__, method.__doc__ = name, f"Raises {error.__name__}, as there is no such device."
    method.__absent_device__ = name
    return method


_METHODS["xpu"] = _to_absent_device("xpu", AssertionError, "Torch not compiled with XPU enabled")
_METHODS["ipu"] = _to_absent_device("ipu", RuntimeError, "PyTorch is not linked with support for ipu devices")
_METHODS["mtia"] = _to_absent_device(
    "mtia", AssertionError,
    "Torch not compiled with MTIA enabled. Ensure you have `import mtia.host_runtime.torch_mtia.dynamic_library` in your python src "
    "file and include `//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!",
)  # fmt: skip


# -- properties


def _grad_dtype(self: Tensor):
    """The dtype of gradients: that of the tensor."""
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self.dtype


def _set_grad_dtype(self: Tensor, dtype: Any) -> None:
    if dtype is not self.dtype:
        raise NotImplementedError(f"Tensor.grad_dtype: gradients have the dtype of the tensor, {self.dtype}; got {dtype}")


def _volatile(self: Tensor) -> bool:
    """Returns False, with a warning: volatile was removed from PyTorch."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


for _name, _value in _METHODS.items():
    setattr(Tensor, _name, _value)
for _name in ("mps", "xpu", "mtia", "ipu", "xla", "vulkan", "maia", "mkldnn", "nested", "sparse_csr"):
    setattr(Tensor, f"is_{_name}", False)
Tensor.is_cpu = property(lambda self: self.device.type == "cpu", doc="Whether the tensor is on the engine's CPU.")
Tensor.is_meta = property(lambda self: self.device.type == "meta", doc="Whether the tensor has no values.")
Tensor.retains_grad = property(lambda self: not self.is_leaf and "_retains_grad" in self.__dict__, doc="Whether retain_grad() was called.")
Tensor.grad_dtype = property(_grad_dtype, _set_grad_dtype)
Tensor.volatile = property(_volatile)
Tensor.name = None
Tensor.layout = strided
