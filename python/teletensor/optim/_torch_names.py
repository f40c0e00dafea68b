"""Private names of torch.optim.optimizer that optimizers written for PyTorch import. This package does not use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from .. import _C
from .._C import Tensor

__all__ = [
    "DeviceDict", "DeviceDtypeDict", "StateDict", "_capturable_doc", "_device_dtype_check_for_fused", "_differentiable_doc",
    "_disable_dynamo_if_unsupported", "_dispatch_sqrt", "_foreach_doc", "_fused_doc", "_get_scalar_dtype", "_get_value",
    "_maximize_doc", "_params_doc", "_stack_if_compiling", "_to_scalar", "_view_as_real",
]  # fmt: skip

DeviceDict: TypeAlias = dict[_C.device | None, Tensor]
DeviceDtypeDict: TypeAlias = dict[tuple[_C.device, _C.dtype] | None, Tensor]
StateDict: TypeAlias = dict[str, Any]

_params_doc = "params (iterable): parameters, named parameters, or groups of them as dictionaries"
_foreach_doc = "foreach (bool, optional): whether a step computes with lists of tensors (default: None)"
_fused_doc = "fused (bool, optional): whether one kernel computes a step (default: None)"
_capturable_doc = "capturable (bool, optional): whether steps can be captured in a CUDA graph (default: False)"
_differentiable_doc = "differentiable (bool, optional): whether steps are differentiated (default: False)"
_maximize_doc = "maximize (bool, optional): maximize the objective instead of minimizing it (default: False)"


def _get_value(x: Any) -> Any:
    """The number of a tensor, which is read; other values unchanged."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """The argument: no step is compiled as a whole."""
    return x


def _dispatch_sqrt(x: float | Tensor) -> float | Tensor:
    """The square root of a number or a tensor."""
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without dimensions; other values unchanged."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _get_scalar_dtype(is_fused: bool | None = None) -> _C.dtype:
    """The dtype of counts of steps."""
    return _C.float64 if not is_fused and _C.default_dtype() == _C.float64 else _C.float32


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replaces complex parameters, their states and gradients by real views, in the lists."""
    for i, parameter in enumerate(params):
        if parameter.is_complex():
            for values in (params, *state_and_grads):
                values[i] = _C.torch.view_as_real(values[i])


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Raises RuntimeError unless a fused step of PyTorch supports the parameter."""
    supported = ("cpu",) if cuda_unsupported else ("cpu", "cuda")
    if p.device.type not in supported or not p.is_floating_point():
        raise RuntimeError(
            f"`fused=True` requires all the params to be floating point Tensors of supported devices: {list(supported)} but "
            f"{p.dtype} and {p.device.type}"
        )


def _disable_dynamo_if_unsupported(single_tensor_fn: Callable | None = None) -> Callable:
    """A decorator that returns the function."""
    return lambda function: function
