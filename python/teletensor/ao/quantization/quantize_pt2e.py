"""Quantization of exported models: prepare_pt2e, prepare_qat_pt2e, convert_pt2e."""

from __future__ import annotations

from ...fx import GraphModule
from .pt2e._conv_bn import fuse_batch_norms
from .pt2e._qat import prepare_batch_norms
from .pt2e.convert import convert
from .pt2e.export_utils import disallow_train_eval
from .pt2e.prepare import prepare
from .quantizer.quantizer import Quantizer

__all__ = ["convert_pt2e", "prepare_pt2e", "prepare_qat_pt2e"]


def _checked(name: str, model: GraphModule) -> None:
    if not isinstance(model, GraphModule):
        raise TypeError(f"[{name}] expected the module() of an exported program, got {type(model).__name__}")


def prepare_pt2e(model: GraphModule, quantizer: Quantizer) -> GraphModule:
    """Inserts observers into an exported model. Run it with typical inputs afterwards, then call convert_pt2e().

    Batch norms are folded into the convolutions and linear layers before them. The model is changed, and returned.

    Args:
        model: ``torch.export.export(model, inputs).module()``.
        quantizer: annotates the graph: which tensors are quantized, and how.

    Raises:
        AssertionError, ValueError: the annotations refer to tensors that are not annotated.
    """
    _checked("prepare_pt2e", model)
    fuse_batch_norms(model)
    model = quantizer.transform_for_annotation(model)
    quantizer.annotate(model)
    quantizer.validate(model)
    return disallow_train_eval(prepare(model, False, quantizer.prepare_obs_or_fq_callback))


def prepare_qat_pt2e(model: GraphModule, quantizer: Quantizer) -> GraphModule:
    """Inserts FakeQuantize modules into an exported model in training mode. Train it afterwards, then call convert_pt2e().

    The weight of a convolution before a batch norm is quantized together with the batch norm's scale. The model is changed,
    and returned.

    Raises:
        NotImplementedError: the bias of a convolution before a batch norm is quantized.
    """
    _checked("prepare_qat_pt2e", model)
    model = quantizer.transform_for_annotation(model)
    quantizer.annotate(model)
    quantizer.validate(model)
    prepare_batch_norms(model)
    return disallow_train_eval(prepare(model, True, quantizer.prepare_obs_or_fq_callback))


def convert_pt2e(model: GraphModule, use_reference_representation: bool = False, fold_quantize: bool = True) -> GraphModule:
    """Replaces the observers of a calibrated or trained model by quantized_decomposed operators. Waits for the observed ranges.

    The result computes in float32 with quantized values; ``torch.ao.quantization.pt2e.lowering.lower_pt2e`` replaces layers
    by integer kernels. The model is changed, and returned.

    Args:
        fold_quantize: stores quantized weights in the module, as ``_frozen_param0`` and so on, instead of quantizing them in
            each run.

    Raises:
        NotImplementedError: use_reference_representation.
    """
    _checked("convert_pt2e", model)
    if not isinstance(use_reference_representation, bool):
        raise ValueError(
            "Unexpected argument type for `use_reference_representation`, please make sure you intend to pass argument "
            f"{use_reference_representation} to convert_pt2e"
        )
    if use_reference_representation:
        raise NotImplementedError("[convert_pt2e] use_reference_representation: use lower_pt2e() for integer kernels")
    return disallow_train_eval(convert(model, fold_quantize))
