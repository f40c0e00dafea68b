"""torch.distributed.algorithms._checkpoint.checkpoint_wrapper: modules whose activations are recomputed in backward."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any

from ....autograd.graph import save_on_cpu
from ....nn.modules.module import Module
from ....utils.checkpoint import checkpoint as _checkpoint
from ...fsdp.wrap import lambda_auto_wrap_policy, wrap_submodules

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """The variant of ``torch.utils.checkpoint.checkpoint``. The engine computes both in the same way."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


def _renamed(state_dict: dict[str, Any], old: str, new: str) -> None:
    """Replaces a prefix of the names, in place."""
    for name in [name for name in state_dict if name.startswith(old)]:
        state_dict[new + name[len(old) :]] = state_dict.pop(name)


class ActivationWrapper(Module, ABC):
    """Wraps a module under its own names: parameters and state dicts are named as without the wrapper."""

    def __init__(self, mod: Module):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    @abstractmethod
    def forward(self, *args, **kwargs):
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        """Attributes of the wrapped module."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module.__getitem__(key)

    def named_parameters(self, *args, **kwargs) -> Iterator[tuple[str, Any]]:
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> dict[str, Any]:
        _renamed(state_dict, prefix + _CHECKPOINT_PREFIX, prefix)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        _renamed(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


class OffloadWrapper(ActivationWrapper):
    """Keeps the tensors that backward needs in the memory of the CPU."""

    def forward(self, *args, **kwargs):
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Recomputes the module's activations in backward; see checkpoint_wrapper()."""

    def __init__(
        self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT, checkpoint_fn: Callable | None = None,
        **checkpoint_fn_kwargs: Any,
    ):  # fmt: skip
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = _checkpoint
            checkpoint_fn_kwargs["use_reentrant"] = checkpoint_impl is CheckpointImpl.REENTRANT
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args, **kwargs):
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)
        names, count = list(kwargs), len(args)  # the reentrant variant passes positional arguments only

        def run(*values):
            return self._checkpoint_wrapped_module(*values[:count], **dict(zip(names, values[count:], strict=True)))

        return self.checkpoint_fn(run, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """Returns the module in an OffloadWrapper."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT, checkpoint_fn: Callable | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:  # fmt: skip
    """Returns the module in a wrapper that recomputes its activations in backward.

    Args:
        checkpoint_fn: replaces ``torch.utils.checkpoint.checkpoint``.
        checkpoint_fn_kwargs: keyword arguments of that function.
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module, checkpoint_wrapper_fn: Callable = checkpoint_wrapper, check_fn: Callable = lambda _: True,
    auto_wrap_policy: Any = None,
) -> None:  # fmt: skip
    """Wraps submodules of a model in place; the model itself is not wrapped.

    Args:
        check_fn: whether a submodule is wrapped.
        auto_wrap_policy: a policy as FSDP's; it replaces `check_fn`.
    """
    policy = functools.partial(lambda_auto_wrap_policy, lambda_fn=check_fn) if auto_wrap_policy is None else auto_wrap_policy
    wrap_submodules(model, policy, checkpoint_wrapper_fn, set(), set(), {})
