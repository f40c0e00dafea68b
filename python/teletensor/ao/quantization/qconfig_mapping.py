"""QConfigMapping: which configuration each operator or module of a graph gets; the default mappings."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import teletensor as torch

from ... import nn
from ...nn import functional as F
from . import _defaults as d
from . import qconfig as c
from ._fake_quantize import FixedQParamsFakeQuantize
from .qconfig import QConfig, QConfigAny

__all__ = [
    "QConfigMapping", "get_default_qat_qconfig_dict", "get_default_qat_qconfig_mapping", "get_default_qconfig_dict",
    "get_default_qconfig_mapping",
]  # fmt: skip

_0TO1, _NEG1TO1 = d.default_fixed_qparams_range_0to1_observer, d.default_fixed_qparams_range_neg1to1_observer


def _fixed() -> dict[Any, Any]:
    """The observers of operators whose results have a known range."""
    zero = (nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid, torch.sigmoid, "sigmoid", "sigmoid_", nn.Softmax)
    return {**dict.fromkeys(zero, _0TO1), **dict.fromkeys((nn.Tanh, torch.tanh, "tanh", "tanh_"), _NEG1TO1)}


_FIXED_QPARAMS_OP_TO_OBSERVER = _fixed()
_STYLES = (
    "global_qconfig", "object_type_qconfigs", "module_name_regex_qconfigs", "module_name_qconfigs",
    "module_name_object_type_order_qconfigs",
)  # fmt: skip


class QConfigMapping:
    """Configurations by the type of an operator, by regular expressions of modules' names, by names, or for all.

    The most specific one decides: a module's name and an operator's number in it, a name, an expression, a type, the global one.
    """

    def __init__(self) -> None:
        self.global_qconfig: QConfigAny = None
        self.object_type_qconfigs: OrderedDict[Callable | str, QConfigAny] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[tuple[str, Callable, int], QConfigAny] = OrderedDict()

    def set_global(self, global_qconfig: QConfigAny) -> QConfigMapping:
        """Sets the configuration of everything that has no other."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Callable | str, qconfig: QConfigAny) -> QConfigMapping:
        """Sets the configuration of a module's class, a function, or the name of a method."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: QConfigAny) -> QConfigMapping:
        """Sets the configuration of modules whose names match a regular expression. The first that matches decides."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: QConfigAny) -> QConfigMapping:
        """Sets the configuration of a module and of the modules in it."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Callable, index: int, qconfig: QConfigAny
    ) -> QConfigMapping:
        """Sets the configuration of the index-th operator of a type that a module calls."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def __repr__(self) -> str:
        output = type(self).__name__ + " ("
        for style in _STYLES:
            value = getattr(self, style)
            output += f"\n {style}"
            if isinstance(value, OrderedDict) and value:
                output += "".join(f"\n  {key}: {qconfig}" for key, qconfig in value.items())
            else:
                output += f"\n  {value}"
        return output + "\n)"

    def to_dict(self) -> dict[str, Any]:
        """The mapping in PyTorch's older form."""
        return {
            "": self.global_qconfig,
            "object_type": list(self.object_type_qconfigs.items()),
            "module_name_regex": list(self.module_name_regex_qconfigs.items()),
            "module_name": list(self.module_name_qconfigs.items()),
            "module_name_object_type_order": [(*k, v) for k, v in self.module_name_object_type_order_qconfigs.items()],
        }

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """The mapping of PyTorch's older form."""
        mapping = cls()
        if "" in qconfig_dict:
            mapping.set_global(qconfig_dict[""])
        for name in ("object_type", "module_name_regex", "module_name", "module_name_object_type_order"):
            for row in qconfig_dict.get(name, []):
                getattr(mapping, f"set_{name}")(*row)
        return mapping


def _mapping(is_qat: bool, backend: str, version: int) -> QConfigMapping:
    base = c.get_default_qat_qconfig(backend, version) if is_qat else c.get_default_qconfig(backend, version)
    weight = d.default_weight_fake_quant if is_qat else d.default_weight_observer
    transposed = QConfig(base.activation, weight) if backend in ("fbgemm", "x86") else base
    norm = QConfig(base.activation, d.default_placeholder_observer)
    mapping = QConfigMapping().set_global(base).set_object_type("reshape", c.default_reuse_input_qconfig)
    for kind in (
        nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d,
    ):  # fmt: skip
        mapping.set_object_type(kind, transposed)
    mapping.set_object_type(F.layer_norm, norm).set_object_type(nn.LayerNorm, norm)
    mapping.set_object_type(nn.PReLU, c.default_quint8_weight_qconfig)
    fixed = {
        observer: QConfig(FixedQParamsFakeQuantize.with_args(observer=observer) if is_qat else observer, weight)
        for observer in (_0TO1, _NEG1TO1)
    }
    for kind, observer in _FIXED_QPARAMS_OP_TO_OBSERVER.items():
        mapping.set_object_type(kind, fixed[observer])
    return mapping


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """The mapping for post-training quantization on a backend: fbgemm, x86, qnnpack or onednn."""
    return _mapping(False, backend, version)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """The mapping for quantization-aware training on a backend."""
    return _mapping(True, backend, version)


def _with_default(mapping: QConfigMapping, qconfig: QConfig) -> QConfigMapping:
    mapping.set_global(qconfig)
    for kind in mapping.object_type_qconfigs:
        if kind not in _FIXED_QPARAMS_OP_TO_OBSERVER:
            mapping.set_object_type(kind, qconfig)
    return mapping


def _get_symmetric_qnnpack_qconfig_mapping() -> QConfigMapping:
    """The mapping for signed activations and weights on qnnpack."""
    return _with_default(get_default_qconfig_mapping("qnnpack"), c.default_symmetric_qnnpack_qconfig)


def _get_symmetric_qnnpack_qat_qconfig_mapping() -> QConfigMapping:
    """The mapping for quantization-aware training with signed activations and weights on qnnpack."""
    return _with_default(get_default_qat_qconfig_mapping("qnnpack"), c.default_symmetric_qnnpack_qat_qconfig)


def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict[str, Any]:
    """The mapping in its older form; use get_default_qconfig_mapping."""
    warnings.warn("use get_default_qconfig_mapping instead", FutureWarning, stacklevel=2)
    return get_default_qconfig_mapping(backend, version).to_dict()


def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> dict[str, Any]:
    """The mapping in its older form; use get_default_qat_qconfig_mapping."""
    warnings.warn("use get_default_qat_qconfig_mapping instead", FutureWarning, stacklevel=2)
    return get_default_qat_qconfig_mapping(backend, version).to_dict()
