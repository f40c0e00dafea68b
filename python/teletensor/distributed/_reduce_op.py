"""ReduceOp: how a collective combines the tensors of all ranks."""

from __future__ import annotations

import enum
import warnings

from .. import _C
from .._lazy import set_module


class RedOpType(enum.Enum):
    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class ReduceOp:
    """A reduction. ``ReduceOp.SUM`` and the other members are of type ``ReduceOp.RedOpType`` and equal ``ReduceOp(member)``.

    SUM, AVG, PRODUCT, MIN, MAX, and for integers and booleans BAND, BOR, BXOR. ``_make_nccl_premul_sum(factor)`` returns
    a PREMUL_SUM, which multiplies each rank's input by that rank's factor before the sum. AVG and PREMUL_SUM require a
    floating or complex dtype.
    """

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType

    def __init__(self, op: RedOpType):
        if not isinstance(op, RedOpType):
            raise TypeError(f"expected a member of ReduceOp, got {op!r}")
        self.op, self.factor = op, 1.0

    def __eq__(self, other) -> bool:
        if isinstance(other, ReduceOp):
            return self.op is other.op and self.factor == other.factor
        return self.op is other if isinstance(other, RedOpType) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        return (
            f"ReduceOp({self.op})"
            if self.op is not RedOpType.PREMUL_SUM
            else f"ReduceOp({self.op}, factor={self.factor})"
        )


def make_premul_sum(factor) -> ReduceOp:
    """Returns a PREMUL_SUM with this rank's factor, a number or a tensor with one element, which is read."""
    op = ReduceOp(RedOpType.PREMUL_SUM)
    op.factor = float(factor.item() if isinstance(factor, _C.Tensor) else factor)
    return op


def name_and_factor(op: ReduceOp | RedOpType) -> tuple[str, float]:
    """Returns a reduction's name in the engine's operators, and its factor."""
    if isinstance(op, RedOpType):
        if op is RedOpType.PREMUL_SUM:
            raise ValueError(
                "ReduceOp.PREMUL_SUM requires a factor: use torch.distributed._make_nccl_premul_sum(factor)"
            )
        return op.name.lower(), 1.0
    if not isinstance(op, ReduceOp):
        raise TypeError(
            f"Invalid function argument. Expected parameter `op` of type ReduceOp but got {type(op)} instead."
        )
    return op.op.name.lower(), op.factor


def supports_complex(reduceOp: ReduceOp | RedOpType) -> bool:  # noqa: N803 - PyTorch's name
    """Whether a reduction is defined for complex tensors."""
    kind = reduceOp.op if isinstance(reduceOp, ReduceOp) else reduceOp
    return kind in (RedOpType.SUM, RedOpType.AVG, RedOpType.PREMUL_SUM)


class _DeprecatedReduceOp:
    """The former name of ReduceOp."""

    __members__ = RedOpType.__members__

    def __getattr__(self, name: str) -> RedOpType:
        if name not in RedOpType.__members__:
            raise AttributeError(f"reduce_op has no attribute {name!r}")
        warnings.warn(
            "`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead",
            category=FutureWarning, stacklevel=2,
        )  # fmt: skip
        return RedOpType[name]


reduce_op = _DeprecatedReduceOp()

set_module("teletensor.distributed.distributed_c10d", ReduceOp)
