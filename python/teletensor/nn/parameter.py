"""Parameter and Buffer: tensors that modules register."""

from __future__ import annotations

from .. import _C, _tensor_str
from .._C import Tensor

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy"]


class _ParameterType(type(Tensor)):
    """Metaclass of Parameter: isinstance() accepts DTensors and tensors of other subclasses that are parameters."""

    def __instancecheck__(cls, instance) -> bool:
        if super().__instancecheck__(instance):
            return True
        return isinstance(instance, Tensor) and instance.__dict__.get("_parameter_type") is cls


def _keeps_class(data) -> bool:
    """Whether a parameter of the tensor is an object of the tensor's class: a DTensor, or a user's subclass of Tensor."""
    kind = type(data)
    overrides = kind is not Tensor and kind.__torch_function__ is not _C._disabled_torch_function_impl
    return overrides or _C._handles_dispatch(data)


class Parameter(Tensor, metaclass=_ParameterType):
    """A leaf tensor that requires grad. Assigning a Parameter to a Module's attribute registers it.

    A Parameter of a DTensor is a DTensor, and an instance of both classes.
    """

    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        data = _C.torch.empty(0) if data is None else data
        if _keeps_class(data):
            self = data.detach()
            if type(self) is not type(data):
                raise RuntimeError(
                    f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
                    f"instance of the same type, but return type {type(self).__name__} was found instead. To use the type as a "
                    "Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation."
                )
            self._parameter_type = cls
        else:
            self = Tensor.__new__(cls, data.detach())
        self.requires_grad = requires_grad
        return self

    def __init__(self, *args, **kwargs):
        pass

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return "Parameter containing:\n" + super().__repr__(tensor_contents=tensor_contents)

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]


_C._set_parameter_type(Parameter)


_tensor_str.other_reprs.add(Parameter.__repr__)


class Buffer(Tensor, metaclass=_ParameterType):
    """A tensor that a module saves with its state but does not train."""

    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        data = _C.torch.empty(0) if data is None else data
        if _keeps_class(data):
            self = data.detach()
            self._parameter_type = cls
        else:
            self = Tensor.__new__(cls, data.detach())
        self.persistent = persistent
        return self

    def __init__(self, *args, **kwargs):
        pass


_ALLOWED = {
    "size", "copy_", "is_complex", "is_floating_point", "half", "float", "double", "char", "short", "int", "long", "cuda", "cpu",
    "to", "get_device",
}  # fmt: skip
_OPERATORS = (
    "add radd iadd sub rsub isub mul rmul imul matmul rmatmul truediv rtruediv itruediv floordiv rfloordiv mod pow rpow neg pos "
    "invert and or xor lt le gt ge getitem setitem len iter bool float int index contains"
).split()


def _use_of(what: object, cls: type) -> ValueError:
    return ValueError(
        f"Attempted to use an uninitialized parameter in {what}. This error happens when you are using a `LazyModule` or "
        f"explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` with a dummy "
        "batch to initialize the parameters before calling torch functions"
    )


def _refused(name: str):
    def refuse(self, *args, **kwargs):
        raise _use_of(f"Tensor.{name}", type(self))

    return refuse


def _cast(name: str):
    def cast(self, *args, **kwargs):
        moved = getattr(Tensor, name)(self.data, *args, **kwargs)
        return self if moved.dtype is self.dtype and moved.device == self.device else self._like(moved.device, moved.dtype)

    return cast


_CASTS = ("half", "float", "double", "bfloat16", "cuda", "cpu", "to")
_METHODS = {name for name, value in vars(Tensor).items() if not name.startswith("_") and callable(value)} - _ALLOWED
_Refusals = type("_Refusals", (), {
    **{name: _refused(name) for name in (*_METHODS, *(f"__{operator}__" for operator in _OPERATORS))},
    **{name: _cast(name) for name in _CASTS},
})  # fmt: skip


class UninitializedTensorMixin(_Refusals):
    """The common base of parameters and buffers of unknown shape. materialize() allocates them and changes their class.

    Functions, and methods other than casts and copies between devices, raise ValueError.
    """

    _allowed_methods = _ALLOWED
    cls_to_become: type

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = func.__name__
        if name not in ("__get__", "__set__", "__delete__") and getattr(Tensor, name, None) != func:
            raise _use_of(func, cls)  # methods are rejected by the class itself
        return _C._disabled_torch_function_impl(func, types, args, kwargs)

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Allocates the tensor with a shape and makes it a plain parameter or buffer. The values are uninitialised."""
        device = self.device if device is None else device
        self.data = _C.torch.empty(shape, device=device, dtype=self.dtype if dtype is None else dtype)
        self.__class__ = self.cls_to_become

    @property
    def data(self):
        """An empty tensor of the parameter's dtype and device."""
        return Tensor.detach(self)

    @data.setter
    def data(self, value) -> None:
        Tensor.data.__set__(self, Tensor.detach(value))

    @property
    def shape(self):
        """Raises RuntimeError: the shape is unknown."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when "
            "trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters "
            "before accessing their attributes."
        )

    def share_memory_(self):
        """Raises RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`."
        )

    def _like(self, device, dtype):
        return type(self)(self.requires_grad, device, dtype)

    def __deepcopy__(self, memo: dict):
        if id(self) not in memo:
            memo[id(self)] = self._like(self.device, self.dtype)
        return memo[id(self)]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto):
        return (type(self), (self.requires_grad,))


def is_lazy(param) -> bool:
    """Whether a parameter or buffer is uninitialised."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; the parameter of lazy modules."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device=None, dtype=None):
        self = Tensor.__new__(cls, _C.torch.empty(0, device=device, dtype=dtype))
        self.requires_grad = requires_grad
        return self


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet; the buffer of lazy modules."""

    cls_to_become = Buffer

    def __new__(cls, requires_grad: bool = False, device=None, dtype=None, persistent: bool = True):
        self = Tensor.__new__(cls, _C.torch.empty(0, device=device, dtype=dtype))
        self.requires_grad = requires_grad
        self.persistent = persistent
        return self

    def _like(self, device, dtype):
        return type(self)(self.requires_grad, device, dtype, self.persistent)
