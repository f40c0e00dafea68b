"""Random programs on DTensors, beside the same programs on ordinary tensors."""

from __future__ import annotations

import math
import random
import warnings

import numpy as np

import teletensor as torch
import teletensor.nn.functional as F
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.tensor import DTensor, Partial, Replicate, Shard
from teletensor.distributed.tensor._dispatch import make
from teletensor.distributed.tensor._spec import Spec, local_box

from .dtensor_cases import _engines

SIZES = (1, 2, 3, 4, 5, 6, 7)
STEPS = (5, 15)


class Pair:
    """A tensor and the DTensor that must equal it."""

    def __init__(self, plain, divided):
        self.plain, self.divided = plain, divided


class Program:
    """A random program, which depends on its seed only. All ranks must run it with the same one."""

    def __init__(self, seed: int, mesh):
        self.random, self.numbers, self.mesh = random.Random(seed), np.random.default_rng(seed), mesh
        self.pairs: list[Pair] = []
        self.leaves: list[Pair] = []
        self.text: list[str] = []

    # ---- Values

    def placements(self, ndim: int, partial: bool = True) -> list:
        choices = [Replicate(), *(Shard(d) for d in range(ndim)), *(Shard(d) for d in range(ndim)), *([Partial()] if partial else [])]
        return [self.random.choice(choices) for _ in range(self.mesh.ndim)]

    def divided(self, array: np.ndarray, placements, requires_grad: bool = False):
        """A DTensor of the array; a Partial one is the sum of different summands."""
        spec, locals_ = Spec(self.mesh, placements), []
        for member in self.mesh._members():
            offsets, sizes = local_box(spec, array.shape, member)
            part = array[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))]
            for m, placement in enumerate(placements):
                if isinstance(placement, Partial):
                    n = self.mesh.shape[m]
                    first = member.coordinate[m] == 0
                    part = part * (1 - 0.25 * (n - 1) if first else 0.25) if array.dtype.kind == "f" else part * first
            with member.session():
                local = torch.tensor(np.ascontiguousarray(part, array.dtype).reshape(part.shape))
            local.requires_grad = requires_grad
            locals_.append(local)
        return make(locals_, spec, array.shape)

    def leaf(self, shape=None, requires_grad: bool | None = None, dtype: str = "float64") -> Pair:
        if shape is None:
            shape = [self.random.choice(SIZES) for _ in range(self.random.choice((0, 1, 2, 2, 3, 3)))]
            if shape and self.random.random() < 0.04:
                shape[self.random.randrange(len(shape))] = 0
        if dtype.startswith("int"):
            array, requires_grad = self.numbers.integers(-4, 5, shape).astype(dtype), False
        else:
            array = np.asarray(self.numbers.standard_normal(shape), dtype)
        requires_grad = self.random.random() < 0.7 if requires_grad is None else requires_grad
        placements = self.placements(len(shape))
        pair = Pair(torch.tensor(array).requires_grad_(requires_grad), self.divided(array, placements, requires_grad))
        self.text.append(f"leaf {list(shape)} {dtype} {placements} {requires_grad}")
        self.pairs.append(pair)
        if requires_grad:
            self.leaves.append(pair)
        return pair

    def integers(self, shape, limit: int) -> Pair:
        array = self.numbers.integers(0, limit, shape)
        return Pair(torch.tensor(array), self.divided(array, self.placements(len(shape), False)))

    def any(self, condition=lambda t: True) -> Pair:
        found = [p for p in self.pairs if condition(p.plain)]
        return self.random.choice(found[-6:] or [self.leaf((4, 5))])

    def matrix(self) -> Pair:
        found = [p for p in self.pairs if p.plain.dim() == 2 and p.plain.numel() and p.plain.dtype == torch.float64]
        return self.random.choice(found) if found else self.leaf((self.random.choice(SIZES), self.random.choice(SIZES)))

    def floating(self, ndim: int = 0) -> Pair:
        return self.any(lambda t: t.dtype == torch.float64 and t.dim() >= ndim and t.numel() > 0)

    # ---- Steps

    def apply(self, text: str, function, *pairs: Pair) -> None:
        """Computes on both sides; both or neither must raise an error."""
        self.text.append(text + " " + " ".join(f"{list(p.plain.shape)}{p.divided._spec}" for p in pairs))
        expected = error = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = function(*(p.plain for p in pairs))
            except (RuntimeError, ValueError, IndexError, NotImplementedError) as caught:
                error = caught
            try:
                actual = function(*(p.divided for p in pairs))
            except (RuntimeError, ValueError, IndexError, NotImplementedError) as caught:
                clear = "is a copy" in str(caught) or "cannot write a tensor with placements" in str(caught)
                if error is None and not clear:
                    raise
                if error is None:
                    raise Unsupported(str(caught)) from None
                return
        if error is not None:
            raise AssertionError(f"expected {type(error).__name__}: {error}, got no error")
        results = zip(expected, actual, strict=True) if isinstance(expected, (tuple, list)) else [(expected, actual)]
        for a, b in results:
            pair = Pair(a, b)
            compare_meta(text, pair)
            if a.dim() <= 4 and a.numel() <= 2000:
                self.pairs.append(pair)

    def step(self) -> None:
        getattr(self, "_" + self.random.choice(KINDS))()

    def _pointwise(self) -> None:
        name = self.random.choice(
            ("sin", "tanh", "relu", "neg", "abs", "square", "sigmoid", "atan", "floor", "sign", "isfinite", "clone", "detach")
        )
        self.apply(name, lambda x: getattr(torch, name)(x), self.any(lambda t: t.dtype == torch.float64))

    def _binary(self) -> None:
        name = self.random.choice(("add", "sub", "mul", "maximum", "atan2", "lt", "eq", "hypot"))
        x = self.floating()
        shape = list(x.plain.shape)[self.random.randrange(x.plain.dim() + 1) :]
        shape = [1 if self.random.random() < 0.3 else n for n in shape]
        y = x if self.random.random() < 0.2 else self.leaf(shape)
        pair = (x, y) if self.random.random() < 0.5 else (y, x)
        self.apply(name, lambda a, b: getattr(torch, name)(a, b), *pair)

    def _scalar(self) -> None:
        value = self.random.choice((2, 0.5, -1.5))
        name = self.random.choice(("add", "mul", "div", "rsub", "pow"))
        functions = {
            "add": lambda x: x + value, "mul": lambda x: value * x, "div": lambda x: x / value, "rsub": lambda x: value - x,
            "pow": lambda x: x**2,
        }  # fmt: skip
        self.apply(f"{name} {value}", functions[name], self.floating())

    def _matmul(self) -> None:
        x = self.floating(2)
        y = self.leaf((*x.plain.shape[:-2], x.plain.shape[-1], self.random.choice(SIZES)))
        self.apply("matmul", torch.matmul, x, y)

    def _linear(self) -> None:
        x = self.floating(1)
        n = self.random.choice(SIZES)
        w, b = self.leaf((n, x.plain.shape[-1])), self.leaf((n,))
        self.apply("linear", F.linear, x, w, b)

    def _reduce(self) -> None:
        x = self.floating(1)
        dim, keep = self.random.randrange(-x.plain.dim(), x.plain.dim()), self.random.random() < 0.5
        name = self.random.choice(
            ("sum", "mean", "amax", "logsumexp", "var", "prod", "softmax", "log_softmax", "cumsum", "sort", "norm", "whole")
        )
        if name == "var" and x.plain.shape[dim] < 2:
            name = "sum"
        functions = {
            "softmax": lambda t: torch.softmax(t, dim), "log_softmax": lambda t: torch.log_softmax(t, dim),
            "cumsum": lambda t: torch.cumsum(t, dim), "sort": lambda t: torch.sort(t, dim).values,
            "norm": lambda t: torch.linalg.vector_norm(t, self_order, dim, keep), "whole": lambda t: t.mean(),
        }  # fmt: skip
        self_order = self.random.choice((1, 2, 3))
        self.apply(f"{name} {dim} {keep}", functions.get(name) or (lambda t: getattr(torch, name)(t, dim, keepdim=keep)), x)

    def _view(self) -> None:
        x = self.any(lambda t: t.dim() >= 1)
        d, e = (self.random.randrange(x.plain.dim()) for _ in range(2))
        n = x.plain.shape[d]
        start, stop = sorted((self.random.randint(0, n), self.random.randint(0, n)))
        divisor = self.random.choice([k for k in range(1, max(n, 1) + 1) if n % k == 0])
        functions = {
            "transpose": lambda t: t.transpose(d, e), "flatten": lambda t: t.flatten(min(d, e), max(d, e)),
            "unflatten": lambda t: t.unflatten(d, (divisor, n // divisor if divisor else 0)),
            "unsqueeze": lambda t: t.unsqueeze(d), "narrow": lambda t: t.narrow(d, start, stop - start),
            "flip": lambda t: t.flip(d), "roll": lambda t: t.roll(1, d), "reshape": lambda t: t.reshape(-1),
            "expand": lambda t: t.unsqueeze(0).expand(2, *t.shape), "chunk": lambda t: t.chunk(2, d),
            "T": lambda t: t.mT if t.dim() > 1 else t, "repeat": lambda t: t.repeat(*[2] * t.dim()),
            "stack": lambda t: torch.stack([t, t], d), "cat": lambda t: torch.cat([t, t], d), "squeeze": lambda t: t.squeeze(),
            "tril": lambda t: t.tril() if t.dim() > 1 else t * 1, "pad": lambda t: F.pad(t, (1, 2)),
            "index": lambda t: t[..., None, 0] if t.shape[-1] else t * 1, "step": lambda t: t[::2],
        }  # fmt: skip
        name = self.random.choice(list(functions))
        if name == "reshape" and x.plain.numel() == 0:
            return
        self.apply(f"{name} {d} {e} {start}:{stop} /{divisor}", functions[name], x)

    def _join(self) -> None:
        x = self.floating(1)
        d = self.random.randrange(x.plain.dim())
        shape = list(x.plain.shape)
        shape[d] = self.random.choice(SIZES)
        self.apply(f"cat {d}", lambda a, b: torch.cat([a, b, a], d), x, self.leaf(shape))

    def _lookup(self) -> None:
        x = self.floating(1)
        d = self.random.randrange(x.plain.dim())
        name = self.random.choice(("gather", "index_select", "embedding", "index", "where", "scatter_add"))
        n = x.plain.shape[d]
        if name == "gather":
            shape = list(x.plain.shape)
            shape[d] = self.random.choice(SIZES)
            self.apply(f"gather {d}", lambda t, i: torch.gather(t, d, i), x, self.integers(shape, n))
        elif name == "index_select":
            self.apply(f"index_select {d}", lambda t, i: torch.index_select(t, d, i), x, self.integers((5,), n))
        elif name == "index":
            self.apply("index", lambda t, i: t[i], x, self.integers((2, 3), x.plain.shape[0]))
        elif name == "scatter_add":
            i = self.integers(x.plain.shape, n)
            self.apply(f"scatter_add {d}", lambda t, i, s: t.scatter_add(d, i, s), x, i, self.leaf(x.plain.shape))
        elif name == "where":
            self.apply("where", lambda a, b: torch.where(a > 0, a, b), x, self.leaf(x.plain.shape))
        else:
            w = self.matrix()
            self.apply("embedding", lambda w, i: F.embedding(i, w), w, self.integers((3, 4), w.plain.shape[0]))

    def _layer(self) -> None:
        name = self.random.choice(("conv1d", "layer_norm", "group_norm", "cross_entropy", "attention", "batch_norm", "mse", "dropout0"))
        x = self.floating(1)
        if name == "conv1d":
            n, c = self.random.choice(SIZES), self.random.choice((2, 4))
            groups = self.random.choice((1, 2))
            self.apply(
                f"conv1d {groups}", lambda x, w, b: F.conv1d(x, w, b, padding=1, groups=groups),
                self.leaf((n, c, 6)), self.leaf((4, c // groups, 3)), self.leaf((4,)),
            )  # fmt: skip
        elif name == "layer_norm":
            n = x.plain.shape[-1]
            self.apply("layer_norm", lambda t, w, b: F.layer_norm(t, (n,), w, b), x, self.leaf((n,)), self.leaf((n,)))
        elif name == "group_norm":
            self.apply("group_norm", lambda t, w: F.group_norm(t, 2, w), self.leaf((self.random.choice(SIZES), 4, 5)), self.leaf((4,)))
        elif name == "batch_norm":
            self.apply("batch_norm", lambda t, w: F.batch_norm(t, None, None, w, None, True), self.leaf((5, 4, 3)), self.leaf((4,)))
        elif name == "cross_entropy":
            x = self.matrix()
            reduction = self.random.choice(("mean", "sum", "none"))
            target = self.integers((x.plain.shape[0],), x.plain.shape[1])
            ignored = 0 if reduction == "sum" else -100

            def loss(t, y):
                return F.cross_entropy(t, y, reduction=reduction, ignore_index=ignored)

            self.apply(f"cross_entropy {reduction}", loss, x, target)
        elif name == "attention":
            n, length = self.random.choice(SIZES), self.random.choice(SIZES)
            causal = self.random.random() < 0.5
            q, k, v = (self.leaf((n, 2, length, 4)) for _ in range(3))
            self.apply(f"attention {causal}", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), q, k, v)
        elif name == "mse":
            self.apply("mse", F.mse_loss, x, self.leaf(x.plain.shape))
        else:
            self.apply("dropout", lambda t: F.dropout(t, 0.0), x)

    def _cast(self) -> None:
        dtype = self.random.choice((torch.float32, torch.int64))
        self.apply(f"cast {dtype}", lambda t: (t * 4).floor().add(0.5).to(dtype).to(torch.float64), self.floating())

    def _in_place(self) -> None:
        """Writes to a new result, or to a view of it."""
        x = self.floating(1)
        y = self.leaf((), None)
        kind = self.random.choice(("add", "mul", "setitem", "view", "zero", "copy", "out", "mask"))
        index = self.random.randrange(x.plain.shape[0])
        other = self.leaf(x.plain.shape)

        def run(x, y, other):
            x = x * 1
            if kind in ("add", "mul"):
                getattr(x, kind + "_")(y)
            elif kind == "setitem":
                x[index] = y * 2
            elif kind == "view":
                x.unsqueeze(0)[:, index:].mul_(y)
            elif kind == "zero":
                x[index].zero_()
            elif kind == "copy":
                x.copy_(other)
            elif kind == "mask":
                x[x > 0] = 0.5
            else:
                x = x.detach()
                torch.mul(x, other.detach(), out=x)
            return x

        self.apply(f"in place {kind} {index}", run, x, y, other)

    def _state(self) -> None:
        kind = self.random.choice(("no_grad", "data", "detach_requires_grad", "redistribute"))
        x = self.floating()
        if kind == "no_grad":
            with torch.no_grad():
                self.apply("no_grad", lambda t: t * 2, x)
        elif kind == "data":
            self.apply("data", lambda t: t.data * 3, x)
        elif kind == "redistribute":
            placements = self.placements(x.plain.dim(), False)
            moved = lambda t: t.redistribute(placements=placements) if isinstance(t, DTensor) else t.view_as(t)  # noqa: E731
            self.apply(f"redistribute {placements}", moved, x)
        else:
            self.apply("detach", lambda t: t.detach().requires_grad_(), x)
            self.leaves.append(self.pairs[-1])

    # ---- Gradients

    def backward(self) -> None:
        roots = [p for p in self.pairs if p.plain.requires_grad and not p.plain.is_leaf and p.plain.numel()]
        if not roots or not self.leaves:
            return
        roots = [roots[-1], *self.random.sample(roots, min(2, len(roots)))]
        second = self.random.random() < 0.4
        self.text.append(f"backward {[list(r.plain.shape) for r in roots]} second={second}")
        weights = [self.numbers.standard_normal(tuple(r.plain.shape)) for r in roots]

        def loss(tensors, weigh):
            return sum((t.to(torch.float64) * weigh(w)).sum() for t, w in zip(tensors, weights, strict=True))

        plain = loss([r.plain for r in roots], torch.tensor)
        divided = loss([r.divided for r in roots], lambda w: self.divided(w, self.placements(w.ndim, False)))
        kind = self.random.choice(("twice", "grad"))
        if second or kind == "grad":
            grads = [
                torch.autograd.grad(root, [getattr(p, side) for p in self.leaves], create_graph=second, allow_unused=True)
                for root, side in ((plain, "plain"), (divided, "divided"))
            ]
            found = [Pair(a, b) for a, b in zip(*grads, strict=True) if none_alike("grad", a, b)]
            for i, pair in enumerate(found):
                compare(f"gradient {i}", pair)
            found = [p for p in found if p.plain.requires_grad]
            if not second or not found:
                return
            plain, divided = (sum((getattr(p, side) ** 2).sum() for p in found) for side in ("plain", "divided"))
            plain.backward()
            divided.backward()
        else:
            for root in (plain, divided):
                root.backward(retain_graph=True)
                root.backward()
        for i, p in enumerate(self.leaves):
            if none_alike(f"leaf {i}", p.plain.grad, p.divided.grad):
                compare(f"accumulated gradient {i}", Pair(p.plain.grad, p.divided.grad))


class Unsupported(Exception):
    """The program used what raises a documented error."""


KINDS = [
    "pointwise", "binary", "binary", "scalar", "matmul", "linear", "reduce", "reduce", "view", "view", "view", "join", "lookup",
    "layer", "layer", "cast", "in_place", "in_place", "state",
]  # fmt: skip


def none_alike(what: str, a, b) -> bool:
    assert (a is None) == (b is None), f"{what}: expected {a}, got {b}"
    return a is not None


def compare_meta(what: str, pair: Pair) -> None:
    a, b = pair.plain, pair.divided
    assert isinstance(b, DTensor), f"{what}: got {type(b).__name__}"
    assert (a.shape, a.dtype, a.requires_grad, a.is_leaf) == (b.shape, b.dtype, b.requires_grad, b.is_leaf), (
        f"{what}: expected {tuple(a.shape)} {a.dtype} requires_grad={a.requires_grad} leaf={a.is_leaf}, got {tuple(b.shape)} "
        f"{b.dtype} requires_grad={b.requires_grad} leaf={b.is_leaf}"
    )
    for member, local in zip(b.device_mesh._members(), b.to_locals(), strict=True):
        expected = local_box(b._spec, b.shape, member)[1]
        assert (list(local.shape), local.dtype) == (expected, b.dtype), f"{what}: part {list(local.shape)} {local.dtype}, not {expected}"


def compare(what: str, pair: Pair) -> None:
    a, b = pair.plain.detach(), pair.divided.detach()
    assert a.shape == b.shape and a.dtype == b.dtype, f"{what}: {b.shape} {b.dtype}, not {a.shape} {a.dtype}"
    same = {}
    for member, local in zip(b.device_mesh._members(), b.to_locals(), strict=True):
        key = tuple(None if isinstance(p, Replicate) else c for p, c in zip(b.placements, member.coordinate, strict=True))
        data = local.numpy()
        assert key not in same or data.tobytes() == same[key].tobytes(), f"{what}: copies of {b.placements} differ: {data} {same[key]}"
        same.setdefault(key, data)
    whole = b.full_tensor().numpy()
    assert math.prod(whole.shape) == 0 or np.allclose(whole, a.numpy(), 1e-5, 1e-6, equal_nan=True), f"{what}: {whole} is not {a.numpy()}"


def run_program(seed: int, mesh) -> str:
    """Returns what differs, with the program; an empty text if nothing does."""
    program = Program(seed, mesh)
    try:
        program.leaf()
        for _ in range(program.random.randint(*STEPS)):
            try:
                program.step()
            except Unsupported:
                pass
        for i, pair in enumerate(program.pairs):
            compare(f"tensor {i}", pair)
        program.backward()
    except Exception as error:  # noqa: BLE001 - reported by the test
        text = "\n  ".join(program.text)
        return f"seed {seed}: {type(error).__name__}: {str(error)[:600]}\n  {text}"
    return ""


def programs(rank: int, size: int, first: int, count: int, shape: list[int]) -> list[str]:
    """Runs programs on a mesh of this shape: with one process per rank, or in a process that controls engines."""
    mesh = init_device_mesh("cpu", tuple(shape))
    return [text for seed in range(first, first + count) if (text := run_program(seed, mesh))]


def controlled_programs(rank: int, size: int, first: int, count: int, shape: list[int]) -> list[str]:
    torch.connect_all(math.prod(shape))
    _engines.cache_clear()
    return programs(rank, size, first, count, shape)
