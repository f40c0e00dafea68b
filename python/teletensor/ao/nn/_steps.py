"""The steps of eager mode, which modules that observe their own values take themselves. torch.ao.quantization.quantize sets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

prepare: Callable[..., Any]
prepare_qat: Callable[..., Any]
convert: Callable[..., Any]
