"""Parameters as functions of other parameters; see torch.nn.utils.parametrize."""

from __future__ import annotations

from contextlib import contextmanager

from ..._grad_mode import no_grad
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
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
                    value = module.right_inverse(value)
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

    def _count(self) -> int:
        return sum(name.startswith("original") for name in (*self._parameters, *self._buffers))


def _inject(module: Module, name: str) -> None:
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
        found = self.parametrizations[name]
        with no_grad():
            for module in reversed(list(found)):
                value = module.right_inverse(value)
            found.original.detach().copy_(value)

    setattr(type(module), name, property(get, set))


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Replaces `module.tensor_name` by `parametrization` of a trained original."""
    if is_parametrized(module, tensor_name):
        found = module.parametrizations[tensor_name]
        if hasattr(parametrization, "right_inverse"):
            with no_grad():
                found.original.detach().copy_(parametrization.right_inverse(found.original.detach()))
        found.append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    original = getattr(module, tensor_name)
    found = ParametrizationList([parametrization], original)
    if not unsafe:
        with no_grad():
            made = found()
        if made.dtype is not original.dtype or made.shape != original.shape:
            raise ValueError(
                f"Registering a parametrization may not change the dtype or shape of the tensor, unless `unsafe` flag is "
                f"enabled, got {made.dtype} {tuple(made.shape)} for {original.dtype} {tuple(original.shape)}"
            )
    delattr(module, tensor_name)
    _inject(module, tensor_name)
    module.parametrizations[tensor_name] = found
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module has parametrizations, or one of the given tensor."""
    found = module._modules.get("parametrizations")
    return found is not None and (len(found) > 0 if tensor_name is None else tensor_name in found._modules)


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes the tensor a plain parameter or buffer again, with its current value or its original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    found = module.parametrizations[tensor_name]
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
