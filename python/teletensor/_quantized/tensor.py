"""QuantizedTensor: a tensor of torch.quint8, torch.qint8, torch.qint32, torch.quint4x2 or torch.quint2x4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._options import check_flags, check_memory_format
from .._quantized_names import QuantizedDType, qscheme
from .._tensor_str import _add_suffixes, _tensor_str
from .quantizer import Quantizer, aten_name

# Functions by the name of the engine's operator, set by calls.py: (arguments, into) -> result.
handlers: dict[str, Callable[[list, list | None], Any]] = {}


def not_implemented(name: str) -> NotImplementedError:
    """PyTorch's error for an operator without a kernel for quantized tensors."""
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'QuantizedCPU' backend. This could be because the operator "
        "doesn't exist for this backend: dequantize the tensor first"
    )


class QuantizedTensor(Tensor):
    """Integers in the engine (``int_repr()``) and a Quantizer. Made by wrapped(); not differentiable.

    The engine has the integers and never waits. Operators that PyTorch has for quantized tensors are in calls.py; others
    raise NotImplementedError.
    """

    __torch_function__ = _C._disabled_torch_function_impl
    _has_own_layout = True
    _ints: Tensor
    _quantizer: Quantizer

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Runs operators of torch.ops.quantized, which take quantized tensors; refuses others."""
        if getattr(func, "kernels", None):
            return func.run(*func._schema.bind(args, kwargs or {}))
        raise not_implemented(str(func).removeprefix("aten.").removesuffix(".default"))

    @staticmethod
    def run_engine_call(name: str, arguments: list, into: list | None) -> Any:
        """Computes an operator of the engine of which an argument is quantized."""
        if name not in handlers or (into and any(isinstance(t, FewBitsTensor) for t in into)):
            raise not_implemented(name)
        return handlers[name](arguments, into)

    def rows(self, indices: Tensor) -> Tensor:
        """The integers of the rows of a matrix with these indices, which the engine checks."""
        return self._ints.index_select(0, indices)

    # -- what it is

    @property
    def dtype(self) -> QuantizedDType:  # type: ignore[override]
        """The quantized dtype."""
        return self._quantizer.dtype

    is_quantized = True

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self._ints.itemsize

    @property
    def data(self) -> QuantizedTensor:  # type: ignore[override]
        """The tensor itself: it has no gradient history."""
        return self

    def element_size(self) -> int:
        """The bytes of an element."""
        return self._ints.itemsize

    def is_floating_point(self) -> bool:
        """False."""
        return False

    def is_complex(self) -> bool:
        """False."""
        return False

    def is_signed(self) -> bool:
        """Raises RuntimeError, as PyTorch does."""
        return self.dtype.is_signed

    def int_repr(self) -> Tensor:
        """A copy of the integers: uint8, int8 or int32."""
        return self._ints.clone()

    def dequantize(self) -> Tensor:
        """The numbers, as float32."""
        return self._quantizer.dequantize(self._ints)

    def qscheme(self) -> qscheme:
        """torch.per_tensor_affine, per_channel_affine or per_channel_affine_float_qparams."""
        return self._quantizer.scheme

    def q_scale(self) -> float:
        """The scale of a tensor with one scale. Waits if the engine computed it."""
        self._check_scheme(channels=False)
        return self._quantizer.numbers()[0]

    def q_zero_point(self) -> int:
        """The zero point of a tensor with one scale. Waits if the engine computed it."""
        self._check_scheme(channels=False)
        return self._quantizer.numbers()[1]

    def q_per_channel_scales(self) -> Tensor:
        """The scales, float64 (float32 for per_channel_affine_float_qparams)."""
        self._check_scheme(channels=True)
        return self._quantizer.scale  # type: ignore[return-value]

    def q_per_channel_zero_points(self) -> Tensor:
        """The zero points, int64 (float32 for per_channel_affine_float_qparams)."""
        self._check_scheme(channels=True)
        return self._quantizer.zero_point  # type: ignore[return-value]

    def q_per_channel_axis(self) -> int:
        """The dimension with a scale per entry."""
        self._check_scheme(channels=True)
        return self._quantizer.axis  # type: ignore[return-value]

    def _check_scheme(self, channels: bool) -> None:
        if (self._quantizer.axis is not None) != channels:
            wanted = (
                "quantizer->qscheme() == kPerChannelAffine || quantizer->qscheme() == kPerChannelAffineFloatQParams"
                if channels
                else "quantizer->qscheme() == kPerTensorAffine"
            )
            raise RuntimeError(f"Expected {wanted} to be true, but got false: the tensor's scheme is {self.qscheme()}")

    # -- conversions

    def to(self, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, copy: bool = False,
           memory_format: Any = None) -> QuantizedTensor:  # fmt: skip
        """Copies to another device. Raises RuntimeError for another dtype, as PyTorch does: use dequantize()."""
        check_flags("to", non_blocking=non_blocking, copy=copy)
        check_memory_format("to", memory_format)
        for arg in args:
            if isinstance(arg, (_C.dtype, QuantizedDType)):
                dtype = arg
            elif isinstance(arg, Tensor):
                dtype, device = arg.dtype, arg.device
            elif isinstance(arg, (str, _C.device)) or (isinstance(arg, int) and not isinstance(arg, bool)):
                device = arg
        if dtype is not None and dtype is not self.dtype:
            if isinstance(dtype, QuantizedDType):
                raise NotImplementedError(f"[to] expected the tensor's dtype {self.dtype}, got {dtype}: quantize again")
            raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
        target = self.device if device is None else _C.placed(device)
        ints = self._ints.to(target, copy=copy, memory_format=memory_format)
        return self if ints is self._ints else wrapped(ints, self._quantizer.to(target))

    def contiguous(self, memory_format: Any = None) -> QuantizedTensor:
        """The tensor itself, or a copy, in a memory format. Raises RuntimeError for a scale per channel in another format."""
        if memory_format in (None, "torch.contiguous_format"):
            return super().contiguous()  # type: ignore[misc]
        check_memory_format("contiguous", memory_format)
        if self._quantizer.axis is not None:
            raise RuntimeError("Setting strides is possible only on uniformly quantized tensor")
        ints = self._ints.contiguous(memory_format=memory_format)
        return self if ints is self._ints else wrapped(ints, self._quantizer)

    def clone(self, *, memory_format: Any = None) -> QuantizedTensor:
        """A copy, in the given memory format."""
        copied = super().clone()  # type: ignore[misc]
        return copied if memory_format in (None, "torch.preserve_format") else copied.contiguous(memory_format)

    def cpu(self, memory_format: Any = None) -> QuantizedTensor:
        """Copies to the engine's CPU."""
        return self.to("cpu", memory_format=memory_format)

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> QuantizedTensor:
        """Copies to a GPU of the engine."""
        return self.to(_C.device("cuda" if device is None else device), non_blocking=non_blocking, memory_format=memory_format)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """PyTorch's name of the type; or, with the tensor's own dtype, the tensor."""
        if dtype is None:
            kind = "" if self.device.type == "cpu" else f"{self.device.type}."
            return f"torch.{kind}quantized.{aten_name(self.dtype)}Tensor"
        return self.to(dtype=dtype, non_blocking=non_blocking)

    def requires_grad_(self, requires_grad: bool = True) -> QuantizedTensor:
        """Raises RuntimeError if ``requires_grad`` is True: quantized tensors have no gradients."""
        if requires_grad:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        return self

    def data_ptr(self) -> Any:
        """data_ptr() of the integers."""
        return self._ints.data_ptr()

    def untyped_storage(self) -> Any:
        """The bytes of the integers."""
        return self._ints.untyped_storage()

    def item(self) -> float:
        """The number of a tensor with one element. Waits for the engine."""
        return self.dequantize().item()

    def tolist(self) -> Any:
        """Raises RuntimeError, as PyTorch does: use dequantize()."""
        raise RuntimeError("load_scalar: invalid type")

    def new_empty(self, *_size: Any, **_options: Any) -> Any:
        """Raises NotImplementedError: use torch.empty_quantized()."""
        raise not_implemented("new_empty")

    def new_zeros(self, *_size: Any, **_options: Any) -> Any:
        """Raises NotImplementedError, as PyTorch does."""
        raise not_implemented("zero_")

    def numpy(self, *, force: bool = False) -> Any:
        """Raises TypeError, as PyTorch does: use dequantize() or int_repr()."""
        raise TypeError(f"Got unsupported ScalarType {aten_name(self.dtype)}, also with force={force}")

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.dequantize())

    def __setitem__(self, index: Any, value: Any) -> None:
        """Quantizes numbers into the elements with an index."""
        number = value if isinstance(value, Tensor) else _C.tensor(value, dtype=_C.float32, device=self.device)
        super().__setitem__(index, number)

    # -- copies and text

    def __deepcopy__(self, memo: dict) -> QuantizedTensor:
        if id(self) not in memo:
            memo[id(self)] = wrapped(self._ints.clone(), self._quantizer)
        return memo[id(self)]

    def __reduce_ex__(self, _protocol: Any) -> tuple:
        """Pickles the integers' bytes and the quantizer. Waits for the engine."""
        q = self._quantizer
        parameters = (q.scale, q.zero_point) if q.axis is not None else q.numbers()
        return _unpickled, (self._ints, q.dtype, *parameters, q.axis)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        """Returns PyTorch's notation. Waits for the values, unless ``tensor_contents`` replaces them."""
        if tensor_contents is not None:
            body = tensor_contents
        elif self.device.type == "meta":
            body = "..."
        else:
            body = _tensor_str(self.dequantize(), len("tensor(")) if self.numel() else "[]"
        suffixes = [] if self.device.type == "cpu" else [f"device='{self.device}'"]
        suffixes += [f"size={tuple(self.shape)}", f"dtype={self.dtype}", f"quantization_scheme={self.qscheme()}"]
        if self._quantizer.axis is None:
            scale, point = self._quantizer.numbers() if self.device.type != "meta" else ("...", "...")
            suffixes += [f"scale={scale}", f"zero_point={point}"]
        else:
            q = self._quantizer
            suffixes += [f"scale={q.scale}", f"zero_point={q.zero_point}", f"axis={q.axis}"]
        return _add_suffixes("tensor(" + body, suffixes, len("tensor("), force_newline=False)

    __str__ = __repr__


