"""The functions that a program from a file may call: operators that compute. Nothing else is reachable by a file's names."""

from __future__ import annotations

import importlib
import math
import operator
from typing import Any

from .. import _C, ops
from .._higher_order_ops import control
from .._higher_order_ops._operator import OPERATORS
from .._library import aten, dispatch, registry
from .._library.operators import OpOverload
from .._toplevel import symbols
from ..fx.node import Node
from ._file_names import identifier, text

_ARITHMETIC = {
    f"_operator.{name}": getattr(operator, name) for name in "add sub mul floordiv mod neg truediv eq ne lt le gt ge and_ or_ pow".split()
}  # fmt: skip
_ROUNDING: dict[str, Any] = {
    "math.trunc": math.trunc, "math.ceil": math.ceil, "math.floor": math.floor, "builtins.round": round, "builtins.abs": abs,
}  # fmt: skip
_SYMBOLIC = {f"torch.{name}": name for name in ("sym_float", "sym_ite", "sym_max", "sym_min", "sym_not")} | {"torch._sym_sqrt": "sym_sqrt"}
_LARGEST_EXPONENT = 8  # of ints, whose powers would otherwise have any number of digits
_MOST_NODES = 64  # that show whether a number is a float
_FLOATS = frozenset({operator.truediv, symbols.sym_float, symbols.sym_sqrt})  # give floats
_KEEPING_FLOATS = frozenset({  # give a float if one operand is one
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg, operator.pow, abs,
})  # fmt: skip
_HIGHER_ORDER = frozenset("cond while_loop scan map_impl wrap_with_set_grad_enabled".split())
_SPECIAL = frozenset("__and__ __or__ __xor__ __lshift__ __rshift__".split())  # operators of aten with such names
_OUTSIDE = frozenset(["from_file"])  # operators of aten that open files

# The engine's operators that compute a result of their arguments, besides those that aten has too, elementwise ones and views.
# Operators of the session (files, networks, stored programs, gradients, settings) are absent: a new operator is refused
# until it is listed.
_ENGINE = frozenset("""
    adaptive_avg_pool2d_backward adaptive_max_pool2d adaptive_max_pool2d_with_indices addmm_activation affine_grid
    arange_from attention attention_backward attention_forward avg_pool2d_backward batch_norm_backward
    batch_norm_forward bernoulli_like cauchy_like chebyshev_norm cholesky_factored col2im convolution_input
    convolution_weight cross_entropy cross_entropy_backward cross_entropy_forward ctc_loss_backward ctc_loss_forward
    draw_binomial dropout_forward eig_decomposed eigh_decomposed embedding_backward exponential_like fft_c2c fft_c2r
    fft_r2c fill_diagonal frexp_exponent frexp_mantissa fused_convolution gaussian_nll_loss geometric_like grid_sample
    grid_sample_values grid_tap_index grid_tap_weight group_norm_backward group_norm_forward householder_factored im2col index_masked
    int4_weight_mm int8_convolution int8_convolution_quantized int8_linear int8_linear_dynamic int8_linear_quantized
    int8_weight_mm interpolate layer_norm_backward layer_norm_forward ldl_factored ldl_solved log_normal_like
    log_softmax_backward lstm_sequence lstm_sequence_backward lu_determinant lu_factored lu_log_determinant
    lu_permutation lu_solved max_all max_dim max_other max_pool2d_backward max_pool_values median_dim min_all min_dim
    min_other nanmedian_dim nll_loss_backward nll_loss_forward norm_named normal_from normal_like normalize pad_edges
    pad_edges_backward pad_edges_forward polygamma_method pseudo_inverse_of qr_factored randint_from random_like
    rms_norm_backward rms_norm_forward rnn scaled_mm scatter_combine scatter_value softmax_attention softmax_backward
    sort_stable standard_gamma std_all std_dim std_fraction std_mean_all std_mean_dim std_mean_fraction svd_decomposed
    to_device to_dtype triangular_solved uniform_like unique_rows unique_values vander var_all var_dim var_fraction
    var_mean_all var_mean_dim var_mean_fraction vector_norm weighted_gather weighted_gather_input_grad
    weighted_gather_weight_grad
""".split())  # fmt: skip


