"""Calls with DTensors that equal earlier ones, with other values. Each function runs on all ranks."""

from __future__ import annotations

import teletensor as torch
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.tensor import DTensor, Replicate, Shard, _repeated, distribute_tensor
from teletensor.distributed.tensor.experimental import register_sharding

F = torch.nn.functional
# Expressions of x, y (4 x 6) and w (6 x 6).
EXPRESSIONS = (
    "x + y", "x * 2.5", "x * 3", "x - y * 0.5", "x @ w", "F.linear(x, w)", "x.sum()", "x.sum(1)", "x.mean(0)", "x.amax(1)", "x.t()",
    "x.view(4, 2, 3)", "x.reshape(2, 2, 6)", "x.unsqueeze(1)", "x.split(3, 1)[1]", "torch.cat([x, y], 1)", "torch.cat([x, y])",
    "torch.stack([x, y])", "torch.softmax(x, 1)", "torch.softmax(x, 0)", "F.layer_norm(x, (6,))", "F.gelu(x)", "torch.where(x > 0, x, y)",
    "x.expand(3, 4, 6)", "x.transpose(0, 1) @ y", "x.clone()", "x[1:3]", "x[:, 2]", "torch.max(x, 1)[0]", "x.cumsum(1)", "x.pow(2)",
    "torch.zeros_like(x) + y", "x.flatten()", "x.clamp(-0.5, 0.5)", "x.norm()", "x.permute(1, 0)", "torch.einsum('ij,kj->ik', x, w)",
    "x.to(torch.float64)", "torch.addmm(y, x, w)",
)  # fmt: skip


def _values(seed: int) -> list:
    torch.manual_seed(seed)
    return [torch.randn(4, 6), torch.randn(4, 6), torch.randn(6, 6)]


def compared(rank: int, size: int) -> dict:
    """Expressions whose values, or gradients, differ from those of ordinary tensors, and how many calls were remembered."""
    mesh, wrong = init_device_mesh("cpu", (size,)), []
    _repeated.forget()
    for placement in (Shard(0), Shard(1), Replicate()):
        for expression in EXPRESSIONS:
            code = compile(expression, "", "eval")
            for records in (True, False, True):
                plain = _values(len(wrong) + 7 * records)
                divided = [distribute_tensor(t, mesh, [placement]) for t in plain]
                for tensors in (plain, divided):
                    for t in tensors:
                        t.requires_grad = records
                found = [eval(code, {"torch": torch, "F": F, "x": x, "y": y, "w": w}) for x, y, w in (plain, divided)]  # noqa: S307
                pairs = [(found[0], found[1].full_tensor())]
                if records:
                    for value in found:
                        (value.full_tensor() if isinstance(value, DTensor) else value).square().sum().backward()
                    pairs += [(a.grad, b.grad.full_tensor()) for a, b in zip(plain, divided, strict=True) if a.grad is not None]
                if not all(torch.allclose(a, b, rtol=1e-4, atol=1e-4) and a.shape == b.shape for a, b in pairs):
                    wrong.append((expression, str(placement), records))
    return {"wrong": wrong, "remembered": len(_repeated._known)}


class _Recorded(DTensor):
    """A DTensor that records the operators that reach it."""

    operators: list[str] = []  # noqa: RUF012 - of all

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.operators.append(str(func))
        return super().__torch_dispatch__(func, types, args, kwargs)


def _calls_of_a_subclass(x: DTensor) -> list[str]:
    """The operators that reach a subclass's dispatch, of calls whose arguments equal those of DTensors."""
    own = torch.Tensor._make_wrapper_subclass(_Recorded, x.shape, dtype=x.dtype)
    own._locals, own._spec = x.to_locals(), x._spec
    _Recorded.operators.clear()
    for _ in range(2):
        assert torch.equal((x + own).full_tensor(), (x + x).full_tensor())
        torch.cat([x, own])
        own.mul_(1)
    return _Recorded.operators


def changed(rank: int, size: int) -> dict:
    """What must not be taken from an earlier call."""
    mesh = init_device_mesh("cpu", (size,))
    x = distribute_tensor(torch.arange(4.0 * size).reshape(2 * size, 2), mesh, [Shard(0)])
    whole = torch.arange(4.0 * size).reshape(2 * size, 2)
    found = {}
    found["numbers"] = [torch.equal((x * n).full_tensor(), whole * n) for n in (2, 3.0, 2.0, True)]
    found["sizes"] = [list(x.view(*s).shape) for s in ((size, 4), (size, 2, 2), (size, 4))]
    found["dtypes"] = [str((t + t).dtype) for t in (x, x.to(torch.float64), x)]
    found["in place"] = [bool((x.clone().add_(x).full_tensor() == whole * 2).all()) for _ in range(3)]
    replicated = x.redistribute(placements=[Replicate()])
    found["placements"] = [str((t + t).placements) for t in (x, replicated, x)]
    found["before"] = str(torch.tanh(x).placements), str(torch.tanh(x).placements)
    register_sharding(torch.ops.aten.tanh.default)(lambda x: [([Replicate()], [Replicate()])])
    try:
        found["registered"] = str(torch.tanh(x).placements)
    finally:
        torch.ops.aten.tanh.default.sharded = None
    found["subclass"] = _calls_of_a_subclass(x)
    found["out"] = []
    for _ in range(2):
        try:
            torch.add(x, x, out=x[:0].clone())
        except RuntimeError as error:
            found["out"].append(str(error))
    other = init_device_mesh("cpu", (size, 1))
    y = distribute_tensor(whole, other, [Shard(0), Replicate()])
    found["meshes"] = [(t + t).device_mesh.ndim for t in (x, y, x, y)]
    for _ in range(2):
        try:
            x + y
        except RuntimeError as error:
            found.setdefault("errors", []).append(str(error).split(",")[0])
    return found
