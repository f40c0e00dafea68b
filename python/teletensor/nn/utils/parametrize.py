"""Parameters as functions of other parameters; see torch.nn.utils.parametrize."""

from __future__ import annotations

from contextlib import contextmanager

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


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order to `original`."""

    def __init__(self, modules, original):
        super().__init__(modules)
        value = original.detach()
        with no_grad():
            for module in reversed(list(modules)):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        pass
        # There are several originals if right_inverse returns several tensors.
        self.several = isinstance(value, (tuple, list))
        for i, part in enumerate(value if self.several else [value]):
            name = f"original{i}" if self.several else "original"
            if isinstance(original, Parameter):
                self.register_parameter(name, Parameter(part, original.requires_grad))
            else:
                self.register_buffer(name, part)

    def forward(self):
        first = [getattr(self, f"original{i}") for i in range(self._count())] if self.several else [self.original]
        value, *rest = self
        value = value(*first)
        for module in rest:
            value = module(value)
        return value

    def right_inverse(self, value) -> None:
        """Stores the originals from which `value` is computed. Raises RuntimeError if a parametrization has no inverse."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.several:
                if not isinstance(value, (tuple, list)):
                    raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
                if len(value) != self._count():
                    raise ValueError(
                        f"'right_inverse' must return a sequence of tensors of length {self._count()}. "
                        f"Got a sequence of length {len(value)}."
                    )
            elif isinstance(value, (tuple, list)):
                raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
            for i, part in enumerate(value if self.several else [value]):
                original = getattr(self, f"original{i}" if self.several else "original")
                if part.dtype is not original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {part.dtype} while the original has dtype {original.dtype}"
                    )
                original.detach().copy_(part)

    def _count(self) -> int:
        return sum(name.startswith("original") for name in (*self._parameters, *self._buffers))


def _make_parametrizable(module: Module, name: str) -> None:
    """Gives the module its own class with a property that replaces the tensor."""
    if not getattr(type(module), "_is_parametrized", False):
        base = type(module)
        module.__class__ = type(f"Parametrized{base.__name__}", (base,), {"_is_parametrized": True, "__module__": base.__module__})
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


def _check_same_dtype_and_shape(original, made) -> None:
    if made.dtype is not original.dtype or made.shape != original.shape:
        raise ValueError(
            f"Registering a parametrization may not change the dtype or shape of the tensor, unless `unsafe` flag is "
            f"enabled, got {made.dtype} {tuple(made.shape)} for {original.dtype} {tuple(original.shape)}"
        )


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Replaces `module.tensor_name` by `parametrization` applied to a trained original."""
    if is_parametrized(module, tensor_name):
        if not unsafe:
            with no_grad():
                before = getattr(module, tensor_name)
                _check_same_dtype_and_shape(before, parametrization(before))
        module.parametrizations[tensor_name].append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    original = getattr(module, tensor_name)
    found = ParametrizationList([parametrization], original)
    if not unsafe:
        with no_grad():
            _check_same_dtype_and_shape(original, found())
    delattr(module, tensor_name)
    _make_parametrizable(module, tensor_name)
    module.parametrizations[tensor_name] = found
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
    if found.several and not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors."
        )
    with no_grad():
        value = getattr(module, tensor_name).detach().clone() if leave_parametrized else found.original.detach()
    trained = next(found.parameters(recurse=False), None)
    delattr(type(module), tensor_name)
    del module.parametrizations._modules[tensor_name]
    if trained is not None:
        module.register_parameter(tensor_name, Parameter(value, trained.requires_grad))
    else:
        module.register_buffer(tensor_name, value)
    if not is_parametrized(module):
        del module._modules["parametrizations"]
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of the module without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module, tensor_name: str | None = None) -> Module:
    """Gives a module the parametrizations and originals of another one, of all tensors or of one; returns `to_module`."""
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
