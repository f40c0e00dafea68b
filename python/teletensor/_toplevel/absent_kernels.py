"""Functions of the module torch for devices and libraries that the engine does not have, as in PyTorch's CPU build."""

from __future__ import annotations

import inspect
from typing import Any

from .._absent_device import answering

_CONVOLUTION = "input weight bias padding stride dilation groups benchmark deterministic"
_SIGNATURES = {
    "miopen_batch_norm": "input weight bias running_mean running_var training exponential_average_factor epsilon",
    "miopen_convolution": _CONVOLUTION, "miopen_depthwise_convolution": _CONVOLUTION,
    "miopen_convolution_add_relu": "input weight z alpha bias stride padding dilation groups",
    "miopen_convolution_relu": "input weight bias stride padding dilation groups",
    "miopen_convolution_transpose": "input weight bias padding output_padding stride dilation groups benchmark deterministic",
    "miopen_ctc_loss": "log_probs targets input_lengths target_lengths blank deterministic zero_infinity",
    "miopen_rnn": "input weight weight_stride0 hx cx mode hidden_size num_layers batch_first dropout train bidirectional batch_sizes "
    "dropout_state",
}  # fmt: skip


def _without_kernel(name: str, parameters: list[str]) -> Any:
    def function(*args: Any, **kwargs: Any):
        given = [*parameters[: len(args)], *kwargs]
        if len(args) > len(parameters) or sorted(given) != sorted(parameters):
            raise TypeError(f"{name}(): expected the arguments {', '.join(parameters)}; got {', '.join(given)}")
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend. This could be because the operator doesn't exist for "
            "this backend: it belongs to AMD's GPUs"
        )

    function.__name__ = function.__qualname__ = name
    function.__module__ = "teletensor"
    function.__doc__ = "Raises NotImplementedError: a kernel for AMD's GPUs, as in a PyTorch without them."
    function.__absent_device__ = "ROCm"
    function.__signature__ = inspect.Signature([inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in parameters])
    return function


globals().update({name: _without_kernel(name, text.split()) for name, text in _SIGNATURES.items()})
_names: dict[str, Any] = {"__name__": "teletensor"}
answering(_names, "Vulkan", bool, is_vulkan_available=lambda: 0)
is_vulkan_available = _names["is_vulkan_available"]
