"""ArmInductorQuantizer: int8 activations and weights per tensor, of linear layers and two-dimensional convolutions."""

from __future__ import annotations

import functools
from typing import Any

from .... import _C, ops
from .... import _quantized_names as q
from ....fx import Node
from ....nn import Conv2d, Linear
from ....nn import functional as F
from .._observers import MinMaxObserver
from ._operators import LINEAR, is_call
from .quantizer import QuantizationSpec
from .utils import QuantizationConfig
from .x86_inductor_quantizer import _LINEAR_UNARY, CONV2D, X86InductorQuantizer, _Stage, exactly_one
from .xnnpack_quantizer import activation_observer, weight_observer

__all__ = ["ArmInductorQuantizer", "get_default_arm_inductor_quantization_config"]

aten = ops.aten
default_quantizable_ops = {*CONV2D, *LINEAR}
quantizable_ops = default_quantizable_ops | {aten.matmul.default}


@functools.lru_cache
def get_default_arm_inductor_quantization_config(is_qat: bool = False, is_dynamic: bool = False) -> QuantizationConfig:
    """int8 activations and symmetric int8 weights, both per tensor.

    Args:
        is_qat: for prepare_qat_pt2e: FakeQuantize modules instead of observers.
        is_dynamic: the scales of activations are computed from each input when the model runs.
    """
    activation = QuantizationSpec(
        dtype=_C.int8, quant_min=-128, quant_max=127, qscheme=q.per_tensor_affine, is_dynamic=is_dynamic,
        observer_or_fake_quant_ctr=activation_observer(is_qat, is_dynamic),
    )  # fmt: skip
    weight = QuantizationSpec(
        dtype=_C.int8, quant_min=-128, quant_max=127, qscheme=q.per_tensor_symmetric, is_dynamic=False,
        observer_or_fake_quant_ctr=weight_observer(True, is_per_channel=False) if is_qat else MinMaxObserver.with_args(eps=2**-12),
    )  # fmt: skip
    return QuantizationConfig(activation, activation, weight, None, is_qat)


class _ArmStage(_Stage):
    def run(self) -> None:
        """Annotates layers, longest patterns first, then products."""
        if self.config is None or self.config.is_qat:
            self._layers(CONV2D, True, (), norm=True)
            self._layers(CONV2D, False, (), norm=True)
        self._layers(CONV2D, True, ())
        self._layers(CONV2D, False, ())
        self._layers(LINEAR, False, _LINEAR_UNARY)
        self._layers(LINEAR, False, ())
        for node in self.model.graph.nodes:
            if is_call(node, (aten.matmul.default,)):
                self._product(node)


def _global_filter(nodes: list[Node]) -> bool:
    return exactly_one(nodes, default_quantizable_ops, "default quantizable operations")


class ArmInductorQuantizer(X86InductorQuantizer):
    """Quantizes two-dimensional convolutions, with a sum behind them, and linear layers, with an activation; products on demand."""

    module_function_to_aten_operator_type: dict[Any, Any] = {
        Conv2d: aten.conv2d.default, F.conv2d: aten.conv2d.default, Linear: aten.linear.default, F.linear: aten.linear.default,
        _C.torch.matmul: aten.matmul.default,
    }  # fmt: skip
    _stage = _ArmStage
    _global_filter = staticmethod(_global_filter)
    _sharing: frozenset = frozenset()
