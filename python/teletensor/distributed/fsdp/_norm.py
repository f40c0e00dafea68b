"""The norm of gradients that are divided among ranks."""

from __future__ import annotations

import math

from ... import _C
from ..._C import Tensor
from ...nn.utils import clip_grad
from .. import _options
from .._reduce_op import ReduceOp
from ._unit import flush


def _norm_of(parameters: list, norm_type: float, device) -> Tensor:
    norms = [p.grad.detach().float().norm(norm_type) for p in parameters if p.grad is not None and p.grad.numel()]
    if not norms:
        return _C.torch.zeros((), device=device)
    return _C.torch.stack(norms).norm(norm_type)


def norm_over_ranks(parameters: list, norm_type: float) -> Tensor:
    """Returns the norm of the gradients of all ranks. Gradients of parameters that are not sharded count once.

    All ranks must call it, with the same parameters.
    """
    flush()
    sharded: dict = {}  # by group
    replicated = []
    for p in parameters:
        if hasattr(p, "_unit") and p._unit.ranks > 1:
            sharded.setdefault(p._unit.group, []).append(p)
        else:
            replicated.append(p)
    device = parameters[0].device if parameters else _C.device("cpu")
    is_max = math.isinf(norm_type)
    total = _norm_of(replicated, norm_type, device)
    total = total if is_max else total**norm_type
    for group, members in sharded.items():
        part = _norm_of(members, norm_type, device)
        part = part.clone() if is_max else part**norm_type
        group.allreduce([part], _options.AllreduceOptions(reduceOp=ReduceOp.MAX if is_max else ReduceOp.SUM)).wait()
        total = _C.torch.maximum(total, part) if is_max else total + part
    return total if is_max else total ** (1.0 / norm_type)


clip_grad.norm_over_ranks = norm_over_ranks
