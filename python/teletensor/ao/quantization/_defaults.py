"""PyTorch's default observers and fake quantizations."""

from __future__ import annotations

from ... import _quantized_names as q
from ._fake_quantize import FakeQuantize, FixedQParamsFakeQuantize, FusedMovingAvgObsFakeQuantize
from ._histogram import HistogramObserver
from ._observers import (
    FixedQParamsObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    RecordingObserver,
    ReuseInputObserver,
)

_SYMMETRIC = {"dtype": q.qint8, "qscheme": q.per_tensor_symmetric}
_CHANNELS = {"dtype": q.qint8, "qscheme": q.per_channel_symmetric}
_NARROW = {"quant_min": -127, "quant_max": 127, "eps": 2**-12}
_BYTE, _SIGNED = {"quant_min": 0, "quant_max": 255}, {"quant_min": -128, "quant_max": 127}

default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer, default_debug_observer, default_reuse_input_observer = (
    PlaceholderObserver, RecordingObserver, ReuseInputObserver,
)  # fmt: skip
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_weight_observer = MinMaxObserver.with_args(**_SYMMETRIC)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(**_SYMMETRIC, **_NARROW)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(**_CHANNELS)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(**_CHANNELS, **_NARROW)
default_dynamic_quant_observer = PlaceholderObserver.with_args(dtype=q.quint8, **_BYTE, is_dynamic=True)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=q.quint8, qscheme=q.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=q.quint4x2, qscheme=q.per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(scale=2.0 / 256.0, zero_point=128, dtype=q.quint8, **_BYTE)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(scale=1.0 / 256.0, zero_point=0, dtype=q.quint8, **_BYTE)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer

default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, **_BYTE, dtype=q.quint8, qscheme=q.per_tensor_affine, reduce_range=True
)
default_weight_fake_quant = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, **_SIGNED, **_SYMMETRIC, reduce_range=False)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, is_dynamic=True, **_BYTE, dtype=q.quint8, averaging_constant=1
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, **_SIGNED, **_CHANNELS, reduce_range=False, ch_axis=0
)
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, qscheme=q.per_channel_affine_float_qparams, dtype=q.quint8, **_BYTE, ch_axis=0,
    averaging_constant=1,
)  # fmt: skip
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, qscheme=q.per_channel_affine_float_qparams, ch_axis=0, dtype=q.quint4x2,
    averaging_constant=1,
)  # fmt: skip
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(observer=default_fixed_qparams_range_neg1to1_observer)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(observer=default_fixed_qparams_range_0to1_observer)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, **_BYTE, dtype=q.quint8, qscheme=q.per_tensor_affine, reduce_range=True
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAverageMinMaxObserver, **_BYTE, dtype=q.quint8)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAverageMinMaxObserver, **_SIGNED, **_SYMMETRIC)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, **_SIGNED, **_CHANNELS
)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, **_SYMMETRIC, **_NARROW
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, **_CHANNELS, **_NARROW
)

__all__ = [name for name in globals() if name.startswith(("default_", "weight_", "per_channel_", "fused_"))]
