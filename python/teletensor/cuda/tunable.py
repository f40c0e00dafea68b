"""torch.cuda.tunable: autotuning of matrix products, which the engine does itself."""

from __future__ import annotations

from .._not_implemented import not_implemented

__all__ = [  # noqa: F822 - defined below
    "enable", "get_filename", "get_max_tuning_duration", "get_max_tuning_iterations", "get_results",
    "get_rotating_buffer_size", "get_validators", "is_enabled", "mgpu_tune_gemm_in_file", "read_file",
    "record_untuned_enable", "record_untuned_is_enabled", "set_filename", "set_max_tuning_duration",
    "set_max_tuning_iterations", "set_numerical_check_tolerances", "set_rotating_buffer_size", "tune_gemm_in_file",
    "tuning_enable", "tuning_is_enabled",
]  # fmt: skip


def is_enabled() -> bool:
    """Returns False."""
    return False


def tuning_is_enabled() -> bool:
    """Returns False."""
    return False


def record_untuned_is_enabled() -> bool:
    """Returns False."""
    return False


not_implemented(
    globals(), "the engine selects its kernels itself",
    "enable get_filename get_max_tuning_duration get_max_tuning_iterations get_results get_rotating_buffer_size get_validators "
    "mgpu_tune_gemm_in_file read_file record_untuned_enable set_filename set_max_tuning_duration set_max_tuning_iterations "
    "set_numerical_check_tolerances set_rotating_buffer_size tune_gemm_in_file tuning_enable",
)  # fmt: skip
