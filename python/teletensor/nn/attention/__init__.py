"""torch.nn.attention: the implementations of scaled_dot_product_attention, and flex_attention."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..._lazy import lazy_attributes
from .. import dot_product_attention as _attention
from ..dot_product_attention import SDPBackend
from ._implementations import (
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
)

__all__ = [
    "SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "activate_flash_attention_impl", "current_flash_attention_impl",
    "list_flash_attention_impls", "register_flash_attention_impl", "restore_flash_attention_impl", "sdpa_kernel",
]  # fmt: skip

WARN_FOR_UNFUSED_KERNELS = False


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The implementations that scaled_dot_product_attention may use now; ``with_priority``: the preferred ones first."""
    order = (
        SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH, SDPBackend.OVERRIDEABLE,
    )  # fmt: skip
    return list(_attention.allowed) if with_priority else [b for b in order if b in _attention.allowed]


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict]:
    """Selects the implementations that scaled_dot_product_attention may use in the ``with`` block, in all threads.

    MATH stores all scores; FLASH_ATTENTION and EFFICIENT_ATTENTION are the engine's fused operator. CUDNN_ATTENTION, for
    16-bit numbers on GPUs, is cuDNN's attention and its gradient where the engine can use it (docs/gpu.md), otherwise the
    engine's own. Fused implementations are preferred in the order of ``backends``, and to MATH, unless ``set_priority``
    gives the list's order precedence.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}"
        )
    chosen = [backends] if isinstance(backends, SDPBackend) else list(dict.fromkeys(backends))
    before = _attention.allowed
    _attention.allowed = tuple(chosen if set_priority else sorted(chosen, key=lambda b: b is SDPBackend.MATH))
    try:
        yield {}
    finally:
        _attention.allowed = before

__getattr__, __dir__ = lazy_attributes(globals(), ("bias", "flex_attention"))
