"""torch.backends.cuda: precision of products, and settings without effect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .._functions import get_float32_matmul_precision, set_float32_matmul_precision
from .._lazy import lazy_attributes
from ._precision import Part

__all__ = [
    "cudnn_sdp_enabled", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp",
    "flash_sdp_enabled", "is_built", "is_flash_attention_available", "math_sdp_enabled", "matmul",
    "mem_efficient_sdp_enabled", "preferred_linalg_library", "sdp_kernel",
]  # fmt: skip


class _Matmul(Part):
    """torch.backends.cuda.matmul: allow_tf32 is an alias of set_float32_matmul_precision. Other settings have no effect."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        """Whether GPUs may multiply float32 in TF32."""
        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        set_float32_matmul_precision("high" if allowed else "highest")


matmul = _Matmul("cuda.matmul")


def is_built() -> bool:
    """Always True: engines with GPUs are supported."""
    return True


def _attention_setting(name: str, backend: str):
    def enable(enabled: bool) -> None:
        from ..nn import dot_product_attention as attention

        attention.allow(attention.SDPBackend[backend], bool(enabled))

    def enabled() -> bool:
        from ..nn import dot_product_attention as attention

        return attention.SDPBackend[backend] in attention.allowed

    enable.__name__ = f"enable_{name}_sdp"
    enable.__doc__ = f"Whether scaled_dot_product_attention may use SDPBackend.{backend}; see torch.nn.attention.sdpa_kernel."
    enabled.__name__, enabled.__doc__ = f"{name}_sdp_enabled", f"Whether SDPBackend.{backend} may be used."
    return enable, enabled


enable_flash_sdp, flash_sdp_enabled = _attention_setting("flash", "FLASH_ATTENTION")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _attention_setting("mem_efficient", "EFFICIENT_ATTENTION")
enable_math_sdp, math_sdp_enabled = _attention_setting("math", "MATH")
enable_cudnn_sdp, cudnn_sdp_enabled = _attention_setting("cudnn", "CUDNN_ATTENTION")


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict]:
    """The older form of torch.nn.attention.sdpa_kernel."""
    from ..nn.attention import SDPBackend, sdpa_kernel

    wanted = {
        SDPBackend.CUDNN_ATTENTION: enable_cudnn, SDPBackend.FLASH_ATTENTION: enable_flash, SDPBackend.MATH: enable_math,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
    }  # fmt: skip
    with sdpa_kernel([backend for backend, enabled in wanted.items() if enabled]) as context:
        yield context


def is_flash_attention_available() -> bool:
    """Always False: PyTorch's kernels are not used; the engine's attention needs no setting."""
    return False


def preferred_linalg_library(backend: str | None = None) -> str:
    """Always "default": the engine uses cuSOLVER. Raises NotImplementedError for another backend."""
    if backend not in (None, "default", "cusolver"):
        raise NotImplementedError(f"[preferred_linalg_library] the engine uses cuSOLVER, got {backend!r}")
    return "default"


__getattr__, __dir__ = lazy_attributes(globals(), (), {"nn.dot_product_attention": "SDPBackend"}, package="teletensor")
