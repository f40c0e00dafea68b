"""torch.autograd.forward_ad: forward-mode differentiation. Importable; torch.func.jvp computes the same."""

from __future__ import annotations

from typing import NamedTuple

from .. import _C
from .._planned import not_implemented


class UnpackedDualTensor(NamedTuple):
    """A value and its derivative."""

    primal: _C.Tensor
    tangent: _C.Tensor | None


not_implemented(
    globals(), "operators declare no forward-mode derivatives; use torch.func.jvp or torch.autograd.functional.jvp",
    "enter_dual_level exit_dual_level make_dual unpack_dual", "dual_level set_fwd_grad_enabled",
)  # fmt: skip
