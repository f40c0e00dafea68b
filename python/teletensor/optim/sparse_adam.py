"""SparseAdam: Adam for sparse gradients, which changes only the rows that the gradients contain."""

from __future__ import annotations

import math

from .. import _C
from .._C import Tensor
from .._sparse.tensor import like
from .optimizer import Optimizer

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam whose moments and parameters change only where the gradient, of layout sparse_coo, has elements ("lazy Adam").

    step() raises RuntimeError for strided gradients, as in PyTorch.
    """

    def __init__(self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, maximize: bool = False):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        found = [
            [i, j] for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if p.is_complex()
        ]
        if found:
            raise ValueError(f"Complex params at indices {found}: SparseAdam does not support complex parameters")
        sparse = [[i, j] for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if p.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")

    def _update(self, group, params, grads) -> None:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def _update_sparse(self, group, param, grad) -> None:
        state = self.state[param]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = (_C.torch.zeros_like(param.detach()) for _ in range(2))
        state["step"] += 1
        step(
            param.detach(), grad.detach(), state["exp_avg"], state["exp_avg_sq"], state["step"], eps=group["eps"], beta1=group["betas"][0],
            beta2=group["betas"][1], lr=float(group["lr"]), maximize=group["maximize"],
        )  # fmt: skip


def step(
    param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, number: int, *, eps: float, beta1: float, beta2: float, lr: float,
    maximize: bool,
) -> None:  # fmt: skip
    """One parameter's step; `number` counts steps, from 1."""
    grad = grad.coalesce()
    if grad.sparse_dim() == 1 and all(t.is_contiguous() for t in (param, exp_avg, exp_avg_sq)):
        _C.ops.sparse_adam_step(
            param, exp_avg, exp_avg_sq, grad._indices()[0], grad._values(), lr, beta1, beta2, eps, number, maximize
        )
        return
    values = -grad._values() if maximize else grad._values()
    means, squares = (t.sparse_mask(grad)._values() for t in (exp_avg, exp_avg_sq))
    mean_change = (values - means) * (1 - beta1)
    square_change = (values * values - squares) * (1 - beta2)
    exp_avg.add_(like(grad, mean_change))
    exp_avg_sq.add_(like(grad, square_change))
    rate = lr * math.sqrt(1 - beta2**number) / (1 - beta1**number)
    change = (mean_change + means) / ((square_change + squares).sqrt() + eps)
    param.add_(like(grad, change * -rate))
