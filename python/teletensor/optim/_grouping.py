"""Private functions of torch.optim.optimizer with which other libraries' optimizers choose an implementation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from .. import _C
from .._C import Tensor
from .._grad_mode import is_grad_enabled, set_grad_enabled

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The device types on which PyTorch's steps can be recorded in a CUDA graph."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _default_to_fused_or_foreach(params: list[Tensor], differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Whether to use a fused step, and whether to use lists of tensors; at most one of them, as in PyTorch."""
    given = [p for p in params if p is not None]
    fused = use_fused and not differentiable and all(p.is_floating_point() and p.device.type in ("cuda", "cpu") for p in given)
    return fused, not fused and not differentiable and all(p.device.type == "cuda" for p in given)


def _use_grad_for_differentiable(func: Callable) -> Callable:
    """A step that records gradients if the optimizer's option "differentiable" is set, and none otherwise."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = is_grad_enabled()
        try:
            set_grad_enabled(self.defaults["differentiable"])
            return func(self, *args, **kwargs)
        finally:
            set_grad_enabled(before)

    return step


Group: TypeAlias = tuple[list[list[Tensor | None]], list[int]]


def group_tensors(tensorlistlist: list[list[Tensor | None]], with_indices: bool = False) -> dict[tuple[_C.device, _C.dtype], Group]:
    """Divides parallel lists of tensors by the device and dtype of the first list's tensors.

    Returns:
        by device and dtype, the lists, and the places of their tensors in the given lists (empty without with_indices).
    """
    groups: dict[tuple[_C.device, _C.dtype], Group] = {}
    for i, tensors in enumerate(zip(*tensorlistlist)):
        empty: Group = ([[] for _ in tensorlistlist], [])
        lists, places = groups.setdefault((tensors[0].device, tensors[0].dtype), empty)
        for into, tensor in zip(lists, tensors):
            into.append(tensor)
        if with_indices:
            places.append(i)
    return groups
