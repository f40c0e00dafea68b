"""Decides which nodes may be computed once instead of several times."""

from __future__ import annotations

import functools
from typing import Any

from .. import nn
from .._C import Tensor
from ._names import is_from_torch
from .node import Node

# Functions and methods that draw random numbers, some only with dropout.
RANDOM_NAMES = frozenset((
    "alpha_dropout", "bernoulli", "binomial", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
    "feature_dropout", "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "gru", "gumbel_softmax", "lstm", "multi_head_attention_forward", "multinomial",
    "native_dropout", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "rnn_relu", "rnn_tanh", "rrelu", "scaled_dot_product_attention",
))  # fmt: skip
# Attributes of modules that compute something else in training mode.
_TRAINING_ATTRIBUTES = ("p", "dropout", "running_mean", "_random_samples", "lower")


@functools.lru_cache(maxsize=1)
def random_functions() -> frozenset:
    """The functions of RANDOM_NAMES."""
    import teletensor

    places = (teletensor, nn.functional)
    return frozenset(getattr(place, name) for place in places for name in RANDOM_NAMES if hasattr(place, name))


def is_repeatable(node: Node) -> bool:
    """Whether a node has no effect besides its result, and the result depends on the arguments only.

    False for functions, methods and modules that are not teletensor's or Python's, which may do anything.
    """
    if node.op == "get_attr":
        return True
    if not node.op.startswith("call") or node.is_impure():
        return False
    if node.op == "call_method":
        return hasattr(Tensor, node.target) and node.target not in RANDOM_NAMES
    if node.op == "call_module":
        return module_is_repeatable(node.graph.owning_module.get_submodule(node.target))
    module = getattr(node.target, "__module__", None)
    known = module in ("_operator", "math", "builtins") or is_from_torch(node.target)
    return known and node.target not in random_functions() and not isinstance(node.target, type)


def module_is_repeatable(module: Any) -> bool:
    """Whether calls of a module with equal arguments have equal results and no effects."""
    from .graph_module import GraphModule

    if module._forward_hooks or module._forward_pre_hooks or getattr(module, "inplace", False) is True:
        return False
    if isinstance(module, GraphModule):
        return all(is_repeatable(node) for node in module.graph.nodes if node.op.startswith("call"))
    if not type(module).__module__.startswith("teletensor.nn"):
        return False
    varies = module.training and any(hasattr(module, name) for name in _TRAINING_ATTRIBUTES)
    return not varies and all(module_is_repeatable(child) for child in module.children())
