# ruff: noqa: E501
"""Random functions that compute with sizes and ints, compiled once and called with many sizes: as plain Python."""

from __future__ import annotations

import random

import pytest

import teletensor as torch
from teletensor._dynamo.utils import counters
from teletensor.utils import _pytree as pytree


class Generator:
    """Writes a function of two matrices x (m, n) and y (n, p), of an int k and of a list of ints."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 0

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def number(self, depth: int = 0) -> str:
        if depth > 2 or self.random.random() < 0.5:
            return self.pick("m", "n", "p", "k", "x.shape[0]", "x.size(1)", "len(y)", "x.numel()", "y.shape[-1]", "ints[0]", "2", "3", "z.shape[0]")
        a, b = self.number(depth + 1), self.number(depth + 1)
        return self.pick(
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} // 2)", f"({a} % 3)", f"min({a}, {b})", f"max({a}, {b}, 1)", f"-{a}",
            f"abs({a})", f"int({a})", f"divmod({a}, 2)[0]", f"sum([{a}, {b}])", f"math.ceil({a} / 2)", f"({a} if {self.condition(depth + 1)} else {b})",
            f"({a} ** 2)", f"round({a})",
        )  # fmt: skip

    def condition(self, depth: int = 0) -> str:
        a, b = self.number(depth + 1), self.number(depth + 1)
        return self.pick(
            f"{a} > {b}", f"{a} == {b}", f"{a} % 2", f"{a} in (2, 5, 7)", f"not {a}", f"{a} <= 6 < {b}", f"isinstance({a}, int)", "x.shape == y.shape",
            f"{a} is None", f"str({a}) == '4'", f"{a} in {{4: 1, 6: 2}}", "s > 0.5", "not s", f"s * 2 < {a}",
        )  # fmt: skip

    def tensor(self) -> str:
        a = self.number()
        return self.pick(
            f"x * {a}", f"(x + {a}).sum(0) / m", "x @ y", f"x[: max({a}, 1) % m + 1]", "x.reshape(m * n)", "x.reshape(-1, 1)", "x.t().contiguous().view(n, -1)",
            f"torch.cat([x, x * {a}])", "x.unsqueeze(1).expand(m, 2, n)", f"torch.zeros(m, n) + {a}", f"x.new_full((n, p), {a})", "(x @ y).softmax(-1)",
            "torch.arange(m).unsqueeze(1) * x", f"x.flatten()[{a} % (m * n)]", "x.narrow(0, 0, m // 2 + 1)", "x.sum() / n", "F.pad(x, (1, m))",
            "torch.stack([x, x]).transpose(0, 1)", "x.roll(m // 2, 0)", f"x.repeat({a} % 3 + 1, 2)", "x.chunk(2)[0]", "x.split(m // 2 + 1)[-1]",
            "torch.tril(torch.ones(n, n)) @ y", "x.index_select(0, torch.arange(m - 1))", "F.layer_norm(x, (n,))", "x[m - 1]", "z.flatten().cumsum(0)",
            "torch.where(x > 0, x, torch.ones(m, 1))", "x.max(dim=1).values", f"torch.full((m,), {a})", "x.mean(1, keepdim=True) - z.sum()", "x * s + 1", "(s - x) / 2", "x / s", "z * s", "x.sum() * s", "x.clamp(max=s)", "s * 2 + x", "-s * x",
        )  # fmt: skip

    def add(self, text: str) -> None:
        self.lines.append("    " * (self.depth + 1) + text)

    def statement(self) -> None:
        r = self.random.randrange(9)
        if r < 3 or self.depth > 1:
            self.add(f"{self.pick('z', 'z', 'w')} = {self.tensor()}")
        elif r == 3:
            self.add(f"{self.pick('m', 'n', 'p', 'k')}_ = {self.number()}")
            self.add(f"found.append({self.number()})")
        elif r == 4:
            self.add(f"if {self.condition()}:")
            self.depth += 1
            self.statement()
            self.depth -= 1
        elif r == 5:
            self.add(f"for i in range({self.number()} % 4):")
            self.add("    w = w + i")
        elif r == 6:
            self.add(f"found.extend([{self.number()}, {self.condition()}])")
        elif r == 7:
            self.add("torch._dynamo.graph_break()" if self.random.random() < 0.4 else f"sizes = [*x.shape, {self.number()}]; found += sizes")
        else:
            self.add(f"w = (lambda t, s={self.number()}: t * s)(w)")

    def function(self) -> str:
        for _ in range(self.random.randrange(2, 7)):
            self.statement()
        head = ["def f(x, y, k, ints, s):", "    m, n = x.shape", "    p = y.size(1)", "    z = w = x", "    found = [k, s]"]
        return "\n".join([*head, *self.lines, "    return z, w, found, x.shape, m * n"]) + "\n"


def outcome(function, args):
    try:
        result = function(*args)
    except Exception as e:  # noqa: BLE001 - both must raise the same
        return [type(e).__name__], []
    leaves = pytree.tree_leaves(result)
    total = [t for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad]
    grads = torch.autograd.grad(sum(t.sum() for t in total), args[0], allow_unused=True) if total else []
    return leaves, list(grads)


def check(seed: int, calls: int = 7) -> None:
    generator = Generator(seed)
    text = generator.function()
    scope = {"torch": torch, "F": torch.nn.functional, "math": __import__("math")}
    exec(text, scope)  # noqa: S102
    torch._dynamo.reset()
    dynamic = generator.random.choice([None, None, True])
    compiled = torch.compile(scope["f"], backend="inductor" if seed % 2 else "eager", dynamic=dynamic)
    for _ in range(calls):
        m, n, p, k, i = (generator.random.choice([1, 2, 2, 3, 4, 5, 6, 7, 9]) for _ in range(5))
        torch.manual_seed(m)
        args = [torch.randn(m, n, requires_grad=m % 2 == 0), torch.randn(n, p), k, [i, 3], generator.random.choice([0.5, 0.25, 2.0, 0.0, -1.5])]
        for got, want in zip(outcome(compiled, args), outcome(scope["f"], args)):
            assert len(got) == len(want), (got, want, text)
            for a, b in zip(got, want):
                if isinstance(b, torch.Tensor):
                    assert a.requires_grad == b.requires_grad, text
                    torch.testing.assert_close(a.detach(), b.detach(), msg=lambda m, at=(args[0].shape, k): f"{m}\n{at}\n{text}")
                else:
                    assert type(a) is type(b) and a == b, (a, b, text)
    assert not counters["internal"], (counters["internal"], text)


@pytest.mark.parametrize("seed", range(50))
def test_random_function(seed):
    check(seed)
