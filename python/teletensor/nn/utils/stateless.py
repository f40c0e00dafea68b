"""torch.nn.utils.stateless: the deprecated module of torch.func.functional_call."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["functional_call"]


@contextmanager
def _reparametrize_module(
    module, parameters_and_buffers: dict, tie_weights: bool = False, strict: bool = False, stack_weights: bool = False
) -> Iterator[None]:
    """Replaces a module's parameters and buffers within a context, as functional_call does. Ignores unknown names.

    Afterwards the dict has the tensors that the module then had: code within the context may have replaced them. Nested
    contexts restore the tensors in reverse order, with and without `stack_weights`.
    """
    from ...func.modules import _registry, _replaced

    own = {name for find in (module.named_parameters, module.named_buffers) for name, _ in find(remove_duplicate=False)}
    once = {name for find in (module.named_parameters, module.named_buffers) for name, _ in find()}
    if strict and once != parameters_and_buffers.keys():
        messages = []
        if unexpected := [name for name in parameters_and_buffers if name not in own]:
            messages.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
        if missing := sorted(once - parameters_and_buffers.keys()):
            messages.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
        if messages:
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(messages))
    values = {name: value for name, value in parameters_and_buffers.items() if name in own}
    with _replaced(module, values, tie_weights):
        try:
            yield
        finally:
            for name in values:
                registry, key = _registry(module, name)
                parameters_and_buffers[name] = registry[key]


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
