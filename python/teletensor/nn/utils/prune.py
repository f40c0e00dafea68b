"""torch.nn.utils.prune: pruning of parameters by masks.

A pruned tensor `name` is stored as the parameter `name_orig` and the buffer `name_mask`; a forward pre-hook of the module
sets `name` to their product.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

from ... import _C, linalg
from ..._C import Tensor
from .convert_parameters import parameters_to_vector

__all__ = [
    "ABC", "BasePruningMethod", "CustomFromMask", "Identity", "Iterable", "L1Unstructured", "LnStructured",
    "PruningContainer", "RandomStructured", "RandomUnstructured", "abstractmethod", "custom_from_mask",
    "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured", "numbers", "random_structured",
    "random_unstructured", "remove",
]  # fmt: skip

_ops = _C.torch


class BasePruningMethod(ABC):
    """The base of pruning methods: a forward pre-hook that masks one tensor of a module.

    Subclasses set PRUNING_TYPE ("unstructured", "structured" or "global") and define compute_mask.
    """

    _tensor_name: str

    def __call__(self, module, inputs) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the mask for scores `t`, combined with the mask that exists."""

    def apply_mask(self, module) -> Tensor:
        """Returns the masked tensor."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name: str, *args, importance_scores: Tensor | None = None, **kwargs):
        """Prunes `module.name`, in addition to earlier prunings; returns the method or the container of methods."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        method = _combined(module, name, method)
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {original.shape}"
            )
        first = not isinstance(method, PruningContainer)
        if first:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        default = _ops.ones_like(original) if first else getattr(module, name + "_mask").detach().clone()
        try:
            module.register_buffer(name + "_mask", method.compute_mask(importance_scores, default_mask=default.detach()))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Returns a masked copy of a tensor."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        default_mask = _ops.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module) -> None:
        """Makes the masked tensor a plain parameter. The caller removes the hook."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        original = module._parameters.pop(self._tensor_name + "_orig")
        original.data = weight.detach()
        del module._buffers[self._tensor_name + "_mask"]
        setattr(module, self._tensor_name, original)


def _combined(module, name: str, method: BasePruningMethod) -> BasePruningMethod:
    """Removes the hook of an earlier pruning of the same tensor and adds the new method to it."""
    hooks = module._forward_pre_hooks
    earlier = [k for k, h in hooks.items() if isinstance(h, BasePruningMethod) and h._tensor_name == name]
    if len(earlier) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
        )
    if not earlier:
        return method
    old = hooks.pop(earlier[0])
    container = old if isinstance(old, PruningContainer) else PruningContainer(old)
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Several methods that prune the same tensor one after the other."""

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Adds a method for the same tensor."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. "
                f"Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """Applies the last method to the entries that are not masked yet."""
        method, dims = self._pruning_methods[-1], t.dim()
        if method.PRUNING_TYPE == "unstructured":
            kept = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
            dim = method.dim + dims if method.dim < 0 else method.dim
            if dim < 0:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {dims}")
            others = [d for d in range(dims) if d != dim]
            kept = tuple(default_mask.sum(dim=others) != 0 if d == dim else slice(None) for d in range(dims))
        elif method.PRUNING_TYPE == "global":
            kept = (slice(None),) * dims
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(dtype=t.dtype, copy=True)
        mask[kept] = method.compute_mask(t.detach()[kept], default_mask=default_mask[kept]).to(dtype=mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Masks nothing; creates the mask and the hook."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask

    @classmethod
    def apply(cls, module, name):
        return super().apply(module, name)


class _Amount(BasePruningMethod):
    """The base of methods that prune an amount: a fraction, or a number of entries or channels."""

    def __init__(self, amount):
        whole = isinstance(amount, numbers.Integral)
        if not isinstance(amount, numbers.Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (not whole and amount > 1):
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
        self.amount = amount

    def _count(self, size: int) -> int:
        count = self.amount if isinstance(self.amount, numbers.Integral) else round(self.amount * size)
        if count > size:
            raise ValueError(f"amount={count} should be smaller than the number of parameters to prune={size}")
        return count


class _UnstructuredAmount(_Amount):
    PRUNING_TYPE = "unstructured"

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t, default_mask):
        count = self._count(t.numel())
        if not count:
            return default_mask.clone()
        pruned = _ops.topk(self._scores(t.detach()).reshape(-1), k=count, largest=False).indices
        return default_mask.detach().reshape(-1).index_fill(0, pruned, 0).reshape(default_mask.shape)


class RandomUnstructured(_UnstructuredAmount):
    """Prunes entries at random."""

    def _scores(self, t):
        return _ops.rand_like(t)

    @classmethod
    def apply(cls, module, name, amount):
        return super().apply(module, name, amount=amount)


class L1Unstructured(_UnstructuredAmount):
    """Prunes the entries with the smallest absolute scores."""

    def _scores(self, t):
        return t.abs()

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _StructuredAmount(_Amount):
    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim: int = -1):
        super().__init__(amount)
        self.dim = dim

    def _channel_scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t, default_mask):
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        count = self._count(size)
        if not count:
            return default_mask
        kept = _ops.topk(self._channel_scores(t.detach()), k=size - count).indices
        mask = _ops.zeros_like(t).detach().index_fill(self.dim, kept, 1)
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_StructuredAmount):
    """Prunes slices along a dimension at random."""

    def _channel_scores(self, t):
        return _ops.rand(t.shape[self.dim], device=t.device)

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_StructuredAmount):
    """Prunes the slices along a dimension that have the smallest norms."""

    def __init__(self, amount, n, dim: int = -1):
        super().__init__(amount, dim)
        self.n = n

    def _channel_scores(self, t):
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        if self.n == "nuc" or (self.n == "fro" and len(others) == 2):
            return linalg.matrix_norm(t, ord=self.n, dim=others if len(others) == 2 else (-2, -1))
        return linalg.vector_norm(t, ord=2 if self.n == "fro" else self.n, dim=others)

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        return super().apply(module, name, mask=mask)


def identity(module, name: str):
    """Creates a mask of ones and the hook; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name: str, amount):
    """Prunes entries at random; returns the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name: str, amount, importance_scores: Tensor | None = None):
    """Prunes the entries with the smallest absolute values or scores; returns the module."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name: str, amount, dim: int):
    """Prunes slices along a dimension at random; returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name: str, amount, n, dim: int, importance_scores: Tensor | None = None):
    """Prunes the slices along a dimension with the smallest norms; returns the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name: str, mask: Tensor):
    """Prunes by a given mask; returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores: dict | None = None, **kwargs) -> None:
    """Prunes an amount of the entries of several tensors together, given as (module, name) pairs."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    importance_scores = {} if importance_scores is None else importance_scores
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    parameters = list(parameters)
    tensors = [getattr(module, name).detach() for module, name in parameters]
    scores = parameters_to_vector([importance_scores.get(pair, t) for pair, t in zip(parameters, tensors)])
    masks = [getattr(m, name + "_mask", _ops.ones_like(t)) for (m, name), t in zip(parameters, tensors)]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type '
            f"{method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"
    mask, start = PruningContainer(method).compute_mask(scores, parameters_to_vector(masks)), 0
    for (module, name), t in zip(parameters, tensors):
        custom_from_mask(module, name, mask=mask[start : start + t.numel()].reshape(t.shape))
        start += t.numel()


def remove(module, name: str):
    """Makes a pruned tensor a plain parameter with its masked value; returns the module."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module) -> bool:
    """Whether the module or a submodule has a pruned tensor."""
    return any(isinstance(h, BasePruningMethod) for m in module.modules() for h in m._forward_pre_hooks.values())
