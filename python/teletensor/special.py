"""torch.special: pointwise functions of mathematical physics and statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import _C
from ._overridable import wrap_functions as _wrap_functions

globals().update({name: fn for name, fn in vars(_C.special).items() if not name.startswith("_")})
if _TYPE_CHECKING:
    from ._C.special import *  # noqa: F403 - for static type checkers

# Functions that torch exports too, some of them under other names.
expit, psi, gammaln = _C.torch.sigmoid, _C.torch.digamma, _C.torch.lgamma
gammainc, gammaincc, multigammaln = _C.torch.igamma, _C.torch.igammac, _C.torch.mvlgamma
digamma, erf, erfc, erfinv, exp2, expm1 = (
    _C.torch.digamma, _C.torch.erf, _C.torch.erfc, _C.torch.erfinv, _C.torch.exp2, _C.torch.expm1,
)  # fmt: skip
log1p, log_softmax, logit, logsumexp, round, sinc, softmax, xlogy = (  # noqa: A001 - PyTorch's name
    _C.torch.log1p, _C.torch.log_softmax, _C.torch.logit, _C.torch.logsumexp, _C.torch.round, _C.torch.sinc,
    _C.torch.softmax, _C.torch.xlogy,
)  # fmt: skip

_wrap_functions(globals())
