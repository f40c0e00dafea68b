"""torchao.quantization.pt2e: quantization of exported models; torch.ao.quantization's observers and passes."""

from __future__ import annotations

from ....ao.quantization import *  # noqa: F403
from ....ao.quantization import HistogramObserver, fake_quantize, observer, utils
from ....ao.quantization._fake_quantize import FakeQuantize, FixedQParamsFakeQuantize, FusedMovingAvgObsFakeQuantize
from ....ao.quantization._observers import (
    FixedQParamsObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
)
from ....ao.quantization.pt2e import (
    DerivedObserverOrFakeQuantize,
    allow_exported_model_train_eval,
    model_is_exported,
    move_exported_model_to_eval,
    move_exported_model_to_train,
)
