"""PyTorch's legacy tensor types such as ``FloatTensor``, each of which combines a dtype and a device type."""

from __future__ import annotations

from . import _C
from ._C import Tensor
from ._layouts import strided
from ._storage import is_storage, tensor_of

# Prefixes of the type names. Complex, uint16 to uint64 and 8-bit floating-point tensors have type names but no classes.
_NAMES = {
    _C.float32: "Float", _C.float64: "Double", _C.float16: "Half", _C.bfloat16: "BFloat16", _C.int64: "Long",
    _C.int32: "Int", _C.int16: "Short", _C.int8: "Char", _C.uint8: "Byte", _C.bool: "Bool",
    _C.complex64: "ComplexFloat", _C.complex128: "ComplexDouble", _C.uint16: "UInt16", _C.uint32: "UInt32",
    _C.uint64: "UInt64", _C.float8_e4m3fn: "Float8_e4m3fn", _C.float8_e5m2: "Float8_e5m2",
}  # fmt: skip
_MODULES = {"cpu": "torch", "cuda": "torch.cuda"}
_TYPED = list(_NAMES)[:10]
# Types of Python that PyTorch accepts as dtypes.
PYTHON_DTYPES = {bool: _C.bool, int: _C.int64, float: _C.float64, complex: _C.complex128}


def check_legacy_device(kind: str, device) -> None:
    """Checks that a device of a legacy constructor, None by default, is of the type that it creates tensors on."""
    if device is not None and (given := _C.placed(device).type) != kind:
        raise RuntimeError(f"legacy constructor expects device type: {kind} but device type: {given} was passed")


def shared(tensor: Tensor, dtype: _C.dtype, kind: str) -> Tensor:
    """The result of a legacy constructor for a tensor, with which it shares the memory, as in PyTorch.

    Raises:
        TypeError: the tensor's dtype, device type or layout is another one.
    """
    if tensor.dtype is not dtype or tensor.device.type != kind or tensor.layout != strided:
        got = f"dtype={tensor.dtype}, device={tensor.device.type}, layout={tensor.layout}"
        raise TypeError(f"expected a tensor of dtype={dtype}, device={kind}, layout={strided} (got {got})")
    return tensor.detach()


class TensorType(type):
    """Calling a tensor type creates a tensor; isinstance checks its dtype and device type."""

    dtype: _C.dtype
    kind: str

    def __call__(cls, *args, device=None):
        check_legacy_device(cls.kind, device)
        target = device or cls.kind
        if len(args) == 1 and isinstance(args[0], _C.Size):
            args = args[0]
        elif len(args) == 1 and is_storage(args[0]):
            return tensor_of(args[0], cls.dtype)
        elif len(args) == 1 and isinstance(args[0], Tensor):
            if device is not None:
                raise RuntimeError(
                    "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  "
                    "Use torch.tensor(...) or torch.as_tensor(...) instead."
                )
            return shared(args[0], cls.dtype, cls.kind)
        elif len(args) > 1 and not all(isinstance(a, int) for a in args):
            raise TypeError(f"new(): expected sizes as ints, or data, got {', '.join(type(a).__name__ for a in args)}")
        elif args and not isinstance(args[0], int):
            try:
                return _C.tensor(args[0], dtype=cls.dtype, device=target)
            except (TypeError, ValueError) as error:
                from . import _data_errors

                raise _data_errors.replaced(args[0], False, error) from error.__cause__
        return _C.torch.empty(args or (0,), dtype=cls.dtype, device=target)

    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == cls.kind


def tensor_types(kind: str) -> dict[str, type]:
    """Creates the tensor types of a device type and returns them by name: ``FloatTensor``, ..."""
    module = _MODULES[kind].replace("torch", "teletensor")
    made = {}
    for dtype in _TYPED:
        doc = f"Creates {dtype} tensors on {kind!r}."
        name = f"{_NAMES[dtype]}Tensor"
        made[name] = TensorType(name, (), {"dtype": dtype, "kind": kind, "__doc__": doc, "__module__": module})
    return made


def type_name(tensor: Tensor) -> str:
    """The tensor's legacy type name, such as ``"torch.cuda.FloatTensor"``."""
    kind = tensor.device.type
    module = f"torch.{kind}" if kind in _C.plugin_types() else _MODULES.get(kind, "torch")
    return f"{module}.{_NAMES[tensor.dtype]}Tensor"


def dtype_and_kind(name: str) -> tuple[_C.dtype, str]:
    """Parses a legacy type name. Raises ValueError if it is invalid."""
    for kind, module in _MODULES.items():
        for dtype, beginning in _NAMES.items():
            if name == f"{module}.{beginning}Tensor":
                return dtype, kind
    raise ValueError(f"invalid type: '{name}'")
