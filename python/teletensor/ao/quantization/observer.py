"""torch.ao.quantization.observer: the observers, and the default ones."""

from . import _defaults
from ._affine import AffineQuantizedObserverBase
from ._defaults import *  # noqa: F403
from ._histogram import HistogramObserver
from ._observer_base import ObserverBase, PartialWrapper, UniformQuantizationObserverBase
from ._observer_base import with_args as _with_args
from ._observer_base import with_callable_args as _with_callable_args
from ._observers import (
    FixedQParamsObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    RecordingObserver,
    ReuseInputObserver,
)
from ._post_process import _is_activation_post_process, get_observer_state_dict, load_observer_state_dict
from ._types import (
    Granularity,
    MappingType,
    PerAxis,
    PerBlock,
    PerGroup,
    PerRow,
    PerTensor,
    PerToken,
    TorchAODType,
    ZeroPointDomain,
    get_block_size,
)

_PartialWrapper, _ObserverBase = PartialWrapper, UniformQuantizationObserverBase
__all__ = [
    "AffineQuantizedObserverBase", "FixedQParamsObserver", "Granularity", "HistogramObserver", "MappingType", "MinMaxObserver",
    "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver", "NoopObserver", "ObserverBase", "PerAxis", "PerBlock",
    "PerChannelMinMaxObserver", "PerGroup", "PerRow", "PerTensor", "PerToken", "PlaceholderObserver", "RecordingObserver",
    "ReuseInputObserver", "TorchAODType", "UniformQuantizationObserverBase", "ZeroPointDomain", "_ObserverBase", "_PartialWrapper",
    "_is_activation_post_process", "_with_args", "_with_callable_args", "get_block_size", "get_observer_state_dict",
    "load_observer_state_dict", *(name for name in _defaults.__all__ if name.endswith(("observer", "observer_4bit", "to_127"))),
]  # fmt: skip
