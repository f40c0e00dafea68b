"""How PyTorch's Python functions pass their arguments to __torch_function__: some by position, the others by name.

Handlers, and passes over graphs of fx, find an argument in its place whatever the form of the call. All parameters are
passed, with their defaults. Functions that are not listed pass arguments as the call does.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

# The number of parameters that are passed by position, then the functions: of nn.functional, and of torch.functional.
_FUNCTIONAL = {
    1: """
        dropout alpha_dropout dropout1d dropout2d dropout3d feature_alpha_dropout relu hardtanh relu6 elu selu celu leaky_relu rrelu
        softmin softmax gumbel_softmax log_softmax hardsigmoid silu mish hardswish instance_norm interpolate normalize
    """,
    2: """
        fractional_max_pool2d fractional_max_pool3d max_pool1d max_pool2d max_pool2d_with_indices max_pool3d adaptive_max_pool1d
        adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d adaptive_avg_pool2d adaptive_avg_pool3d embedding
        embedding_bag layer_norm local_response_norm nll_loss poisson_nll_loss kl_div cross_entropy binary_cross_entropy
        binary_cross_entropy_with_logits smooth_l1_loss huber_loss l1_loss mse_loss hinge_embedding_loss multilabel_margin_loss
        soft_margin_loss multilabel_soft_margin_loss multi_margin_loss unfold pad
    """,
    3: """
        max_unpool1d max_unpool2d max_unpool3d lp_pool1d lp_pool2d lp_pool3d batch_norm gaussian_nll_loss linear_cross_entropy
        margin_ranking_loss cosine_embedding_loss triplet_margin_loss triplet_margin_with_distance_loss fold
    """,
    4: "ctc_loss",
    13: "multi_head_attention_forward",
}
_MAIN = {1: "unique unique_consecutive norm unravel_index lu", 2: "split stft tensordot"}
_BY_MODULE = {
    module: {name: count for count, names in rows.items() for name in names.split()}
    for module, rows in (("teletensor.nn.functional", _FUNCTIONAL), ("teletensor.functional", _MAIN), ("teletensor", _MAIN))
}


@functools.cache
def _signature(function: Callable) -> inspect.Signature:
    return inspect.signature(function)


def form_of(module: str, name: str, function: Callable) -> Callable[..., tuple[tuple, dict[str, Any]]] | None:
    """What makes the arguments of handlers of those of a call; None if they are the same."""
    count = _BY_MODULE.get(module, {}).get(name)
    if count is None:
        return None

    def form(*args: Any, **kwargs: Any) -> tuple[tuple, dict[str, Any]]:
        try:
            bound = _signature(function).bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{name}() {e}") from None
        bound.apply_defaults()
        values = list(bound.arguments.items())
        return tuple(value for _, value in values[:count]), dict(values[count:])

    return form
