"""Random Python functions with loops, containers, closures, objects and tensors: compiled as plain Python."""

from __future__ import annotations

import random

import pytest

import teletensor as torch
from teletensor._dynamo.utils import counters
from teletensor.utils import _pytree as pytree


class Box:
    def __init__(self, v):
        self.v, self.log = v, []

    def bump(self, k):
        self.v = self.v + k
        return self.v


class Generator:
    """Writes a function of two tensors, a number, a list, a dict and an object."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 0
        self.names = 0

    def tensor(self, depth: int = 0) -> str:
        r = self.random.randrange(12 if depth < 3 else 3)
        if r < 3:
            return self.random.choice(["x", "y", "z", "items[0]", "table['a']", "box.v"])
        a = self.tensor(depth + 1)
        return [
            f"({a} + {self.tensor(depth + 1)})", f"({a} * {self.number()})", f"{a}.relu()", f"torch.tanh({a})", f"({a} - {a}.mean())",
            f"apply(lambda t: t + {self.number()}, {a})", f"sum([{a}, {self.tensor(depth + 1)}])", f"({a} if {self.condition()} else y)",
            f"torch.stack([{a}, y])[{self.random.randrange(2)}]",
        ][r - 3]  # fmt: skip

    def number(self) -> str:
        return self.random.choice(["k", "2", "0.5", "len(items)", "x.shape[0]", "len(table)", "G", "(k + 1)", "box_count[0]"])

    def condition(self) -> str:
        return self.random.choice([
            f"{self.number()} > {self.number()}", "'b' in table", "isinstance(items, list)", "k % 2 == 0", "x.dim() == 1", "not table",
            "y.sum() > 0", "hasattr(box, 'w')",
        ])  # fmt: skip

    def add(self, text: str) -> None:
        self.lines.append("    " * (self.depth + 1) + text)

    def statement(self) -> None:
        r = self.random.randrange(17)
        if r < 3 or self.depth > 2:
            self.add(f"{self.random.choice('xyz')} = {self.tensor()}")
        elif r == 3:
            self.block(f"for i in range({self.random.randrange(4)}):")
        elif r == 4:
            self.block(f"if {self.condition()}:")
            self.block("else:")
        elif r == 5:
            self.add(f"items.append({self.tensor()})")
        elif r == 6:
            self.add(f"table[{self.random.choice(['k', repr('a'), repr('b')])}] = {self.tensor()}")
        elif r == 7:
            self.add(f"z = box.bump({self.number()})")
        elif r == 8:
            self.add(f"box.w = {self.tensor()}")
        elif r == 9:
            self.block("try:")
            self.add(f"except {self.random.choice(['KeyError', 'ValueError', '(KeyError, IndexError)'])}:")
            self.add(f"    z = {self.tensor()}")
        elif r == 10:
            self.add(f"{self.random.choice(['if k > 1: raise KeyError(k)', 'z = table[k]', 'z = items[k]', 'assert k < 2'])}")
        elif r == 11:
            self.block("with torch.no_grad():")
        elif r == 12:
            self.add("print(end='')")
        elif r == 13:
            name = self.names = self.names + 1
            self.add(f"def f{name}(a, b=k):")
            self.add("    nonlocal z")
            self.add("    z = z + a * b")
            self.add("    return z")
            self.add(f"x = f{name}({self.tensor()})")
        elif r == 14:
            self.add(f"items[:] = [t * {self.number()} for t in items]")
        elif r == 15:
            self.add("z = [v for _, v in sorted(((str(q), v) for q, v in table.items()), key=lambda p: p[0])][0]")
        else:
            self.add("k += 1")

    def block(self, head: str) -> None:
        self.add(head)
        self.depth += 1
        for _ in range(self.random.randrange(1, 3)):
            self.statement()
        self.depth -= 1

    def function(self) -> str:
        for _ in range(self.random.randrange(3, 9)):
            self.statement()
        head = ["def f(x, y, k, items, table, box):", "    z = x + y", "    box_count = [k]"]
        return "\n".join([*head, *self.lines, "    return x, y, z, k, items, table"]) + "\n"


def arguments(k: int):
    torch.manual_seed(k)
    x, y = torch.randn(3, requires_grad=k % 2 == 1), torch.randn(3)
    return [x, y, k, [torch.randn(3)], {"a": torch.randn(3)}, Box(torch.randn(3))]


def outcome(function, k):
    args = arguments(k)
    try:
        result = function(*args)
    except Exception as e:  # noqa: BLE001 - both must raise the same
        result = (type(e).__name__, str(e))
    box = args[5]
    leaves = pytree.tree_leaves([result, args[3], args[4], box.v, vars(box).get("w")])
    return [(t.detach(), t.requires_grad) if isinstance(t, torch.Tensor) else t for t in leaves], list(args[4])


@pytest.mark.parametrize("seed", [*range(60), 85, 271])
def test_random_function(seed):
    text = Generator(seed).function()
    scope = {"torch": torch, "G": 3, "apply": lambda f, x: f(x)}
    exec(text, scope)  # noqa: S102
    torch._dynamo.reset()
    compiled = torch.compile(scope["f"], backend="inductor" if seed % 2 else "eager")
    for k in (0, 1, 2, 1, 0):
        (got, got_keys), (want, want_keys) = outcome(compiled, k), outcome(scope["f"], k)
        assert len(got) == len(want) and got_keys == want_keys, text
        for a, b in zip(got, want):
            if isinstance(b, tuple):
                torch.testing.assert_close(a[0], b[0], msg=lambda m: f"{m}\n{text}")
                assert a[1] == b[1], text
            else:
                assert a == b, text
    assert not counters["internal"], (counters["internal"], text)