def target_of(target: Any) -> Any:
    """The function of a call.

    Operators that the running program registered with torch.library are found too: the program chose what they do.

    Raises:
        NotImplementedError: it does not exist here.
        RuntimeError: a program from a file may not call it.
    """
    name = text(target, "the target of a call")
    if name in _ARITHMETIC:
        return _ARITHMETIC[name]
    if name in _ROUNDING:
        return _ROUNDING[name]
    if name in _SYMBOLIC:
        return getattr(importlib.import_module("teletensor"), _SYMBOLIC[name])
    path = name.split(".")
    if path[:2] == ["torch", "ops"] and len(path) in (4, 5):
        for part in path[2:] if path[3] not in _SPECIAL else path[4:]:
            identifier(part, f"a part of the target {name}", private=True)
        if path[2] == "higher_order":
            found = OPERATORS.get(path[3]) if path[3] in _HIGHER_ORDER and len(path) == 4 else None
        else:
            found = _overload(path[2], path[3], path[4] if len(path) == 5 else "default")
        if found is not None:
            return found
    raise NotImplementedError(f"[export.load] the program calls {name}, which does not exist here")


def _overload(namespace: str, name: str, overload: str) -> OpOverload | None:
    ops.define(namespace)
    packet = registry.packet(namespace, name)
    if packet is None and namespace == "aten":
        if name in _OUTSIDE:
            raise RuntimeError(f"[export.load] the program calls {namespace}.{name}, which reaches outside the session")
        packet = aten.packet(name)
    if packet is None and namespace == "teletensor":
        packet = _engine(name)
    if packet is None or overload not in packet.overloads():
        return None
    found = getattr(packet, overload)
    return found if isinstance(found, OpOverload) else None


def _engine(name: str) -> Any:
    packet = None if name.startswith("_") else dispatch.engine_packet(name)
    if packet is None:
        return None
    if name not in _ENGINE:
        _, is_pointwise, is_view, _, _ = _C._declaration(name)
        if not (is_pointwise or is_view or name in aten.names()):
            raise RuntimeError(f"[export.load] the program calls teletensor.{name}, which does not only compute")
    return packet


def _is_float(value: Any) -> bool:
    """Whether an argument is a float in each run, as the calls show that compute it; what a file states about it may be untrue."""
    waiting, seen = [value], set()
    while waiting and len(seen) < _MOST_NODES:
        value = waiting.pop()
        if type(value) is float or isinstance(value, Node) and value.target in _FLOATS:
            return True
        if isinstance(value, Node) and value not in seen and value.target in _KEEPING_FLOATS:
            seen.add(value)
            waiting += value.args
    return False


def check_arguments(target: Any, args: tuple, keywords: dict[str, Any]) -> None:
    """Raises RuntimeError if an operator has fewer positional arguments, or not these keyword arguments."""
    count = len(args)
    is_small = count == 2 and type(args[1]) is int and args[1] <= _LARGEST_EXPONENT
    if target is operator.pow and not (is_small or count == 2 and any(map(_is_float, args))):
        raise RuntimeError(f"[export.load] expected an exponent that is a float or an int of at most {_LARGEST_EXPONENT}, got {args[1:]}")
    if target in _ROUNDING.values() and count != 1:
        raise RuntimeError(f"[export.load] expected 1 argument of {target.__name__}, got {count}")
    if not isinstance(target, OpOverload):
        if keywords:
            raise RuntimeError(f"[export.load] expected no keyword arguments of {target}, got {sorted(keywords)}")
        return
    arguments = target._schema.arguments
    unknown = sorted(set(keywords) - {a.name for a in arguments})
    if unknown or count > len(arguments):
        raise RuntimeError(f"[export.load] the call of {target} has {count} positional arguments and the unknown keywords {unknown}")


assert control  # registers the operators
