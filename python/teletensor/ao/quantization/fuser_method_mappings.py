"""How sequences of modules are fused: functions by the classes of the modules."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ... import nn
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from ..nn.intrinsic import fused as nni
from ._patterns import MatchAllNode, get_combined_dict

__all__ = [
    "fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn", "fuse_linear_bn", "get_fuser_method",
    "get_fuser_method_new",
]  # fmt: skip


def _check(layer: nn.Module, bn: nn.Module, is_qat: bool, what: str) -> None:
    if layer.training != bn.training:
        raise AssertionError(f"{what} and BN both must be in the same mode (train or eval).")
    if not is_qat:
        return
    if bn.num_features != (layer.out_features if isinstance(layer, nn.Linear) else layer.out_channels):
        raise AssertionError(f"expected a batch norm of as many features as the {what.lower()} has outputs, got {bn.num_features}")
    if not bn.affine:
        raise AssertionError("Only support fusing BatchNorm2d with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError("Only support fusing BatchNorm2d with tracking_running_stats set to True")


def _for(classes: dict[type, type], conv: nn.Module, modules: tuple, mode: str) -> type:
    found = classes.get(type(conv))
    if found is None:
        raise NotImplementedError(f"Cannot fuse {mode} modules: {modules}")
    return found


def fuse_conv_bn(is_qat: bool, conv: nn.Module, bn: nn.Module) -> nn.Module:
    """A convolution that includes the batch norm, in evaluation mode; for training (``is_qat``) the pair as one module."""
    _check(conv, bn, is_qat, "Conv")
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    return _for({nn.Conv1d: nni.ConvBn1d, nn.Conv2d: nni.ConvBn2d, nn.Conv3d: nni.ConvBn3d}, conv, (conv, bn), "train")(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: nn.Module, bn: nn.Module, relu: nn.Module) -> nn.Module:
    """A convolution that includes the batch norm, and a ReLU; for training the three as one module."""
    if conv.training != relu.training:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")
    _check(conv, bn, is_qat, "Conv")
    if is_qat:
        classes = {nn.Conv1d: nni.ConvBnReLU1d, nn.Conv2d: nni.ConvBnReLU2d, nn.Conv3d: nni.ConvBnReLU3d}
        return _for(classes, conv, (conv, bn, relu), "train")(conv, bn, relu)
    classes = {nn.Conv1d: nni.ConvReLU1d, nn.Conv2d: nni.ConvReLU2d, nn.Conv3d: nni.ConvReLU3d}
    return _for(classes, conv, (conv, bn, relu), "eval")(fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: nn.Module, bn: nn.Module) -> nn.Module:
    """A linear layer that includes the batch norm; for training the pair as one module."""
    _check(linear, bn, is_qat, "Linear")
    return nni.LinearBn1d(linear, bn) if is_qat else fuse_linear_bn_eval(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: nn.Module, bn: nn.Module) -> nn.Module:
    """A transposed convolution that includes the batch norm. Raises an Exception for training, as PyTorch does."""
    if convt.training != bn.training:
        raise AssertionError("ConvTranspose and BN both must be in the same mode (train or eval).")
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")  # noqa: TRY002 - PyTorch's type
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _sequential(kind: type) -> Callable[..., nn.Module]:
    """A function that puts two modules into a fused module."""

    def fuser_method(is_qat: bool, m1: nn.Module, m2: nn.Module) -> nn.Module:
        del is_qat  # the same module serves training and evaluation
        return kind(m1, m2)

    return fuser_method


def _methods() -> dict[tuple, Callable]:
    found: dict[tuple, Callable] = {
        (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
        (nn.Linear, nn.ReLU): _sequential(nni.LinearReLU),
        (nn.BatchNorm2d, nn.ReLU): _sequential(nni.BNReLU2d),
        (nn.BatchNorm3d, nn.ReLU): _sequential(nni.BNReLU3d),
    }
    for conv, transposed, bn, relu in (
        (nn.Conv1d, nn.ConvTranspose1d, nn.BatchNorm1d, nni.ConvReLU1d),
        (nn.Conv2d, nn.ConvTranspose2d, nn.BatchNorm2d, nni.ConvReLU2d),
        (nn.Conv3d, nn.ConvTranspose3d, nn.BatchNorm3d, nni.ConvReLU3d),
    ):
        found[conv, bn], found[conv, bn, nn.ReLU] = fuse_conv_bn, fuse_conv_bn_relu
        found[conv, nn.ReLU], found[transposed, bn] = _sequential(relu), fuse_convtranspose_bn
    return found


_DEFAULT_OP_LIST_TO_FUSER_METHOD = _methods()


def get_fuser_method(op_list: tuple, additional_fuser_method_mapping: dict | None = None) -> Callable[..., nn.Module]:
    """The function that fuses modules of these classes. Raises AssertionError if there is none."""
    methods = get_combined_dict(_DEFAULT_OP_LIST_TO_FUSER_METHOD, additional_fuser_method_mapping or {})
    if methods.get(op_list) is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return methods[op_list]


def _valid_patterns(pattern: Any) -> list[Any]:
    """The pattern, and those with MatchAllNode in place of some of its parts."""
    if isinstance(pattern, (tuple, list)):
        return list(itertools.product(*map(_valid_patterns, pattern)))
    return [pattern, MatchAllNode]


def get_fuser_method_new(op_pattern: Any, fuser_method_mapping: dict[Any, Callable]) -> Callable[..., nn.Module]:
    """The function that fuses a pattern of a graph. Raises AssertionError if there is none."""
    for pattern in _valid_patterns(op_pattern):
        if fuser_method_mapping.get(pattern) is not None:
            return fuser_method_mapping[pattern]
    raise AssertionError(f"did not find fuser method for: {op_pattern} ")
