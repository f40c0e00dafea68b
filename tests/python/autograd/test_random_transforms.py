"""Random functions with writes, views, vmap and autograd.Functions: transforms beside each other and beside single calls."""

from __future__ import annotations

import random
import re

import pytest

import teletensor as torch
from teletensor.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(x, k):
        return x**3 * k, x * 2

    @staticmethod
    def setup_context(ctx, i, o):
        ctx.save_for_backward(i[0])
        ctx.save_for_forward(i[0])
        ctx.k = i[1]

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2 * ctx.k + h * 2, None

    @staticmethod
    def jvp(ctx, t, _):
        (x,) = ctx.saved_tensors
        return t * 3 * x**2 * ctx.k, t * 2

    @staticmethod
    def vmap(info, d, x, k):
        return Cubed.apply(x, k), (d[0], d[0])


class GeneratedRule(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, i, o):
        ctx.save_for_backward(i[0])
        ctx.save_for_forward(i[0])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos() * 1.5

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * x.cos() * 1.5


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.mul(2)

    @staticmethod
    def setup_context(ctx, i, o):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t * 2

    generate_vmap_rule = True


class SumScaled(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y.sum()

    @staticmethod
    def setup_context(ctx, i, o):
        ctx.save_for_backward(*i)
        ctx.save_for_forward(*i)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y.sum(), (g * x).sum().expand(y.shape)

    @staticmethod
    def jvp(ctx, a, b):
        x, y = ctx.saved_tensors
        return a * y.sum() + x * b.sum()

    @staticmethod
    def vmap(info, d, x, y):
        x = x if d[0] is not None else x.expand(info.batch_size, *x.shape)
        x = x.movedim(d[0], 0) if d[0] is not None else x
        s = y.movedim(d[1], 0).flatten(1).sum(1) if d[1] is not None else y.sum().expand(info.batch_size)
        return x * s.reshape(-1, *[1] * (x.ndim - 1)), 0


# V: a or b; K: a number; I: an index
STATEMENTS = [
    "V = V.sin() * K",
    "V = V * b",
    "V = V + a.sum()",
    "V = V.clone(); V.mul_(K)",
    "V = V.clone(); V[I] = V[0] * 2",
    "V = V.clone(); V.add_(a)",
    "V = V.clone(); w = V[1:]; w.mul_(K)",
    "V = V.clone(); w = V.t(); w[0].copy_(a[0])",
    "V = V.clone(); V.diagonal().add_(K)",
    "V = V.clone(); V.view(-1)[::2].sin_()",
    "V = V.t().contiguous().t()",
    "V = torch.zeros_like(V).add_(V)",
    "V = torch.stack([a[0], b[1], a[2]])",
    "V = Cubed.apply(V, K)[0]",
    "V = Cubed.apply(V, 2)[1] * V",
    "V = GeneratedRule.apply(V)",
    "V = SumScaled.apply(V, b)",
    "V = SumScaled.apply(a, V[0])",
    "V = Doubled.apply(V)",
    "V = V @ b",
    "V = torch.where(V > 0.8, V, b)",
    "V = V.cumsum(0)",
    "V = V.softmax(-1)",
    "V = V.exp().log1p()",
    "V = V.detach() * V",
    "V = V.clone(); V.masked_fill_(a > 1, K)",
    "V = V.clone(); V.index_add_(0, torch.tensor([0, 2]), a[:2])",
    "V = V.unsqueeze(0).expand(2, 3, 3).sum(0)",
    "V = torch.cat([a, b]).unfold(0, 3, 3).sum(0)",
    "V = V.pow(2).mean(0, keepdim=True) + a",
    "V = vmap(lambda r: r * r.sum())(V)",
    "V = vmap(GeneratedRule.apply)(V)",
    "V = vmap(lambda r: SumScaled.apply(r, r))(V)",
    "V = V.clone().fill_diagonal_(K)",
    "V = torch.nn.functional.layer_norm(V, (3,))",
    "V = V.clone(); V[:, 1].zero_()",
    "V = V.clone(); V.t_(); V = V * a",
    "V = V.abs().sqrt()",
    "V = V.logsumexp(0).expand(3, 3) * a",
    "V = V.sort(0).values",
    "V = V.tril() + b.triu()",
    "V = torch.linalg.inv(V + 5 * torch.eye(3))",
    "V = V.chunk(3)[1] * a",
]


def function(seed: int) -> tuple[str, object]:
    choice = random.Random(seed).choice
    lines = []
    for _ in range(random.Random(seed).randrange(2, 6)):
        places = {"V": choice("aab"), "K": choice(["2.0", "0.5", "1.5"]), "I": choice(["0", "1", "-1"])}
        line = re.sub(r"\b[VKI]\b", lambda m, places=places: places[m[0]], choice(STATEMENTS))
        lines.append(f"    {line}")
    text = "\n".join(["def f(a, b):", *lines, "    return a * b + a"])
    scope = dict(globals())
    exec(text, scope)  # noqa: S102
    return text, scope["f"]


def numbers(seed: int, *sizes: int):
    r = random.Random(seed)
    return torch.tensor([r.uniform(0.3, 1.7) for _ in range(torch.Size(sizes).numel())], dtype=torch.float64).reshape(sizes)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_functions(first):
    for seed in range(first, first + 10):
        text, f = function(seed)
        a, b, ta, tb = (numbers(seed * 7 + i, 3, 3) for i in range(4))
        many, others = numbers(seed * 7 + 5, 2, 3, 3), numbers(seed * 7 + 6, 2, 3, 3)

        def same(got, want, what, text=text):
            torch.testing.assert_close(got, want, rtol=1e-7, atol=1e-9, msg=lambda m: f"{what}: {m}\n{text}")

        value, tangent = jvp(f, (a, b), (ta, tb))
        same(value, f(a, b), "jvp")
        result, push = linearize(f, a, b)
        same(result, value, "linearize")
        same(push(ta, tb), tangent, "linearize")
        same(push(2 * ta, 2 * tb), 2 * tangent, "linearize again")
        forward = jacfwd(f, (0, 1))(a, b)
        same(list(forward), list(jacrev(f, (0, 1))(a, b)), "jacobians")
        same(
            torch.einsum("ijkl,kl->ij", forward[0], ta) + torch.einsum("ijkl,kl->ij", forward[1], tb),
            tangent,
            "jacobian and jvp",
        )
        same(list(vjp(f, a, b)[1](ta)), [torch.einsum("ijkl,ij->kl", j, ta) for j in forward], "vjp")
        same(functionalize(f)(a, b), value, "functionalize")
        same(functionalize(f, remove="mutations_and_views")(a, b), value, "functionalize")
        same(vmap(f)(many, others), torch.stack([f(x, y) for x, y in zip(many, others)]), "vmap")
        try:
            mapped = vmap(f, (1, None), 1)(many.movedim(0, 1), b)
        except RuntimeError as e:  # the function writes what is mapped to b's copy
            assert "cannot write in place to a tensor that is not mapped" in str(e), text  # noqa: PT017
        else:
            same(mapped, torch.stack([f(x, b) for x in many], 1), "vmap of one")
        same(jvp(vmap(f), (many, others), (others, many))[1], torch.stack([
            jvp(f, (x, y), (y, x))[1] for x, y in zip(many, others)
        ]), "jvp of vmap")  # fmt: skip

        def total(x, y, f=f):
            return f(x, y).sum()

        same(vmap(grad(total))(many, others), torch.stack([grad(total)(x, y) for x, y in zip(many, others)]), "vmap of grad")
        same(hessian(total)(a, b), jacrev(jacrev(total))(a, b), "hessian")
