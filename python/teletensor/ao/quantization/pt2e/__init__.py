"""torch.ao.quantization.pt2e: the passes behind prepare_pt2e and convert_pt2e."""

from __future__ import annotations

from ._derived import DerivedObserverOrFakeQuantize
from .export_utils import (
    _allow_exported_model_train_eval as allow_exported_model_train_eval,
)
from .export_utils import (
    _move_exported_model_to_eval as move_exported_model_to_eval,
)
from .export_utils import (
    _move_exported_model_to_train as move_exported_model_to_train,
)
from .export_utils import model_is_exported

__all__ = [
    "DerivedObserverOrFakeQuantize", "allow_exported_model_train_eval", "model_is_exported", "move_exported_model_to_eval",
    "move_exported_model_to_train",
]  # fmt: skip
