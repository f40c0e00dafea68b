"""The operators that backends quantize, as configurations for given dtypes."""

from __future__ import annotations

import copy
import operator
from typing import Any

import teletensor as torch

from .... import _quantized_names as q
from .... import nn
from ....nn import functional as F
from ...nn import intrinsic as nni
from ...nn import qat as nnqat
from ...nn.intrinsic import qat as nniqat
from ...nn.quantized import reference as nnqr
from ..fuser_method_mappings import _sequential, fuse_conv_bn, fuse_conv_bn_relu, fuse_convtranspose_bn, fuse_linear_bn
from .backend_config import BackendPatternConfig, DTypeConfig, DTypeWithConstraints, ObservationType

_DIFFERENT = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
_SHARED = ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
_WEIGHTS = {"weight": 1, "bias": 2}


def _config(pattern: Any, dtypes: list[DTypeConfig], observation: ObservationType = _DIFFERENT, **values: Any) -> BackendPatternConfig:
    return BackendPatternConfig(pattern).set_dtype_configs(dtypes).set_observation_type(observation)._set(**values)


def binary(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """Sums and products, also followed by a ReLU."""
    table, found = {0: _DIFFERENT, 1: _SHARED, 2: _DIFFERENT}, []
    for function in (operator.add, torch.add, operator.mul, torch.mul):
        for pattern in ((function, nn.ReLU), (function, F.relu), (function, torch.relu), function):
            found.append(_config(pattern, dtypes, _num_tensor_args_to_observation_type=table))
    return [*found, _config(torch.matmul, dtypes)]


def _weighted(dtypes: list, root: Any, fused: dict, reference: Any, function: Any) -> list[BackendPatternConfig]:
    """A layer with a weight: ``fused`` has the classes for training by the classes of the layer and its fused forms."""
    found = []
    for kind, trained in fused.items():
        found.append(_config(kind, dtypes, root_module=root, reference_quantized_module=reference, qat_module=trained))
        found.append(_config(trained, dtypes, root_module=root, reference_quantized_module=reference))
    found.append(_config(function, dtypes, _input_type_to_index=_WEIGHTS))
    return found + [_config((function, relu), dtypes) for relu in (nn.ReLU, F.relu)]


def _fusion(dtypes: list, pattern: tuple, method: Any, fused: Any) -> BackendPatternConfig:
    return _config(pattern, dtypes, fuser_method=method, fused_module=fused)


def linear(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """Linear layers."""
    classes = {nn.Linear: nnqat.Linear, nni.LinearReLU: nniqat.LinearReLU, nni.LinearBn1d: nniqat.LinearBn1d}
    found = _weighted(dtypes, nn.Linear, classes, nnqr.Linear, F.linear)
    for relu in (nn.ReLU, F.relu):
        found.append(_fusion(dtypes, (nn.Linear, relu), _sequential(nni.LinearReLU), nni.LinearReLU))
    return [*found, _fusion(dtypes, (nn.Linear, nn.BatchNorm1d), fuse_linear_bn, nni.LinearBn1d)]


def convolutions(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """Convolutions and transposed convolutions."""
    found = []
    for n in (1, 2, 3):
        conv, transposed, bn = (getattr(nn, f"{name}{n}d") for name in ("Conv", "ConvTranspose", "BatchNorm"))
        names = (f"ConvReLU{n}d", f"ConvBn{n}d", f"ConvBnReLU{n}d")
        relu, with_norm, with_both = (getattr(nni, name) for name in names)
        classes = {conv: getattr(nnqat, f"Conv{n}d"), **{getattr(nni, name): getattr(nniqat, name) for name in names}}
        found += _weighted(dtypes, conv, classes, getattr(nnqr, f"Conv{n}d"), getattr(F, f"conv{n}d"))
        for last in (nn.ReLU, F.relu):
            found.append(_fusion(dtypes, (conv, last), _sequential(relu), relu))
            found.append(_fusion(dtypes, (conv, bn, last), fuse_conv_bn_relu, with_both))
        found.append(_fusion(dtypes, (conv, bn), fuse_conv_bn, with_norm))
        reference = {"root_module": transposed, "reference_quantized_module": getattr(nnqr, f"ConvTranspose{n}d")}
        found.append(_config(transposed, dtypes, **reference))
        found.append(_config((transposed, bn), dtypes, fuser_method=fuse_convtranspose_bn, **reference))
        found.append(_config(getattr(F, f"conv_transpose{n}d"), dtypes, _input_type_to_index=_WEIGHTS))
    return found


def concatenation(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """torch.cat."""
    return [_config(torch.cat, dtypes, _SHARED)]


def layer_norms(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """Layer norms."""
    return [_config(nn.LayerNorm, dtypes), _config(F.layer_norm, dtypes, _input_type_to_index={"weight": 2, "bias": 3})]


def defaults(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """Activations and norms whose results have their own observers."""
    kinds = (
        nn.ELU, nn.LeakyReLU, nn.Hardswish, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.Dropout, nn.PReLU, F.elu,
        F.hardswish, F.leaky_relu, F.dropout,
    )  # fmt: skip
    return [
        *(_config(kind, dtypes) for kind in kinds), _config(F.group_norm, dtypes, _input_type_to_index={"weight": 2, "bias": 3}),
        _config(F.instance_norm, dtypes, _input_type_to_index={"weight": 3, "bias": 4}),
    ]  # fmt: skip


def fixed(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """Operators whose results have a known range."""
    ranges = {
        (1 / 256, 0): (nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid, torch.sigmoid, "sigmoid", "sigmoid_",
                       nn.Softmax),
        (2 / 256, 128): (nn.Tanh, torch.tanh, "tanh", "tanh_"),
    }  # fmt: skip
    found = []
    for (scale, point), kinds in ranges.items():
        limits = {"quant_min_lower_bound": 0, "quant_max_upper_bound": 255, "scale_exact_match": scale, "zero_point_exact_match": point}
        own = copy.deepcopy(dtypes)
        for config in own:
            for name in ("input_dtype_with_constraints", "output_dtype_with_constraints"):
                if getattr(config, name).dtype == q.quint8:
                    setattr(config, name, DTypeWithConstraints(q.quint8, **limits))
        found += [_config(kind, own) for kind in kinds]
    return found


def shared(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """Operators whose results have their input's scale."""
    kinds = (
        nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.Hardtanh,
        nn.Identity, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.PixelShuffle, nn.PixelUnshuffle, nn.ReLU, nn.ReLU6,
        torch.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d, F.hardtanh, F.hardtanh_, F.interpolate, F.max_pool1d,
        F.max_pool2d, F.max_pool3d, F.pixel_shuffle, F.pixel_unshuffle, F.relu, F.relu6, torch.avg_pool1d, F.avg_pool2d,
        F.avg_pool3d, torch.clamp, torch.flatten, torch.mean, torch.narrow, torch.repeat_interleave, torch.transpose, torch.squeeze,
        torch.stack, torch.unsqueeze, operator.floordiv, "contiguous", "clamp", "detach", "detach_", "mean", "permute", "repeat",
        "repeat_interleave", "reshape", "resize_", "relu", "relu_", "squeeze", "squeeze_", "transpose", "unsqueeze", "unsqueeze_",
        "view",
    )  # fmt: skip
    return [_config(kind, dtypes, _SHARED) for kind in kinds]


def batch_norms(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """Batch norms, also followed by a ReLU."""
    found = []
    for bn, fused in ((nn.BatchNorm2d, nni.BNReLU2d), (nn.BatchNorm3d, nni.BNReLU3d)):
        found += [_fusion(dtypes, (bn, relu), _sequential(fused), fused) for relu in (nn.ReLU, F.relu)]
        found += [_config(bn, dtypes), _config(fused, dtypes)]
    return found


def recurrent(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """Recurrent layers and cells."""
    names = ("GRUCell", "LSTMCell", "RNNCell", "LSTM", "GRU")
    return [
        _config(getattr(nn, n), dtypes, root_module=getattr(nn, n), reference_quantized_module=getattr(nnqr, n)) for n in names
    ]


def embeddings(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """Embeddings."""
    found = []
    for name in ("Embedding", "EmbeddingBag"):
        kind, reference = getattr(nn, name), getattr(nnqr, name)
        found.append(
            _config(kind, dtypes, root_module=kind, reference_quantized_module=reference, qat_module=getattr(nnqat, name))
        )
        found.append(_config(getattr(nnqat, name), dtypes, root_module=kind, reference_quantized_module=reference))
    return found


def information(dtypes: list[DTypeConfig]) -> list[BackendPatternConfig]:
    """Questions about a tensor."""
    return [_config(kind, dtypes, ObservationType.INPUT_OUTPUT_NOT_OBSERVED) for kind in ("shape", "size")]
