"""PyTorch's operators for the engine's operators whose arguments have another order or form."""

from __future__ import annotations

from typing import Any

from ..._library import aten
from ..._library.dispatch import EngineOverload

_REDUCTIONS = ("none", "mean", "sum")  # by PyTorch's number
# By the engine's operator: PyTorch's overload, and its arguments by the names of the engine's parameters.
_LOSS = "input target reduction"
_RECURRENT = "input hx params has_biases num_layers dropout train bidirectional batch_first"
_OPERATORS = {
    "attention": ("scaled_dot_product_attention.default", "query key value attn_mask =0.0 is_causal scale"),
    "avg_pool2d": ("avg_pool2d.default", "input kernel_size stride padding ceil_mode count_include_pad divisor_override"),
    "batch_norm": ("batch_norm.default", "input weight bias running_mean running_var training momentum eps =False"),
    "binary_cross_entropy": ("binary_cross_entropy.default", "input target weight reduction"),
    "binary_cross_entropy_with_logits": ("binary_cross_entropy_with_logits.default", "input target weight pos_weight reduction"),
    "cross_entropy": ("cross_entropy_loss.default", "input target weight reduction ignore_index label_smoothing"),
    "huber_loss": ("huber_loss.default", f"{_LOSS} delta"),
    "l1_loss": ("l1_loss.default", _LOSS),
    "gru": ("gru.input", _RECURRENT), "lstm": ("lstm.input", _RECURRENT),
    "logsigmoid": ("log_sigmoid.default", "input"),
    "max_pool2d": ("max_pool2d.default", "input kernel_size stride padding dilation ceil_mode"),
    "mse_loss": ("mse_loss.default", _LOSS),
    "nll_loss": ("nll_loss_nd.default", "input target weight reduction ignore_index"),
    "smooth_l1_loss": ("smooth_l1_loss.default", f"{_LOSS} beta"),
    "vector_norm": ("linalg_vector_norm.default", "input ord dim keepdim dtype"),
}  # fmt: skip


def _value(name: str, arguments: dict[str, Any]) -> Any:
    if name.startswith("="):
        return {"0.0": 0.0, "False": False}[name[1:]]
    value = arguments[name]
    if name == "reduction":
        return _REDUCTIONS.index(value)
    return [] if name == "stride" and value is None else value


def in_aten(overload: Any, call: tuple[str, list[Any], list | None] | None, names: list[str]) -> tuple[Any, tuple, dict] | None:
    """PyTorch's overload and its arguments for a call of an operator of the engine; None if it has no other name.

    Args:
        overload: what the dispatch has found for the call.
        call: the engine's operator, its arguments and the tensors that it writes.
        names: the operator's parameters.
    """
    if not isinstance(overload, EngineOverload) or call is None or call[2] is not None or call[0] not in _OPERATORS:
        return None
    if call[0] in ("gru", "lstm") and dict(zip(names, call[1]))["batch_sizes"]:
        return None  # packed sequences
    found, order = _OPERATORS[call[0]]
    base, _, name = found.partition(".")
    packet = aten.packet(base)
    if packet is None or name not in packet.overloads():
        return None
    target = getattr(packet, name)
    values = [_value(n, dict(zip(names, call[1]))) for n in order.split()]
    positional, keyword = [], {}
    for argument, value in zip(target._schema.arguments, values):
        if not argument.kwarg_only:
            positional.append(value)
        elif value != argument.default:
            keyword[argument.name] = value
    plain = [a for a in target._schema.arguments if not a.kwarg_only]
    while positional and _is_default(plain[len(positional) - 1], positional[-1]):
        positional.pop()
    return target, tuple(positional), keyword


def _is_default(argument: Any, value: Any) -> bool:
    return argument.has_default and (value is argument.default or (not hasattr(value, "dim") and value == argument.default))
