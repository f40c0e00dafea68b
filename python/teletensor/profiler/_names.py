"""PyTorch's names of what a profile recorded: functions that the program called, operators, kernels and nodes of the tape.

A kernel or a node has the name of PyTorch's operator or node that computes the same; others have the engine's name.
"""

from __future__ import annotations

import functools

from .. import _C
from .._library import aten

# Operators of the engine that have another name in PyTorch.
_OPERATORS = {
    "arange_from": "arange", "assign": "copy_", "attention": "scaled_dot_product_attention", "clamp_between": "clamp",
    "cross_entropy": "cross_entropy_loss", "index_masked": "index", "max_all": "max", "max_dim": "max", "max_other": "max",
    "median_dim": "median", "min_all": "min", "min_dim": "min", "min_other": "min", "nanmedian_dim": "nanmedian", "nll_loss": "nll_loss_nd",
    "norm_named": "norm", "normal_from": "normal", "pad": "constant_pad_nd", "randint_from": "randint", "scatter_value": "scatter",
    "sort_stable": "sort", "squeeze_dim": "squeeze", "std_all": "std", "std_dim": "std", "std_mean_all": "std_mean",
    "std_mean_dim": "std_mean", "to_device": "_to_copy", "to_dtype": "_to_copy", "var_all": "var", "var_dim": "var",
    "var_mean_all": "var_mean", "var_mean_dim": "var_mean", "vector_norm": "linalg_vector_norm", "view_of_dtype": "view",
}  # fmt: skip
# Operators of the engine, or their kernels, that compute what an operator does that PyTorch's function calls.
_KERNELS = {
    "batch_norm_backward": "native_batch_norm_backward", "batch_norm_forward": "native_batch_norm",
    "dropout_forward": "native_dropout", "gelu_erf": "gelu", "gelu_erf_backward": "gelu_backward", "gelu_tanh": "gelu",
    "gelu_tanh_backward": "gelu_backward", "embedding_backward": "embedding_dense_backward",
    "group_norm_backward": "native_group_norm_backward", "group_norm_forward": "native_group_norm",
    "layer_norm_backward": "native_layer_norm_backward", "layer_norm_forward": "native_layer_norm",
    "log_softmax": "_log_softmax", "log_softmax_backward": "_log_softmax_backward_data", "nll_loss_backward": "nll_loss_backward",
    "nll_loss_forward": "nll_loss_forward", "silu_backward": "silu_backward", "sigmoid_backward": "sigmoid_backward",
    "softmax": "_softmax", "softmax_backward": "_softmax_backward_data", "tanh_backward": "tanh_backward",
    "threshold_backward": "threshold_backward", "true_divide": "div",
}  # fmt: skip
# Functions and methods whose operator has another name.
_FUNCTIONS = {
    "cross_entropy": "cross_entropy_loss", "logsigmoid": "log_sigmoid", "nll_loss": "nll_loss_nd", "__rsub__": "rsub",
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__floordiv__": "floor_divide",
}  # fmt: skip
# Functions with the name of an operator, which PyTorch does not record.
_NOT_RECORDED = frozenset(("is_complex", "is_floating_point", "numel", "requires_grad_", "size", "stride"))
# Nodes of operators whose node has another name in PyTorch.
_NODES = {
    "assign": "torch::autograd::CopyBackwards", "chunk": "SplitBackward0", "contiguous": "CloneBackward0",
    "convolution_input": "ConvolutionBackward0", "cross_entropy_forward": "CrossEntropyLossBackward0", "gelu_erf": "GeluBackward0",
    "gelu_tanh": "GeluBackward0", "dropout_forward": "NativeDropoutBackward0", "flatten": "ViewBackward0", "index_masked": "IndexBackward0",
    "max_all": "MaxBackward1", "max_dim": "MaxBackward0", "min_all": "MinBackward1", "min_dim": "MinBackward0",
    "movedim": "PermuteBackward0", "nll_loss_forward": "NllLossBackward0", "reshape": "ViewBackward0",
    "squeeze_dim": "SqueezeBackward1", "true_divide": "DivBackward0", "unflatten": "ViewBackward0", "view_as": "ViewBackward0",
    **{f"{name}_norm_forward": f"Native{name.title()}NormBackward0" for name in ("batch", "layer", "group")},
}  # fmt: skip
# Functions that are composed of several operators, with the operators of PyTorch that they stand for.
COMPOSITES = {"scaled_dot_product_attention": ("scaled_dot_product_attention", "_scaled_dot_product_attention_math")}
_PRODUCTS = {(1, 1): "dot", (1, 2): "mv", (2, 2): "mm"}  # by dimensions, the smaller first
_EVALUATION = "autograd::engine::evaluate_function: "


