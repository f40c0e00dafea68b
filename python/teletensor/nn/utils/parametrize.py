"""Parameters as functions of other parameters; see torch.nn.utils.parametrize."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import contextmanager

from ..._C import Tensor
from ..._grad_mode import no_grad
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip

_cache: dict | None = None


@contextmanager
def cached():
    """Within this context each parametrized tensor is computed only once."""
    global _cache
    outer, _cache = _cache, {} if _cache is None else _cache
    try:
        yield
    finally:
        _cache = outer


def _set(target: Tensor, value: Tensor) -> None:
    """Replaces a tensor's values; the size may change."""
    if target is not value:
        target.data = value.detach()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order to `original`, or to `original0`, `original1`, ...

    The tensor itself becomes `original`, so that an optimizer which holds it trains it. Several originals are new
    parameters, returned by the right_inverse of the first parametrization.

    Args:
        unsafe: skips the check that the parametrizations keep the tensor's dtype and shape.
    """

    def __init__(self, modules, original: Tensor, unsafe: bool = False):
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype, value = original.shape, original.dtype, original
        with no_grad():
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        pass
        if not isinstance(value, (Tensor, Sequence)):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(value).__name__}"
            )
        self.is_tensor = isinstance(value, Tensor)
        self.ntensors = 1 if self.is_tensor else len(value)
        if self.is_tensor:
            self._register_one(original, value)
        else:
            self._register_several(original, value)
        if not unsafe:
            _check_same_dtype_and_shape(dtype, shape, self())

    def _register_one(self, original: Tensor, value: Tensor) -> None:
        for what, before, after in (("dtype", original.dtype, value.dtype), ("device", original.device, value.device)):
            if before != after:
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {what}.\noriginal.{what}: {before}\n"
                    f"right_inverse(original).{what}: {after}"
                )
        _set(original, value)
        _register(self, "original", original)

    def _register_several(self, original: Tensor, values: Sequence) -> None:
        for i, value in enumerate(values):
            if not isinstance(value, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {i} of the sequence with type {type(value).__name__}."
                )
            if isinstance(original, Parameter):
                value = Parameter(value, original.requires_grad)
            _register(self, f"original{i}", value.requires_grad_(original.requires_grad))

    def _originals(self) -> list[Tensor]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self):
        first, *rest = self
        value = first(*self._originals())
        for module in rest:
            value = module(value)
        return value

    @no_grad
    def right_inverse(self, value) -> None:
        """Stores the originals from which `value` is computed. Raises RuntimeError if a parametrization has no inverse."""
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
            value = module.right_inverse(value)
        if self.is_tensor and not isinstance(value, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if not self.is_tensor and not isinstance(value, Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
        if not self.is_tensor and len(value) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. "
                f"Got a sequence of length {len(value)}."
            )
        for i, (original, part) in enumerate(zip(self._originals(), [value] if self.is_tensor else value)):
            if part.dtype is not original.dtype:
                what = "The tensor" if self.is_tensor else f"Tensor {i}"
                name = "`original`" if self.is_tensor else f"`original{i}`"
                raise ValueError(
                    f"{what} returned by `right_inverse` has dtype {part.dtype} while {name} has dtype {original.dtype}"
                )
            _set(original, part)


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _refuse_pickling(module: Module) -> dict:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _deep_copy(module: Module, memo: dict) -> Module:
    """A deep copy with a separate class, so that its parametrizations can be removed separately."""
    if id(module) in memo:
        return memo[id(module)]
    replica = type(module).__new__(type(module))
    memo[id(module)] = replica
    replica.__dict__ = copy.deepcopy(module.__dict__, memo)
    own = {name: value for name, value in vars(type(module)).items() if name not in ("__dict__", "__weakref__")}
    replica.__class__ = type(type(module).__name__, type(module).__bases__, own)
    return replica


def _make_parametrizable(module: Module, name: str) -> None:
    """Changes the module's class to a new subclass, with a property that replaces the tensor."""
    if not getattr(type(module), "_is_parametrized", False):
        base = type(module)
        members = {"_is_parametrized": True, "__module__": base.__module__, "__getstate__": _refuse_pickling}
        if not hasattr(base, "__deepcopy__"):
            members["__deepcopy__"] = _deep_copy
        module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)
        module.parametrizations = ModuleDict()

    def get(self):
        if _cache is None:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def set(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, set))


def _check_same_dtype_and_shape(dtype, shape, made) -> None:
    if not isinstance(made, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
    for what, before, after in (("dtype", dtype, made.dtype), ("shape", shape, made.shape)):
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is enabled.\n"
                f"unparametrized {what}: {before}\nparametrized {what}: {after}"
            )


def _append(module: Module, name: str, parametrization: Module, unsafe: bool) -> None:
    """Adds a parametrization to those that a tensor has."""
    parametrization.train(module.training)
    if not unsafe:
        before = getattr(module, name)
        made = parametrization(before)
        _check_same_dtype_and_shape(before.dtype, before.shape, made)
        if hasattr(parametrization, "right_inverse"):
            try:
                inverse = parametrization.right_inverse(made)
            except NotImplementedError:
                pass
            else:
                if not isinstance(inverse, Tensor):
                    raise ValueError(
                        f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}"
                    )
                _check_same_dtype_and_shape(before.dtype, before.shape, inverse)
    found = module.parametrizations[name]
    found.append(parametrization)
    found.unsafe |= unsafe


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Replaces `module.tensor_name` by `parametrization` applied to the original tensor.

    Args:
        unsafe: skips the check that the parametrization keeps the tensor's dtype and shape.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        _append(module, tensor_name, parametrization, unsafe)
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        found = ParametrizationList([parametrization], original, unsafe)
        delattr(module, tensor_name)
        _make_parametrizable(module, tensor_name)
        module.parametrizations[tensor_name] = found
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module has any parametrization, or one of `tensor_name` if given."""
    found = module._modules.get("parametrizations")
    return found is not None and (len(found) > 0 if tensor_name is None else tensor_name in found._modules)


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes the tensor a plain parameter or buffer again, with its current value or the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    found = module.parametrizations[tensor_name]
    original = found._originals()[0]
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name)
        if not found.is_tensor:
            original = Parameter(value) if original.requires_grad else value
        else:
            with no_grad():
                _set(original, value.clone())
    elif not found.is_tensor:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations._modules[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module._modules["parametrizations"]
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of the module without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module, tensor_name: str | None = None) -> Module:
    """Copies the parametrizations and originals of all tensors, or of one, to another module; returns `to_module`."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for original in [*source._parameters, *source._buffers]:
            setattr(target, original, getattr(source, original))
    return to_module