QuantizedTensor.__module__ = "teletensor"


class FewBitsTensor(QuantizedTensor):
    """A tensor of integers of 4 or 2 bits, several per byte. It cannot be written to, and its views are copies."""

    _packed: Tensor  # uint8, one dimension

    @property
    def _ints(self) -> Tensor:  # type: ignore[override]
        """The integers, one per byte."""
        return unpacked(self._packed, self.dtype.per_byte)[: self.numel()].reshape(self.shape)

    def rows(self, indices: Tensor) -> Tensor:
        """The integers of rows, of which only the bytes are read if each row has bytes of its own."""
        per_byte, columns = self.dtype.per_byte, self.shape[1]
        if columns % per_byte:
            return super().rows(indices)
        table = self._packed.reshape(self.shape[0], columns // per_byte)
        return unpacked(table.index_select(0, indices), per_byte).reshape(-1, columns)

    def int_repr(self) -> Tensor:
        """The bytes with the integers, in one dimension, as in PyTorch."""
        return self._packed.clone()

    def data_ptr(self) -> Any:
        """data_ptr() of the bytes."""
        return self._packed.data_ptr()

    def untyped_storage(self) -> Any:
        """The bytes."""
        return self._packed.untyped_storage()


FewBitsTensor.__module__ = "teletensor"


def unpacked(packed: Tensor, per_byte: int) -> Tensor:
    """The integers of bytes in one dimension, those in the lowest bits of a byte first."""
    bits = 8 // per_byte
    return _C.torch.stack([(packed >> (i * bits)) & (2**bits - 1) for i in range(per_byte)], -1).reshape(-1)


def _packed(ints: Tensor, per_byte: int) -> Tensor:
    """The bytes of uint8 integers, in the order of the elements; the last one's unused bits are 0."""
    flat = ints.reshape(-1)
    missing = -flat.numel() % per_byte
    if missing:
        flat = _C.torch.cat([flat, _C.torch.zeros(missing, dtype=_C.uint8, device=flat.device)])
    columns, packed = flat.reshape(-1, per_byte), None
    for i in range(per_byte):
        part = columns[:, i] << (i * (8 // per_byte))
        packed = part if packed is None else packed | part
    return packed  # type: ignore[return-value]


def of_bytes(packed: Tensor, shape: tuple, quantizer: Quantizer) -> FewBitsTensor:
    """The tensor of 4 or 2 bits with these bytes, which it shares."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * max(size, 1))
    made = _C._make_wrapper(FewBitsTensor, shape, strides[: len(shape)] if shape else [], 0, _C.uint8, packed.device)
    made._packed, made._quantizer = packed, quantizer
    return made


def wrapped(ints: Tensor, quantizer: Quantizer) -> QuantizedTensor:
    """The quantized tensor with these integers, which it shares; those of 4 or 2 bits are copied."""
    if quantizer.dtype.per_byte > 1:
        return of_bytes(_packed(ints, quantizer.dtype.per_byte), tuple(ints.shape), quantizer)
    made = _C._make_wrapper(QuantizedTensor, ints.shape, ints.stride(), ints.storage_offset(), ints.dtype, ints.device)
    made._ints, made._quantizer = ints, quantizer
    return made


def _unpickled(ints: Tensor, dtype: QuantizedDType, scale: Any, zero_point: Any, axis: int | None) -> QuantizedTensor:
    return wrapped(ints, Quantizer(dtype, scale, zero_point, axis))
