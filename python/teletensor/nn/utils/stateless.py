"""torch.nn.utils.stateless: the deprecated module of torch.func.functional_call."""

from __future__ import annotations

import warnings

__all__ = ["functional_call"]


def _reparametrize_module(
    module, parameters_and_buffers: dict, tie_weights: bool = False, strict: bool = False, stack_weights: bool = False
):
    """Replaces a module's parameters and buffers within a context, as functional_call does."""
    from ...func.modules import reparametrized

    return reparametrized(module, parameters_and_buffers, tie_weights, strict)


def _functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights: bool = True, strict: bool = False
):
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights: bool = True, strict: bool = False):
    """Calls the module with other parameters and buffers; see torch.func.functional_call."""
    from ...func import functional_call as call

    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of "
        "PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    return call(module, parameters_and_buffers, () if args is None else args, kwargs, tie_weights=tie_weights, strict=strict)
