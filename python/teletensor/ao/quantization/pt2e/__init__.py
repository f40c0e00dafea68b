"""torch.ao.quantization.pt2e: the passes behind prepare_pt2e and convert_pt2e."""

from __future__ import annotations

from ...._lazy import lazy_attributes

# Imported when they are used, as those of the package around.
_NAMES = {
    "_derived": "DerivedObserverOrFakeQuantize",
    "export_utils":
        "allow_exported_model_train_eval=_allow_exported_model_train_eval model_is_exported "
        "move_exported_model_to_eval=_move_exported_model_to_eval move_exported_model_to_train=_move_exported_model_to_train",
}  # fmt: skip
__getattr__, __dir__ = lazy_attributes(globals(), ("export_utils",), _NAMES)
__all__ = [
    "DerivedObserverOrFakeQuantize", "allow_exported_model_train_eval", "model_is_exported", "move_exported_model_to_eval",
    "move_exported_model_to_train",
]  # fmt: skip
