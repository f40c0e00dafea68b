"""QConfig: which observers a module's activations and weights get; the default configurations."""

from __future__ import annotations

import copy
import warnings
from collections import namedtuple
from typing import Any, Optional

from ... import _C
from ... import _quantized_names as q
from ...nn import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Identity, Module
from . import _defaults as d
from ._fake_quantize import FakeQuantize, FakeQuantizeBase, FusedMovingAvgObsFakeQuantize
from ._histogram import HistogramObserver
from ._observer_base import PartialWrapper
from ._observers import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    ReuseInputObserver,
)

__all__ = [
    "QConfig", "QConfigAny", "QConfigDynamic", "default_activation_only_qconfig", "default_debug_qconfig",
    "default_dynamic_qat_qconfig", "default_dynamic_qconfig", "default_embedding_qat_qconfig", "default_embedding_qat_qconfig_4bit",
    "default_per_channel_qconfig", "default_per_channel_symmetric_qnnpack_qat_qconfig",
    "default_per_channel_symmetric_qnnpack_qconfig", "default_qat_qconfig", "default_qat_qconfig_v2", "default_qconfig",
    "default_quint8_weight_qconfig", "default_reuse_input_qconfig", "default_symmetric_qnnpack_qat_qconfig",
    "default_symmetric_qnnpack_qconfig", "default_weight_only_qconfig", "float16_dynamic_qconfig", "float16_static_qconfig",
    "float_qparams_weight_only_qconfig", "float_qparams_weight_only_qconfig_4bit", "get_default_qat_qconfig", "get_default_qconfig",
    "per_channel_dynamic_qconfig", "qconfig_equals",
]  # fmt: skip

_INSTANCE = (
    " received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to override arguments to constructor "
    "if needed"
)


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """Constructors of the observers (or fake quantizations) of a module's activations and weights."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError("QConfig" + _INSTANCE)
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """PyTorch's older class for dynamic quantization; use QConfig."""

    __slots__ = ()

    def __new__(cls, activation: Any = Identity, weight: Any = Identity) -> QConfigDynamic:
        if isinstance(weight, Module):
            raise ValueError("QConfigDynamic" + _INSTANCE)
        return super().__new__(cls, activation, weight)


QConfigAny = Optional[QConfig]

