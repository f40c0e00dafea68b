"""Invertible functions with log-determinants of their Jacobians."""

from . import constraints  # noqa: F401 - under PyTorch's name
from ._transform_types import ComposeTransform, IndependentTransform, ReshapeTransform, Transform, identity_transform
from ._transform_types import _InverseTransform as _InverseTransform  # libraries dispatch by this class
from ._transforms_elementwise import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)  # fmt: skip
from ._transforms_elementwise import clipped_sigmoid as _clipped_sigmoid  # noqa: F401 - under PyTorch's name
from ._transforms_joined import CatTransform, StackTransform
from ._transforms_vectors import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)  # fmt: skip
from .utils import (  # noqa: F401 - names that PyTorch's module has
    _sum_rightmost,
    broadcast_all,
    lazy_property,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)  # fmt: skip

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip
