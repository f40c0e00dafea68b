"""Gradients per sample of a module's parameters, in ``p.grad_sample``, as libraries for differential privacy use them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._C import Tensor
from ...func.batching import vmap
from ...func.modules import functional_call
from ...utils import _pytree as pytree
from ..modules.module import Module

__all__ = ["call_for_per_sample_grads"]


def _batch_size(leaves: list, dim: int) -> int:
    sizes = {x.shape[dim] for x in leaves if isinstance(x, Tensor)}
    if len(sizes) > 1:
        first, second, *_ = sorted(sizes)
        raise RuntimeError(
            f"When computing batch size, found at least one input with batch size {first} and one with batch size {second}. Please "
            "specify it explicitly using the batch size kwarg in call_for_per_sample_grads"
        )
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so ExpandedWeights cannot compute "
            "the batch size from the inputs. Please specify it explicitly"
        )
    return sizes.pop()


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable:
    """A function that calls the module; ``backward()`` of its results sets ``p.grad_sample`` of trainable parameters, not ``p.grad``.

    The module is called by `vmap` with samples as batches of one, so that it must compute samples apart from each other; each
    sample has random numbers of its own.

    Args:
        batch_size: the size of the batch dimension. None: that of all tensors among the arguments, which must be equal.
            Other tensors than those with this size are passed to each sample as they are.
        loss_reduction: "sum" or "mean": how the loss joins the samples' losses. With "mean" gradients are multiplied by the
            batch size.
        batch_first: whether the batch dimension of arguments and results is the first one, otherwise the second.

    Raises:
        RuntimeError: an invalid argument; a parameter has a ``grad_sample``, to which gradients would be added.
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for parameter in module.parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls without clearing "
                "gradients. Please clear out the grad_sample parameter of the module's parameters"
            )
    dim = 0 if batch_first else 1

    def expanded(parameter: Tensor, size: int) -> Tensor:
        samples = parameter.detach().expand(size, *parameter.shape).requires_grad_()

        def keep(gradient: Tensor) -> None:
            scaled = gradient * size if loss_reduction == "mean" else gradient
            earlier = getattr(parameter, "grad_sample", None)
            parameter.grad_sample = scaled if earlier is None else earlier + scaled

        samples.register_hook(keep)
        return samples

    @functools.wraps(module.forward)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        size = _batch_size(leaves, dim) if batch_size is None else batch_size
        batched = [isinstance(x, Tensor) and x.dim() > dim and x.shape[dim] == size for x in leaves]
        if not any(batched):
            given = next((x.shape[dim] for x in leaves if isinstance(x, Tensor) and x.dim() > dim), None)
            raise RuntimeError(
                f"Expected ExpandedWeights to have batch size matching input but got input batch size of {given} with ExpandedWeight of "
                f"batch size {size}"
            )
        samples = {name: expanded(p, size) for name, p in module.named_parameters() if p.requires_grad}

        results: list = []  # of one sample, flattened: vmap returns the tensors among them
        results_spec: Any = None

        def call(weights: dict[str, Tensor], *values: Any) -> list[Tensor]:
            nonlocal results, results_spec
            inputs = [x.unsqueeze(dim) if b else x for x, b in zip(values, batched, strict=True)]
            given, named = pytree.tree_unflatten(inputs, spec)
            results, results_spec = pytree.tree_flatten(functional_call(module, weights, given, named))
            return [y.squeeze(dim) for y in results if isinstance(y, Tensor)]

        in_dims = (dict.fromkeys(samples, 0), *(dim if b else None for b in batched))
        tensors = iter(vmap(call, in_dims=in_dims, out_dims=dim, randomness="different")(samples, *leaves))
        return pytree.tree_unflatten([next(tensors) if isinstance(y, Tensor) else y for y in results], results_spec)

    return wrapper
