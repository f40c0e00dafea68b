"""Random modules: sequences of operators, with loops, containers, writes, buffers and sizes in Python code.

`python -m tests.python.export.random_modules --count 500 --seed 0 [--onnx]` compares eager results with those of exported, saved and
loaded programs of many sizes, and prints what differs.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

Step = Callable[[Any, list[Any]], Any]
SIZES = (5, 7, 3)  # of the batch: the example's first, which no width has: equal sizes are one symbol


def _width(value: Any) -> int:
    return int(value.shape[1])


class Generator:
    """Makes the steps of one module. Values have the sizes (batch, width).

    Args:
        torch: the package.
        seed: of all choices.
        for_onnx: without operators that ONNX, or its reference evaluator, lacks.
    """

    def __init__(self, torch: ModuleType, seed: int, for_onnx: bool = False) -> None:
        self.torch, self.rng, self.for_onnx = torch, random.Random(seed), for_onnx
        self.widths: list[int] = [self.rng.choice((2, 4, 6))]
        self.steps: list[tuple[str, Step, list[int]]] = []
        self.layers: list[Any] = []

    def module(self, count: int) -> Any:
        """A module of `count` steps."""
        kinds = [n for n in dir(self) if n.startswith("do_") and not (self.for_onnx and n in _NOT_IN_ONNX)]
        for _ in range(count):
            kind = self.rng.choice(kinds)
            getattr(self, kind)(kind)
        return make_module(self.torch, self)

    def _pick(self) -> int:
        return self.rng.randrange(max(0, len(self.widths) - 3), len(self.widths))

    def _add(self, name: str, step: Step, places: list[int], width: int) -> None:
        self.steps.append((name, step, places))
        self.widths.append(width)

    def _one(self, name: str, function: Callable[[Any], Any], width: Callable[[int], int] = lambda w: w) -> None:
        place = self._pick()
        self._add(name, lambda _, v: function(v[0]), [place], width(self.widths[place]))

    # ---- Elementwise

    def do_activation(self, name: str) -> None:
        t = self.torch
        F = t.nn.functional
        chosen = self.rng.choice((t.relu, t.tanh, t.sigmoid, F.gelu, F.silu, F.elu, t.sin, t.abs, F.softplus, F.leaky_relu, t.square))
        self._one(f"{name} {chosen}", chosen)

    def do_number(self, name: str) -> None:
        k = self.rng.choice((2, 0.5, -1, 3.0))
        function = self.rng.choice((lambda x: x * k, lambda x: x + k, lambda x: k - x, lambda x: x / 3, lambda x: x.clamp(-1, 2)))
        self._one(name, function)

    def do_pair(self, name: str) -> None:
        a = self._pick()
        same = [i for i, w in enumerate(self.widths) if w == self.widths[a]]
        b = self.rng.choice(same)
        t = self.torch
        function = self.rng.choice((lambda x, y: x + y, lambda x, y: x * y.tanh(), t.maximum, lambda x, y: t.where(x > y, x, y * 2),
                                    lambda x, y: x.masked_fill(y > 0, 0.5)))  # fmt: skip
        self._add(name, lambda _, v: function(*v), [a, b], self.widths[a])

    # ---- Layers and reductions

    def do_linear(self, name: str) -> None:
        place, width = self._pick(), self.rng.choice((2, 3, 4, 6))
        at = len(self.layers)
        self.layers.append(self.torch.nn.Linear(self.widths[place], width))
        self._add(name, lambda m, v: m.layers[at](v[0]), [place], width)

    def do_norm(self, name: str) -> None:
        place = self._pick()
        at = len(self.layers)
        self.layers.append(self.torch.nn.LayerNorm(self.widths[place]))
        self._add(name, lambda m, v: m.layers[at](v[0]), [place], self.widths[place])

    def do_softmax(self, name: str) -> None:
        self._one(name, self.rng.choice((lambda x: x.softmax(-1), lambda x: x.log_softmax(1), lambda x: x.softmax(0))))

    def do_reduce(self, name: str) -> None:
        function = self.rng.choice((
            lambda x: x - x.mean(0), lambda x: x - x.amax(1, keepdim=True), lambda x: x * x.sum(), lambda x: x + x.std(1, keepdim=True),
            lambda x: x / (1 + x.norm(dim=1, keepdim=True)), lambda x: x.cumsum(0) / 4, lambda x: x + x.argmax(1, keepdim=True),
        ))  # fmt: skip
        self._one(name, function)

    def do_product(self, name: str) -> None:
        self._one(name, self.rng.choice((lambda x: (x @ x.t()) @ x / 16, lambda x: (x.t() @ x / 8).sum(0) + x)))

    # ---- Sizes in Python code

    def do_size(self, name: str) -> None:
        t = self.torch
        function = self.rng.choice((
            lambda x: x * x.shape[0], lambda x: x / len(x), lambda x: x + t.arange(x.shape[0], dtype=x.dtype)[:, None],
            lambda x: x + x.new_ones(x.shape[0], 1), lambda x: x.expand(2, *x.shape).sum(0), lambda x: x.reshape(-1).reshape(x.shape),
            lambda x: x + t.full((x.size(0), 1), 0.5), lambda x: x * x.numel(), lambda x: t.zeros_like(x) + x,
            lambda x: x.repeat(2, 1)[: x.shape[0]], lambda x: t.cat([x, x])[x.shape[0] :],
        ))  # fmt: skip
        self._one(name, function)

    def do_view(self, name: str) -> None:
        place = self._pick()
        w = self.widths[place]
        choices: list[Callable[[Any], Any]] = [
            lambda x: x.t().contiguous().t(), lambda x: x.unsqueeze(1).transpose(1, 2).flatten(1), lambda x: x.flip(1),
            lambda x: x.roll(1, 0), lambda x: x[:, list(range(w - 1, -1, -1))],
        ]  # fmt: skip
        if w % 2 == 0:
            choices.append(lambda x: x.view(x.shape[0], 2, w // 2).transpose(1, 2).reshape(x.shape[0], w))
            choices.append(lambda x: x.unflatten(1, (2, -1)).permute(2, 1, 0).flatten(0, 1).t())
        function = self.rng.choice(choices)
        self._add(name, lambda _, v: function(v[0]), [place], w)

    def do_slice(self, name: str) -> None:
        place = self._pick()
        w = self.widths[place]
        start = self.rng.randrange(0, w)
        self._add(name, lambda _, v: v[0][:, start:], [place], w - start)

    # ---- Containers and loops

    def do_join(self, name: str) -> None:
        a, b = self._pick(), self._pick()
        if self.widths[a] + self.widths[b] > 12:
            return
        self._add(name, lambda _, v: self.torch.cat(v, 1), [a, b], self.widths[a] + self.widths[b])

    def do_loop(self, name: str) -> None:
        t = self.torch

        def columns(x: Any) -> Any:
            total, found = 0, []
            for column in x.unbind(1):
                total = total + column
                found.append(total)
            return t.stack(found, 1)

        def parts(x: Any) -> Any:
            named = {str(i): p for i, p in enumerate(x.split(1, dim=1))}
            return t.cat([named[k] * (int(k) + 1) for k in sorted(named, reverse=True)], 1)

        self._one(name, self.rng.choice((columns, parts)))

    def do_sort(self, name: str) -> None:
        self._one(name, self.rng.choice((lambda x: x.sort(1).values, lambda x: x.gather(1, x.argsort(1)), lambda x: x.topk(1, 1)[0] + x)))

    # ---- Writes and modes

    def do_write(self, name: str) -> None:
        def columns(x: Any) -> Any:
            y = x.clone()
            y[:, 0] = 1
            y[:, -1].mul_(2)
            return y

        def rows(x: Any) -> Any:
            y = x * 1
            y[0] += 1
            y.t()[0].neg_()
            return y

        def whole(x: Any) -> Any:
            y = self.torch.empty_like(x)
            y.copy_(x).add_(x.relu_() if False else x.relu())
            return y

        self._one(name, self.rng.choice((columns, rows, whole)))

    def do_buffer(self, name: str) -> None:
        def count(m: Any, v: list[Any]) -> Any:
            m.count.add_(1)
            return v[0] + m.count * 0.1

        place = self._pick()
        self._add(name, count, [place], self.widths[place])

    def do_no_grad(self, name: str) -> None:
        def scaled(x: Any) -> Any:
            with self.torch.no_grad():
                scale = x.abs().amax() + 1
            return x / scale

        self._one(name, scaled)

    def do_cond(self, name: str) -> None:
        self._one(name, lambda x: self.torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y * 0.5, (x,)))


_NOT_IN_ONNX = {"do_buffer"}  # a state is not part of an ONNX model


def make_module(torch: ModuleType, made: Generator) -> Any:
    """The module of a generator's steps."""

    class Random(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(made.layers)
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            values = [x]
            for _, step, places in made.steps:
                values.append(step(self, [values[i] for i in places]))
            return {"last": values[-1], "others": (values[-2] if len(values) > 1 else x, values[len(values) // 2].sum(0))}

    return Random()


def arguments(torch: ModuleType, made: Generator, size: int) -> Any:
    """An argument for a batch size."""
    return torch.randn(size, made.widths[0])


def compare(torch: ModuleType, expected: Any, found: Any, what: str) -> None:
    """Raises AssertionError if results differ."""
    for a, b in zip(torch.utils._pytree.tree_leaves(expected), torch.utils._pytree.tree_leaves(found), strict=True):
        torch.testing.assert_close(b.detach(), a.detach(), rtol=1e-4, atol=1e-4, msg=lambda m: f"{what}: {m}")


def check(torch: ModuleType, seed: int, steps: int = 8) -> None:
    """Compares one module with its programs: exported, loaded, decomposed, unflattened, and as a symbolic graph."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    torch.manual_seed(seed)
    made = Generator(torch, seed)
    module = made.module(steps)
    inputs = [arguments(torch, made, n) for n in SIZES]
    expected = []
    for x in inputs:
        module.count.zero_()
        expected.append(module(x))
    module.count.zero_()
    program = torch.export.export(module, (inputs[0],), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    ways = {"exported": program.module(), "loaded": loaded.module(), "unflattened": torch.export.unflatten(loaded)}
    try:
        ways["decomposed"] = program.run_decompositions().module()
    except NotImplementedError as e:
        if "dynamic sizes" not in str(e):
            raise
    is_dynamic = bool(program.range_constraints)
    for name, run in ways.items():
        for x, values in zip(inputs if is_dynamic else inputs[:1], expected):
            for n, buffer in run.named_buffers():
                if n.endswith("count"):
                    buffer.detach().zero_()
            compare(torch, values, run(x), f"{name} for {tuple(x.shape)}")
    if not any(n in ("do_buffer", "do_cond") for n, _, _ in made.steps):
        graph = make_fx(module, tracing_mode="symbolic")(inputs[0])
        for x, values in zip(inputs if graph.shape_env.var_to_val.get("s0") == SIZES[0] else inputs[:1], expected):
            compare(torch, values, graph(x), f"symbolic for {tuple(x.shape)}")


def check_onnx(torch: ModuleType, seed: int, steps: int = 8) -> None:
    """Compares one module with its ONNX model in onnx's reference evaluator."""
    torch.manual_seed(seed)
    made = Generator(torch, seed, for_onnx=True)
    module = made.module(steps)
    inputs = [arguments(torch, made, n) for n in SIZES]
    model = torch.onnx.export(module, (inputs[0],), dynamic_shapes=({0: torch.export.Dim.AUTO},), opset_version=18, verbose=False)
    is_dynamic = bool(model.exported_program.range_constraints)
    for x in inputs if is_dynamic else inputs[:1]:
        compare(torch, module(x), list(model.call_reference(x)), f"ONNX for {tuple(x.shape)}")


def main() -> int:
    """Checks many modules; returns 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--onnx", action="store_true")
    options = parser.parse_args()
    import teletensor

    failed: dict[str, int] = {}
    for seed in range(options.seed, options.seed + options.count):
        try:
            (check_onnx if options.onnx else check)(teletensor, seed, options.steps)
        except Exception as e:  # noqa: BLE001 - what differs is printed
            text = f"{type(e).__name__}: {str(e)[:300]}"
            failed[text] = failed.get(text, 0) + 1
            print(f"seed {seed}: {text}", flush=True)
    print(f"{options.count - sum(failed.values())} of {options.count} equal")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
