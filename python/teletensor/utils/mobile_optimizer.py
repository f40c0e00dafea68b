"""torch.utils.mobile_optimizer: for TorchScript modules on phones."""

from __future__ import annotations

import enum

from .._not_implemented import not_implemented

__all__ = ["LintCode", "generate_mobile_module_lints", "optimize_for_mobile"]  # noqa: F822 - defined below


class LintCode(enum.Enum):
    """Findings of generate_mobile_module_lints."""

    BUNDLED_INPUT = 1
    REQUIRES_GRAD = 2
    DROPOUT = 3
    BATCHNORM = 4


not_implemented(globals(), "there is no TorchScript compiler", "generate_mobile_module_lints optimize_for_mobile")