def _product(first: int, second: int) -> str:
    """PyTorch's operator for a product of tensors with these numbers of dimensions, of which it folds the leading ones."""
    smaller, larger = min(first, second), max(first, second)
    return "bmm" if smaller > 2 else _PRODUCTS[smaller, min(larger, 2)]


@functools.cache
def operator_name(name: str) -> str:
    """The name of an operator of the engine that the program called."""
    found = _OPERATORS.get(name, name)
    if found != name or aten.packet(name) is not None or hasattr(_C.torch, name) or hasattr(_C.functional, name):
        return f"aten::{found}"
    return kernel_name(name, [])


def kernel_name(name: str, ranks: list[int]) -> str:
    """The name of a kernel with tensors of these numbers of dimensions."""
    if name == "linear" and ranks:
        return "aten::addmm" if len(ranks) == 3 else "aten::mm"
    if name == "matmul" and ranks:
        return f"aten::{_product(ranks[0], ranks[1])}"
    if name in _KERNELS:
        return f"aten::{_KERNELS[name]}"
    return operator_name(name) if name in _OPERATORS or aten.packet(name) is not None else f"teletensor::{name}"


def in_place_name(name: str) -> str:
    """The name of an operator that writes to its first argument: aten::add_ for aten::add."""
    namespace, _, base = name.rpartition("::")
    return f"{name}_" if namespace == "aten" and aten.packet(f"{base}_") is not None else name


@functools.cache
def function_name(name: str) -> str | None:
    """The operator of a function that the program called; None if it is no operator in PyTorch.

    Args:
        name: an operator's Python name, such as "add_", or module and name of a function that is written in Python.
    """
    module, _, name = name.rpartition(".")
    place = module.rpartition(".")[2]
    if module.startswith("teletensor.") and place in ("linalg", "fft", "special"):
        name = f"{place}_{name}"
    name = _FUNCTIONS.get(name, name)
    return f"aten::{name}" if name not in _NOT_RECORDED and aten.packet(name) is not None else None


@functools.cache
def node_name(form: str) -> str:
    """The name of a node of the tape (Node::form() in autograd/nodes)."""
    operator, colon, arguments = form.partition(":")
    if not colon:
        return f"torch::autograd::{form}" if form in ("AccumulateGrad", "CopySlices") else f"{form}0"
    if operator == "linear":
        return "MmBackward0" if arguments.endswith("-") else "AddmmBackward0"
    if operator == "matmul":
        first, second = (int(mark) if mark.isdigit() else 3 for mark in arguments)
        return f"{_product(first, second).title()}Backward0"
    if operator in _NODES:
        return _NODES[operator]
    name = "".join(part.title() for part in _OPERATORS.get(operator, operator).split("_"))
    if operator in ("sum", "mean", "prod"):  # another node if it reduces some dimensions only
        return f"{name}Backward{int(arguments[1] != '-')}"
    return f"{name}Backward{int(operator == 'pow' and arguments[1] != 'v')}"


def evaluation_name(form: str) -> str:
    """The name of a node's evaluation: its run, and the delivery of its gradients."""
    return _EVALUATION + node_name(form)