default_qconfig = QConfig(d.default_observer, d.default_weight_observer)
default_debug_qconfig = QConfig(d.default_debug_observer, d.default_weight_observer)
default_per_channel_qconfig = QConfig(d.default_observer, d.default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(d.default_dynamic_quant_observer, d.default_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=_C.float16, is_dynamic=True), PlaceholderObserver.with_args(dtype=_C.float16)
)
float16_static_qconfig = QConfig(PlaceholderObserver.with_args(dtype=_C.float16), PlaceholderObserver.with_args(dtype=_C.float16))
per_channel_dynamic_qconfig = QConfig(d.default_dynamic_quant_observer, d.default_per_channel_weight_observer)
float_qparams_weight_only_qconfig = QConfig(d.default_placeholder_observer, d.default_float_qparams_observer)
float_qparams_weight_only_qconfig_4bit = QConfig(d.default_placeholder_observer, d.default_float_qparams_observer_4bit)
default_qat_qconfig = QConfig(d.default_fake_quant, d.default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(d.default_dynamic_fake_quant, d.default_weight_fake_quant)
default_weight_only_qconfig = QConfig(Identity, d.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(d.default_fake_quant, Identity)
default_qat_qconfig_v2 = QConfig(d.default_fused_act_fake_quant, d.default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(d.default_reuse_input_observer, NoopObserver)
_SIGNED = {"dtype": q.qint8, "reduce_range": False, "eps": 2**-12}
default_symmetric_qnnpack_qconfig = QConfig(HistogramObserver.with_args(**_SIGNED), d.weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    HistogramObserver.with_args(**_SIGNED), d.per_channel_weight_observer_range_neg_127_to_127
)
default_embedding_qat_qconfig = QConfig(NoopObserver.with_args(dtype=_C.float32), d.default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(NoopObserver.with_args(dtype=_C.float32), d.default_embedding_fake_quant_4bit)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)
_SYMMETRIC_ACTIVATION = {"observer": MovingAverageMinMaxObserver, "quant_min": -128, "quant_max": 127, **_SIGNED}
default_symmetric_qnnpack_qat_qconfig = QConfig(
    FusedMovingAvgObsFakeQuantize.with_args(**_SYMMETRIC_ACTIVATION), d.fused_wt_fake_quant_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    FusedMovingAvgObsFakeQuantize.with_args(**_SYMMETRIC_ACTIVATION), d.fused_per_channel_wt_fake_quant_range_neg_127_to_127
)
_default_fp32_placeholder_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=_C.float32), PlaceholderObserver.with_args(dtype=_C.float32)
)
_default_quint8_placeholder_qconfig = QConfig(PlaceholderObserver.with_args(dtype=q.quint8), None)

_BACKENDS = ["fbgemm", "x86", "qnnpack", "onednn"]
# Reduced ranges keep 16-bit sums of products from overflowing on CPUs without VNNI.
_REDUCE_RANGE = {"fbgemm": {"reduce_range": True}, "x86": {"reduce_range": True}, "qnnpack": {"reduce_range": False}}


def _check(backend: str, version: int, versions: tuple[int, ...], name: str) -> None:
    if backend not in _BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {_BACKENDS}")
    if version not in versions:
        allowed = " or ".join(map(str, versions))
        raise AssertionError(f"Version number: {version} in {name} is not supported. Version number must be {allowed}")


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """The configuration for post-training quantization on a backend: fbgemm, x86, qnnpack or onednn."""
    _check(backend, version, (0,), "get_default_qconfig")
    weight = d.default_weight_observer if backend == "qnnpack" else d.default_per_channel_weight_observer
    return QConfig(HistogramObserver.with_args(**_REDUCE_RANGE.get(backend, {"reduce_range": False})), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """The configuration for quantization-aware training. Version 0 uses FakeQuantize, version 1 the fused class."""
    _check(backend, version, (0, 1), "get_default_qat_qconfig")
    fake = FusedMovingAvgObsFakeQuantize if version else FakeQuantize
    activation = fake.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **_REDUCE_RANGE.get(backend, {}))
    per_tensor = backend == "qnnpack"
    if version:
        return QConfig(activation, d.default_fused_wt_fake_quant if per_tensor else d.default_fused_per_channel_wt_fake_quant)
    return QConfig(activation, d.default_weight_fake_quant if per_tensor else d.default_per_channel_weight_fake_quant)


def _assert_valid_qconfig(qconfig: QConfig | None, mod: Module) -> None:
    """Raises AssertionError for a per-channel observer of a transposed convolution's weight."""
    if qconfig is None or not isinstance(mod, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) or qconfig.weight is None:
        return
    if isinstance(qconfig.weight(), (PerChannelMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
        raise AssertionError("Per channel weight observer is not supported yet for ConvTranspose{n}d.")


def _add_module_to_qconfig_obs_ctr(qconfig: Any, module: Module | None) -> Any:
    """The configuration whose constructors create observers on the module's device."""
    if module is None or qconfig is None or qconfig._fields != ("activation", "weight"):
        return qconfig

    def factory_kwargs() -> dict | None:
        devices = {p.device for p in module.parameters()} | {b.device for b in module.buffers()}
        return {"device": next(iter(devices))} if devices else None

    def on_device(constructor: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                constructor.with_args(factory_kwargs=None)()
            return constructor.with_callable_args(factory_kwargs=factory_kwargs)
        except (AttributeError, TypeError):  # no constructor of observers, or without this argument
            return constructor

    return QConfig(on_device(qconfig.activation), on_device(qconfig.weight))


def _same(a: Any, b: Any) -> bool:
    """Whether two constructors are the same class with the same arguments."""
    if not (isinstance(a, PartialWrapper) and isinstance(b, PartialWrapper)):
        return bool(a == b)
    first, second = copy.copy(a.p.keywords), copy.copy(b.p.keywords)
    if "observer" in first and "observer" in second and not _same(first.pop("observer"), second.pop("observer")):
        return False
    return bool(a.p.func == b.p.func and a.p.args == b.p.args and first == second)


def qconfig_equals(q1: QConfigAny, q2: QConfigAny) -> bool:
    """Whether two configurations are the same."""
    if q1 is None or q2 is None:
        return q1 is q2
    try:
        return _same(q1.activation, q2.activation) and _same(q1.weight, q2.weight)
    except AttributeError:
        return bool(q1 == q2)


def _activation_is_memoryless(qconfig: QConfig) -> bool:
    """Whether the activations' observer forgets earlier tensors: a moving average whose constant is 1."""
    activation = qconfig.activation()
    if isinstance(activation, FakeQuantizeBase):
        activation = getattr(activation, "activation_post_process", activation)
    return getattr(activation, "averaging_constant", None) == 1


def _is_reuse_input_qconfig(qconfig: QConfig | None) -> bool:
    """Whether an operator uses the observer of its input."""
    return qconfig is not None and isinstance(qconfig.activation(), ReuseInputObserver) and isinstance(qconfig.weight(), NoopObserver)
