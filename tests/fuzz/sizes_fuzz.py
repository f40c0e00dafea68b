"""Compares graphs of random functions that compute with sizes with the functions, at many sizes.

    python -m tests.fuzz.sizes_fuzz --seconds 20 --seed 1
    python -m tests.fuzz.sizes_fuzz --count 200 --sizes 100
    python -m tests.fuzz.sizes_fuzz --seed 0 --only 17

A graph gives the function's values at every size, or refuses: by an error when it is made or called, or by a guard of
make_fx. A finding is a wrong value or result size, or a graph that refuses its own example. Sizes at which the function
itself raises are not compared. Prints one row per entry point, the functions with findings, and exits with 1 if there
are any; each is also written to the folder --findings, and `--seed S --only N` repeats it.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import linecache
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TELETENSOR_BUILD", ROOT / "build"))
NUMEL = 2_000_000  # most elements of an argument
SECONDS = 10  # most seconds per capture and per call
BUDGET = 3.0  # seconds per program and entry point, after which the other sizes are not checked
FEWER_SIZES = {"aot_function": 4}  # it makes a graph for most sizes
# Most elements of an argument, by the power with which the elements of intermediate results grow.
LARGEST = (NUMEL, 1400, 120, 40, 15)

# ---- Functions
#
# Words in the templates:
#   T, U    tensors; the same one at each place of a template     V        any tensor
#   A, B    ints computed from sizes                              N        the same, not negative
#   K       a constant, often related to the function's others    C        a constant of 2 to 5
#   STEPS   a constant by which a number of iterations is divided COND     a condition on sizes
#   K1, C1, A1, N1: the same text at each place of a template
# A template that begins with "square " has results that grow with the square of the sizes.

SIZES = ["V.shape[0]", "V.shape[0]", "V.shape[-1]", "V.size(0)", "len(V)", "V.numel()", "V.stride(0)", "V.size(-1)"]
INTS = [
    "(A + K)", "(A - K)", "(A - B)", "(A - B)", "(A - B + K)", "(A + B)", "(A * C)", "(A // C)", "(A // K)", "(A % C)", "(A % K)",
    "(K - A)", "min(A, B)", "max(A, B)", "min(A, K)", "max(A, K)", "abs(A - B)", "abs(A - K)", "-(-A // C)", "-(-A // K)",
    "(-A % C)", "(-A % K)", "int(A * 0.5)", "int(A / C)", "math.ceil(A / C)", "math.floor(A / K)", "int(math.sqrt(abs(A)))",
    "((A + C1 - 1) // C1)", "(A // C1 * C1)", "(A // K1 * K1)", "(A if COND else B)", "((A > B) * C)", "len(V[K:])",
    "V[:K].shape[0]", "V[K:].shape[0]", "V[-K:].shape[0]", "min(A, K, B)", "torch.sym_max(A, B)", "torch.sym_min(A, K)",
    "max(A - K, 0)", "(A % K // C)", "round(A / C)",
]  # fmt: skip
COUNTS = ["max(A, 0)", "abs(A)", "abs(A - B)", "(A % C)", "(A % K)", "min(max(A, 0), K)", "len(V[K:])", "V[:K].shape[0]", "max(A - B, 0)"]
CONDITIONS = [
    "A == B", "A == B", "A != B", "A < B", "A >= B", "A > K", "A <= K", "A == K", "A % C == 0", "A % K == 0", "A > 0 and B > 0",
    "not A", "A in (K, K)", "T.shape == U.shape", "A // K == B // K", "K < A <= K", "A - B == K", "A % C == B % C", "A + B > K",
    "A > 0 or B == K",
]  # fmt: skip

TENSORS = {
    "slices": [
        "T[K:]", "T[:K]", "T[-K:]", "T[:-K]", "T[K:K]", "T[K1 : K1 + K]", "T[K1 : K1 + C]", "T[K:][:K]", "T[:K][K:]",
        "T[K : 2 * K]", "T[::C]", "T[K::C]", "T[::K]", "T[-K:K]", "T[K:-K]", "T[..., K:]", "T[..., :-K]", "T[:, K:]", "T[K:, :K]",
        "T[:, K1 : K1 + K]", "T[A:]", "T[:A]", "T[A:B]", "T[N:]", "T[:N]", "T[N : N + K]", "T[-N:]", "T[: T.shape[0] // C]",
        "T[T.shape[0] // C :]", "T[: len(U)]",
    ],
    "pads": [
        "F.pad(T, (K, K))", "F.pad(T, (0, K))", "F.pad(T, (-K, 0))", "F.pad(T, (C, -K))", "F.pad(T, (0, N))",
        "F.pad(T, (0, -T.shape[-1] % K))", "F.pad(T, (0, 0, C, K))", "F.pad(T[None], (C, C), mode='reflect')[0]",
        "F.pad(T, (0, max(K - T.shape[-1], 0)))", "F.pad(T, (N, A))",
    ],
    "parts": [
        "T.chunk(C)[0]", "T.chunk(C)[-1]", "T.split(K)[0]", "T.split(K)[-1]", "T.split(K)[1]", "T.tensor_split(C)[1]",
        "T.tensor_split((K, K))[1]", "T.split(max(N, 1))[0]", "torch.stack([c.sum() for c in T.split(STEPS)])",
        "torch.stack([c.sum() for c in T.chunk(C)])", "T * len(T.split(STEPS))", "T * len(T.chunk(C))",
        "torch.cat(T.tensor_split(C)[::-1])", "torch.stack([c.sum() * i for i, c in enumerate(T.split(STEPS))])",
        "T.split([T.shape[0] // C1, T.shape[0] - T.shape[0] // C1])[1]", "T.unbind(0)[0]", "T.chunk(C, -1)[0]",
        "torch.cat([c.flip(0) for c in T.split(STEPS)])",
    ],
    "windows": [
        "T.unfold(0, C, C).sum(-1)", "T.unfold(0, C, K).amax(-1)", "T.unfold(0, K, K).sum(-1)", "T.unfold(-1, C, C)",
        "F.conv1d(T[None, None], torch.ones(1, 1, C), stride=C, padding=C)[0, 0]",
        "F.conv1d(T[None, None], torch.ones(1, 1, 2), stride=K)[0, 0]",
        "F.conv1d(T[None, None], torch.ones(1, 1, 2), dilation=C, padding=1)[0, 0]",
        "F.conv2d(T[None, None], torch.ones(1, 1, C, C), stride=C, padding=C)[0, 0]",
        "F.conv_transpose1d(T[None, None], torch.ones(1, 1, C), stride=C)[0, 0]", "F.max_pool1d(T[None], C, C, 1)[0]",
        "F.max_pool1d(T[None], C, C, ceil_mode=True)[0]", "F.max_pool1d(T[None], 2, K)[0]",
        "F.avg_pool1d(T[None], C, C, 1, ceil_mode=True)[0]", "F.avg_pool1d(T[None], C1, padding=C1 // 2)[0]",
        "F.max_pool2d(T[None], 2, C, 1, ceil_mode=True)[0]", "F.avg_pool2d(T[None], 2, C, 1)[0]",
        "F.adaptive_avg_pool1d(T[None], K)[0]", "F.adaptive_max_pool1d(T[None], C)[0]",
        "F.adaptive_avg_pool1d(T[None], max(N, 1))[0]", "F.adaptive_avg_pool2d(T[None], (C, None))[0]",
        "F.max_pool1d(T[None], 2, 2)[0] + len(T)",
    ],
    "shapes": [
        "T.reshape(-1, C)", "T.view(C, -1)", "T.reshape(-1, K)", "T.reshape(K, -1)", "T.reshape(T.shape[0] // C1, C1)",
        "T.reshape(T.shape[0] // K1, K1)", "T.flatten()", "T.reshape(-1)", "T.unflatten(0, (C, -1))", "T.unflatten(0, (-1, K))",
        "T[: T.shape[0] // K1 * K1].reshape(-1, K1)", "T[: T.shape[0] // C1 * C1].view(-1, C1)", "T.reshape(max(N, 1), -1)",
        "T.flatten()[: T.numel() // C1 * C1].view(C1, T.numel() // C1)", "T.unsqueeze(0)", "T.squeeze()", "T.squeeze(0)",
        "T.transpose(0, -1)", "T.view(T.shape)", "T.reshape(len(U), -1)", "T.view_as(U)", "T.movedim(0, -1)",
        "T.as_strided((N,), (1,))", "T.as_strided((max(T.numel() - K1, 0),), (1,), K1)",
        "T.as_strided((T.numel() // C1, 2), (C1, 1))", "T.as_strided((T.shape[0] // 2,), (2 * T.stride(0),))",
        "T.as_strided((max(T.numel() - C1 + 1, 0), C1), (1, 1))",
    ],
    "ranges": [
        "torch.arange(N)", "torch.arange(0, N, C)", "torch.arange(0, N, K)", "torch.arange(min(A1, B), A1)",
        "torch.arange(K, K1 + N)", "torch.arange(N) * 2.0", "torch.arange(A, 0, -C)", "T * torch.arange(T.shape[-1])",
        "torch.arange(0, N, max(B // K, 1))", "torch.arange(T.shape[0], T.shape[0] + K)", "torch.arange(-K, N)",
        "torch.linspace(0, 1, N)", "torch.arange(0, T.shape[0] / C)", "torch.arange(float(N))",
    ],
    "repeats": [
        "T.repeat_interleave(C, 0)", "T.repeat(C)", "T.tile(C)", "T.repeat(C, C)", "T.tile((C, 1))", "T.sum().expand(N)",
        "T[:1].expand(N)", "T.unsqueeze(0).expand(C, *T.shape)", "square T.repeat(N)", "square T.repeat_interleave(max(N, 1), 0)",
        "square T.unsqueeze(0).expand(N, *T.shape)", "square T.outer(T)", "T.repeat(N % C)", "T.expand(-1, K)",
        "T.unsqueeze(-1).expand(*T.shape, C).reshape(-1)", "T.repeat_interleave(min(N, 3), 0)", "square T.expand(len(U), *T.shape)",
        "T.repeat(1 + T.shape[0] // K % 3)",
    ],
    "joins": [
        "torch.cat([T, U])", "torch.cat([T, U[:K]])", "torch.cat([T[:K], T[K:]])", "torch.cat([T[K1:], T[:K1]])",
        "torch.stack([T, U])", "T + U", "T * U", "T - U", "torch.stack([T, U]) if T.shape == U.shape else T",
        "T + U if T.shape == U.shape else T * 2", "T[: len(U)] + U[: len(T)]", "torch.cat([T.flatten(), U.flatten()])",
        "T[: min(len(T), len(U))] * U[: min(len(T), len(U))]", "torch.where(T > U, T, U)", "torch.cat([T, torch.zeros(N)])",
        "T[:K] + U[:K]", "T[K1:] - U[K1:]", "torch.hstack([T, U])", "torch.cat([torch.ones(N), T])",
        "torch.broadcast_tensors(T, U)[0]", "torch.cat([T] * (1 + N % 3))", "square T[:, None] * U[None]",
    ],
    "created": [
        "torch.ones(N)", "torch.zeros(N) + K", "torch.full((N,), 2.0)", "torch.full((A - B + K,), 2.0)", "torch.ones(A - B)",
        "torch.zeros(A % C, B % C) + 1", "T.new_zeros(N) + 3", "T.new_ones(len(U))", "torch.ones(min(A, B))",
        "torch.zeros(T.shape) + A", "torch.full((len(T),), A)", "torch.ones_like(T) * A", "torch.tensor([A, B])",
        "torch.full((K,), A)", "torch.eye(C, max(N, 1) % 7)", "torch.zeros(T.shape[0] // K + 1)",
        "T.new_full((A // K - B // K + 1,), 1.0)", "T.new_full((C,), A - B)", "square torch.eye(N)",
        "square torch.ones(N, N).tril(A)", "square torch.ones(N, N).triu(K)", "torch.ones(N, C).tril(A)",
        "torch.ones(C, N).triu(A)", "T.tril(A)", "T.triu(A)", "T.tril(K)", "T.diagonal(A)", "T.diagonal(K)", "T.tril(A - B)",
        "torch.ones(C, N).diagonal(A)", "square torch.diag(T, A)",
    ],
    "moves": [
        "T.roll(A)", "T.roll(A - B, 0)", "T.roll(K)", "T.narrow(0, 0, N)", "T.narrow(0, N, 1)", "T.narrow(0, K1, T.shape[0] - K1)",
        "T.narrow(0, min(T.shape[0], K1), max(T.shape[0] - K1, 0))", "T.select(0, A)", "T.select(0, min(A, K))", "T[A]", "T[A - 1]",
        "T[-1]", "T[N % T.shape[0]]", "T.select(-1, K)", "T.flip(0)", "T.index_select(0, torch.arange(N))",
        "T.gather(0, torch.arange(N))", "T.cumsum(0)", "T.topk(min(K, T.shape[0]), 0)[0]", "T.sort(0, descending=True)[0]",
        "T.take(torch.arange(N))", "T[torch.arange(N)]", "T.sum(0)", "T.amax(-1)", "T.narrow(-1, K, C)", "T.diff(C - 1, 0)",
        "T.cumsum(0)[C - 1 :: C]",
    ],
    "values": [
        "torch.where(T > A - B, T, -T)", "torch.where(T < A, T, K)", "torch.where(torch.arange(T.shape[-1]) < A, T, -T)",
        "T * (torch.arange(T.shape[-1]) < A)", "T * A", "T + A", "T + (A - B)", "T / T.shape[0]", "T / max(A, 1)",
        "T * int(A * 0.5)", "T * math.sqrt(abs(A))", "T * math.ceil(A / K)", "T * (A / K)", "T * (A // K)", "T * (A % K)",
        "T + (A == B)", "T.clamp(max=A)", "T.sum() / len(T)", "T.mean(0) * A", "T + (A - K) * (B > K)", "T * (1 + A // K)",
        "T.add(T, alpha=A)", "T * float(A)", "T * abs(A - B)", "T * min(A, K)", "T * max(A, K)", "T.masked_fill(T > 0, A)",
        "T - (A // C + B // C)", "T * (A / (abs(B) + 1))", "T.softmax(0) * len(T)", "T * math.floor(A * 0.25)",
    ],
    "scaled": [
        "F.interpolate(T[None, None], scale_factor=2)[0, 0]", "F.interpolate(T[None, None], scale_factor=0.5)[0, 0]",
        "F.interpolate(T[None, None], scale_factor=1.5)[0, 0]", "F.interpolate(T[None, None], size=max(N, 1))[0, 0]",
        "F.interpolate(T[None, None], size=K)[0, 0]", "F.interpolate(T[None, None], scale_factor=0.3, mode='nearest')[0, 0]",
        "F.interpolate(T[None, None], scale_factor=2.0, mode='linear')[0, 0]",
    ],
    "branches": [
        "T * 2 if COND else T + 1", "T * 2 if COND else T + 1", "T[K:] if COND else T", "T[:K] if COND else -T",
        "T if COND else T[::C]", "T + A if COND else T - B", "T.flip(0) if COND else T",
        "torch.ones(N) if COND else torch.zeros(N)", "T.sum(0) if COND else T", "[T, T * 2, T * 3][A % 3]",
        "(T if COND else T + 1) * (2 if COND else 3)", "T.reshape(-1, C1) if T.numel() % C1 == 0 else T",
        "torch.cat([T, U]) if COND else T", "F.pad(T, (0, K)) if COND else T",
    ],
}  # fmt: skip
LOOPS = [
    "T1 = T\nfor i in range(T.shape[0] // STEPS):\n    T1 = T1 + i",
    "k = 0\nwhile A1 - k * STEPS > B1 and k < 30:\n    k += 1\nT1 = T + k",
    "T1 = T\nfor i in range(min(N, C)):\n    T1 = T1 * 2 - i", "T1 = T\nfor c in U.split(STEPS):\n    T1 = T1 + c.sum()",
    "T1 = T\nfor i in range(0, len(T), STEPS):\n    T1 = T1 + T[i]", "T1 = T\nwhile T1.shape[0] > K1:\n    T1 = T1[:: C1]",
    "T1 = T\nwhile T1.numel() < K1 and T1.numel() > 0:\n    T1 = torch.cat([T1, T1])",
    "k = T.shape[0]\nT1 = T\nwhile k % 2 == 0 and k > 0:\n    k //= 2\n    T1 = T1 + k",
    "T1 = T\nif COND:\n    T1 = T1 + A\nelif COND:\n    T1 = T1[:K]", "T1 = torch.stack([T[i::C1].sum() for i in range(C1)])",
    "T1 = T.clone()\nT1[K:] = A", "T1 = T.clone()\nT1[:N] += 1",
    "T1 = sum(T[i : i + STEPS].sum() for i in range(0, T.shape[0], STEPS)) + T",
]  # fmt: skip
MASKS = [
    "T[T > 0]", "T.nonzero()", "T[T > 0][:K]", "T * T[T > 0].shape[0]", "torch.ones(T.nonzero().shape[0])", "T[T > 0].reshape(-1)[: A]",
    "T.masked_select(T > A)",
]  # fmt: skip

WEIGHTS = {
    "slices": 26, "pads": 6, "parts": 8, "windows": 8, "shapes": 9, "ranges": 6, "repeats": 6, "joins": 9, "created": 10, "moves": 7,
    "values": 11, "scaled": 3, "branches": 13, "loops": 7, "masks": 1, "number": 6,
}  # fmt: skip
# Most programs first compute tensors whose sizes have limits, and then use these sizes.
LIMITED = ("slices", "slices", "slices", "pads", "parts", "windows", "ranges")
WINDOWS = [
    "T[K1 : K1 + K]", "T[K1 : K1 + K]", "T[K1 : K1 + C]", "T[K:][:K]", "T[K:][:K]", "T[K1 : 2 * K1]", "T[K:]", "T[:K]", "T[K:-K]", "T[-K:]",
    "T[:-K]", "T[K::C]", "T[K1 : K1 + 1]", "T.split(K)[-1]", "torch.arange(0, len(T), K)", "F.pad(T, (0, max(K - T.shape[-1], 0)))",
]  # fmt: skip
USERS = ("created", "moves", "values", "values", "branches", "loops", "slices", "pads")
CONSTANTS = [10, 16, 20, 32, 41, 50, 64, 100, 128, 200, 255, 256, 300, 500, 512, 700, 1000, 1024, 1500, 2000, 2048, 4096, 5000]
LARGE_CONSTANTS = [10_000, 16_384, 20_000, 65_536, 100_000, 131_072, 500_000, 1_000_000]
WORD = re.compile(r"\b(T1|T|U|V|A1|B1|A|B|N1|N|K1|K|C1|C|STEPS|COND)\b")


@dataclass
class Program:
    """A function of tensors, the sizes of its arguments, and the sizes at which it is checked.

    Attributes:
        dims: per argument the dimensions: an int, or an expression of the symbols n and m.
        bounds: (min, max) of Dim by symbol; None has no bound.
        shapes: of the arguments, one list per call. The first is the example's.
    """

    name: str
    source: str
    dims: list[list[int | str]]
    bounds: dict[str, tuple[int | None, int | None]]
    shapes: list[list[list[int]]] = field(default_factory=list)

    @property
    def parameters(self) -> str:
        return ", ".join("xyz"[: len(self.dims)])

    def function(self, torch: Any) -> Callable:
        """The function; tracebacks show its lines."""
        return compiled_text(torch, self.name, self.source)["f"]

    def arguments(self, torch: Any, shapes: list[list[int]]) -> list[Any]:
        """Tensors of small integers."""
        found = []
        for i, shape in enumerate(shapes):
            x = torch.arange(math.prod(shape))
            found.append(((x * (7 + 2 * i) + i) % (11 + i) - 5).to(torch.float32).reshape(shape))
        return found


def compiled_text(torch: Any, name: str, text: str) -> dict[str, Any]:
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "math": math}
    exec(compile(text, name, "exec"), scope)  # noqa: S102
    return scope


class Generator:
    """Writes a function statement by statement, and runs each with the example: statements that raise are left out."""

    def __init__(self, torch: Any, seed: int, number: int) -> None:
        self.torch, self.random = torch, random.Random(seed * 1_000_003 + number)
        self.name = f"<sizes_fuzz --seed {seed} --only {number}>"
        self.scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "math": math}
        self.lines: list[str] = []
        self.numbers: list[str] = []  # names of ints
        self.power, self.most, self.depth = 0, NUMEL, 0
        self.is_limited = self.random.random() < 0.6
        first = self.new_constant()
        self.constants = [first]
        for _ in range(self.random.randrange(3)):
            other = self.new_constant()
            self.constants.append(self.random.choice([first * 2, first + 1, max(first - 1, 1), first * 3, first + other, other]))

    def new_constant(self) -> int:
        r, rng = self.random.random(), self.random
        if r < 0.4:
            return rng.randint(1, 20)
        if r < 0.94:
            return rng.choice([rng.choice(CONSTANTS), rng.choice(CONSTANTS), rng.randint(20, 700), rng.randint(20, 2000)])
        return rng.choice([*LARGE_CONSTANTS, rng.randint(10_000, 1_000_000)])

    def constant(self) -> int:
        if self.random.random() < 0.15:
            self.constants.append(self.new_constant())
        return self.random.choice(self.constants)

    # ---- Templates

    def filled(self, template: str) -> str:
        """The template's text, with a value for each of its words."""
        kept: dict[str, str] = {}
        self.depth += 1

        def value(match: re.Match) -> str:
            word = match[1]
            if word in ("T", "U", "T1", "A1", "B1", "N1", "K1", "C1"):
                if word not in kept:
                    kept[word] = self.word(word[0]) if word != "T1" else self.next_name()
                return kept[word]
            return self.word(word)

        text = WORD.sub(value, template)
        self.depth -= 1
        return text

    def word(self, word: str) -> str:
        rng = self.random
        if word in "TUV":
            names = [name for name in self.scope if re.fullmatch(r"[xyz]|t\d+", name)]
            if self.is_limited:  # sizes of results, tensors of any size
                return rng.choice(names[-2:] if word == "V" else names)
            return rng.choice([*names, *names[-2:]])
        if word == "K":
            return str(self.constant())
        if word == "C":
            return str(rng.randint(2, 5))
        if word == "STEPS":
            steps = self.constant()
            self.most = min(self.most, 60 * steps)
            return str(steps)
        if word == "COND":
            return self.filled(rng.choice(CONDITIONS))
        if self.numbers and rng.random() < 0.25 and word != "N":
            return rng.choice(self.numbers)
        if self.depth > 2 or rng.random() < (0.8 if self.is_limited else 0.65):
            return self.filled(rng.choice(SIZES))
        return self.filled(rng.choice(COUNTS if word == "N" else INTS))

    def next_name(self) -> str:
        return f"t{sum(re.fullmatch(r't[0-9]+', name) is not None for name in self.scope)}"

    # ---- Statements

    def statement(self, kinds: tuple[str, ...] = ()) -> bool:
        """Adds a statement, of one of `kinds` if there are any; returns False if it raises at the example."""
        kind = self.random.choice(kinds) if kinds else self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        power, most, constants = self.power, self.most, list(self.constants)
        name = self.next_name()
        if kind == "number":
            name = f"k{len(self.numbers)}"
            text = f"{name} = {self.filled(self.random.choice(INTS))}"
        elif kind == "loops":
            text = self.filled(self.random.choice(LOOPS))
        else:
            templates = TENSORS[kind] if kind in TENSORS else MASKS
            template = self.random.choice(WINDOWS if kinds == LIMITED and self.random.random() < 0.75 else templates)
            if kinds == LIMITED and self.random.random() < 0.75:
                template = re.sub(r"\bT\b", "x", template)
            if template.startswith("square "):
                self.power += 1
                template = template.removeprefix("square ")
            text = f"{name} = {self.filled(template)}"
        scope = dict(self.scope)
        try:
            exec(text, scope)  # noqa: S102
            value = scope[name]
            if kind == "number":
                is_valid = type(value) is int
            else:
                is_valid = isinstance(value, self.torch.Tensor) and value.dim() < 4 and value.numel() < 2 * NUMEL
                is_valid = is_valid and self.power < len(LARGEST)
                if is_valid:
                    values_of(self.torch, value)  # raises the errors of the engine
        except Exception:  # noqa: BLE001 - does not fit the example
            is_valid = False
        if not is_valid:
            self.power, self.most, self.constants = power, most, constants
            return False
        self.lines += text.splitlines()
        self.scope[name] = value
        if kind == "number":
            self.numbers.append(name)
        return True

    def made_dims(self) -> list[list[int | str]]:
        rng = self.random
        shapes: list[list[int | str]] = [["n"]] * 10
        shapes += [["n", rng.randint(1, 5)], [rng.randint(1, 4), "n"], ["n", "m"], ["n", "m"], [2, "n", 3], [1, "n"], ["n", "n"]]
        found = [["n"] if self.is_limited and rng.random() < 0.6 else rng.choice(shapes)]
        for _ in range(rng.choice([0, 0, 0, 0, 1] if self.is_limited else [0, 0, 0, 1, 1, 2])):
            found.append(rng.choice([*shapes[:1], found[0], ["m"], ["m"], [f"n + {rng.randint(1, 3)}"], ["2 * n"], rng.choice(shapes)]))
        return found

    def program(self) -> Program:
        rng = self.random
        dims = self.made_dims()
        symbols = sorted({s for shape in dims for d in shape if isinstance(d, str) for s in re.findall("[nm]", d)})
        bounds = {}
        for symbol in symbols:
            low, high = rng.choice([None, None, None, 1, 2]), rng.choice([None, None, None, 4096, self.constants[0] + 40])
            bounds[symbol] = (low, high)
        if any(sum(isinstance(d, str) for d in shape) > 1 for shape in dims):
            self.power = 1
        program = Program(self.name, "", dims, bounds)
        near = [c for c in self.constants if c < 3000]
        example = {}
        for s in symbols:
            about = max(rng.choice(near or [8]) + rng.randint(-2, 3), 2)
            example[s] = rng.choice([rng.randint(3, 16), rng.randint(3, 16), rng.randint(2, 40), about])
        if len(set(example.values())) < len(example) and rng.random() < 0.7:
            example = {s: example[s] + i for i, s in enumerate(symbols)}
        for s, (low, high) in bounds.items():
            example[s] = min(max(example[s], low or 2), high or NUMEL)
        program.shapes = [shapes_of(dims, example)]
        self.scope.update(zip("xyz", program.arguments(self.torch, program.shapes[0])))
        if self.is_limited:
            kinds = [LIMITED] * rng.choice([1, 2, 2, 2, 3]) + [USERS] * rng.choice([1, 1, 2])
        else:
            kinds = [()] * rng.choice([1, 2, 2, 3, 3, 4, 5])
        for _ in range(60):
            if kinds and self.statement(kinds[0]):
                kinds.pop(0)
        names = [name for name in self.scope if re.fullmatch(r"t\d+", name)] or ["x * 2"]
        chosen = list(dict.fromkeys([names[-1], *rng.sample(names, min(len(names), rng.randrange(3)))]))
        if rng.random() < 0.6:  # some entry points refuse views
            chosen = [f"{name} + 1" for name in chosen]
        if self.numbers and rng.random() < 0.5:
            chosen.append(f"x * {self.numbers[-1]}")
        if rng.random() < 0.12:
            chosen.append(self.filled(rng.choice(INTS)))
        lines = [*self.lines, f"return {', '.join(chosen)}"]
        program.source = "\n    ".join([f"def f({program.parameters}):", *lines]) + "\n"
        return program

    # ---- Sizes

    def add_sizes(self, program: Program, count: int) -> None:
        """Adds up to `count` sizes besides the example's."""
        rng = self.random
        used = {int(c) for c in re.findall(r"(?<![\w.])\d+(?![\w.])", program.source)}
        pairs = {a + b for a, b in itertools.product(used, used)} | {abs(a - b) for a, b in itertools.product(used, used)}
        multiples = {c * k + i for c in used for k in (2, 3, 4, 7) for i in (-1, 0, 1)}
        near = [c + i for c in used for i in (-1, 0, 1)]
        rest = [*(c + i for c in pairs for i in (-1, 0, 1)), *multiples, *(c + c // 2 for c in used)]
        rng.shuffle(rest)
        few = list(range(13))
        numbers = [*few, *near, *rest[: count // 2], *(rng.randint(0, 2000) for _ in range(count // 3))]
        numbers += [int(10 ** rng.uniform(3, most)) for most in (4, 4.5, 5, rng.choice([5, 6]))]
        largest = min(LARGEST[self.power], self.most)
        numbers = list(dict.fromkeys(n for n in numbers if 0 <= n <= largest))
        symbols = list(program.bounds)
        if len(symbols) > 1:
            numbers += few * 2  # combined with more of the other symbol's
        rng.shuffle(numbers)
        for number in numbers:
            if len(program.shapes) > count:
                break
            other = rng.choice([number, number + rng.randint(-2, 2), *rng.choices(numbers, k=4)])
            sizes = dict(zip(symbols, (number, other)))
            if len(symbols) > 1 and rng.random() < 0.5:
                sizes = dict(zip(symbols, reversed(sizes.values())))
            if min(sizes.values()) < 0:
                continue
            shapes = shapes_of(program.dims, sizes)
            if rng.random() < 0.06:  # a relation between the sizes does not hold
                dynamic = [(i, j) for i, shape in enumerate(program.dims) for j, d in enumerate(shape) if isinstance(d, str)]
                i, j = rng.choice(dynamic)
                shapes[i][j] += rng.choice([1, 1, 2])
            if max(map(math.prod, shapes)) <= NUMEL and shapes not in program.shapes:
                program.shapes.append(shapes)


def shapes_of(dims: list[list[int | str]], sizes: dict[str, int]) -> list[list[int]]:
    return [[eval(d, {}, dict(sizes)) if isinstance(d, str) else d for d in shape] for shape in dims]  # noqa: S307


def made_program(torch: Any, seed: int, number: int, count: int) -> Program:
    """The function with a number, and the example and up to `count` other sizes."""
    generator = Generator(torch, seed, number)
    program = generator.program()
    generator.add_sizes(program, count)
    return program


# ---- Entry points


def module_of(torch: Any, program: Program) -> Any:
    """A module whose forward() calls the function."""
    forward = f"def forward(self, {program.parameters}):\n    return f({program.parameters})\n"
    scope = compiled_text(torch, f"{program.name[:-1]} module>", f"{program.source}\n{forward}")
    return type("Module", (torch.nn.Module,), {"forward": scope["forward"]})()


def exported(torch: Any, program: Program, args: list[Any], hint: Any = None) -> Any:
    """The exported program, whose sizes are Dims, or a hint."""
    symbols = {}
    if hint is None:
        for s, (low, high) in program.bounds.items():
            symbols[s] = torch.export.Dim(s, **{k: v for k, v in (("min", low), ("max", high)) if v is not None})
    shapes = []
    for shape in program.dims:
        dynamic = {i: d for i, d in enumerate(shape) if isinstance(d, str)}
        shapes.append({i: hint if hint is not None else eval(d, {}, symbols) for i, d in dynamic.items()})  # noqa: S307
    return torch.export.export(module_of(torch, program), tuple(args), dynamic_shapes=tuple(shapes))


def made_by_make_fx(torch: Any, program: Program, args: list[Any]) -> Callable:
    from teletensor.fx.experimental.proxy_tensor import make_fx
    from tests.python.export.test_random_sizes import guards_hold

    graph = make_fx(program.function(torch), tracing_mode="symbolic")(*args)

    def call(*given: Any) -> Any:
        pairs = [pair for new, old in zip(given, args) for pair in zip(new.shape, old.shape)]
        if any(new < 2 <= old for new, old in pairs):
            raise AssertionError("symbols of make_fx are sizes of at least 2")
        if graph.shape_env.format_guards().strip():
            try:
                holds = guards_hold(torch, graph, given)
            except AssertionError as e:
                raise AssertionError(f"a guard names a value that the graph does not compute: {e}") from None
            if not holds:
                raise AssertionError("a guard of the graph does not hold")
        return graph(*given)

    return call


def aot_function(torch: Any, program: Program, args: list[Any]) -> Callable:
    from teletensor._functorch.aot_autograd import aot_function

    function = aot_function(program.function(torch), lambda graph, _: graph, dynamic=True)
    function(*args)
    return function


def compiled(torch: Any, program: Program, args: list[Any]) -> Callable:
    torch.compiler.reset()
    function = torch.compile(program.function(torch), dynamic=True)
    function(*args)
    return function


# Functions that return a callable for the arguments of all sizes.
EXPORTS: dict[str, Callable[[Any, Program, list[Any]], Callable]] = {
    "export Dim": lambda torch, program, args: exported(torch, program, args).module(),
    "export AUTO": lambda torch, program, args: exported(torch, program, args, torch.export.Dim.AUTO).module(),
    "export DYNAMIC": lambda torch, program, args: exported(torch, program, args, torch.export.Dim.DYNAMIC).module(),
}
ENTRY_POINTS = {
    **EXPORTS,
    "decomposed": lambda torch, program, args: exported(torch, program, args, torch.export.Dim.AUTO).run_decompositions().module(),
    "make_fx": made_by_make_fx,
    "aot_function": aot_function,
    "compile": compiled,
    "trace": lambda torch, program, args: torch.compiler.trace(program.function(torch), *args),
}



def entry_points_of(number: int) -> list[str]:
    """The entry points at which a program is checked: aot_function, which is slow, for every fourth."""
    return [name for name in ENTRY_POINTS if name != "aot_function" or number % 4 == 0]


# ---- Comparison


class TookTooLong(BaseException):
    """Not an Exception, so that the code under test does not catch it."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def expired(*_: Any) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def values_of(torch: Any, result: Any) -> list[Any]:
    """Arrays and numbers of a result."""
    found = []
    for value in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(value, torch.Tensor):
            value = value.detach()
            found.append(value.numpy())
        else:
            found.append(value if isinstance(value, (bool, float)) else int(value))
    return found


def called(torch: Any, function: Callable, args: list[Any]) -> list[Any] | BaseException:
    """The values of a call, or what it raises."""
    try:
        with time_limit(SECONDS):
            return values_of(torch, function(*args))
    except (Exception, TookTooLong) as e:  # noqa: BLE001
        return e.with_traceback(None)  # whose frames keep tensors


def text_of(value: Any) -> str:
    if not hasattr(value, "dtype"):
        return f"{type(value).__name__} {value}"
    flat = value.reshape(-1)
    return f"{value.dtype} {value.shape} [{', '.join(f'{v:g}' for v in flat[:6].tolist())}{', ...' if flat.size > 6 else ''}]"


def difference(expected: list[Any], received: list[Any]) -> str:
    """The first difference of two results; empty if there is none."""
    import numpy as np

    if len(expected) != len(received):
        return f"expected {len(expected)} results, received {len(received)}"
    for i, (a, b) in enumerate(zip(expected, received)):
        texts = f"result {i}: expected {text_of(a)}, received {text_of(b)}"
        if hasattr(a, "dtype") != hasattr(b, "dtype"):
            return texts
        if not hasattr(a, "dtype"):
            if not math.isclose(a, b, rel_tol=1e-6):
                return texts
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return texts
        if a.dtype.kind != "f":
            if not np.array_equal(a, b):
                return f"{texts}{place_of(a != b, a, b)}"
            continue
        scale = float(np.abs(a[np.isfinite(a)]).max(initial=1.0))
        equal = np.isclose(a, b, rtol=1e-5, atol=1e-6 * scale, equal_nan=True)
        if not equal.all():
            return f"{texts}{place_of(~equal, a, b)}"
    return ""


def place_of(differs: Any, a: Any, b: Any) -> str:
    import numpy as np

    place = tuple(int(i) for i in np.argwhere(differs)[0])
    return f"; element {place}: {a[place]} and {b[place]}"


@dataclass
class Row:
    """Counts of an entry point."""

    programs: int = 0
    captured: int = 0
    refused: int = 0
    calls: int = 0
    refused_calls: int = 0
    raised: int = 0  # calls that return where the function raises
    wrong_calls: int = 0
    wrong: int = 0  # programs
    seconds: float = 0.0


class Check:
    """Checks programs at entry points, and counts."""

    def __init__(self, torch: Any, entry_points: dict[str, Callable], budget: float = BUDGET) -> None:
        self.torch, self.entry_points, self.budget = torch, entry_points, budget
        self.rows = {name: Row() for name in entry_points}
        self.findings: list[str] = []
        self.errors: Counter[str] = Counter()

    def __call__(self, program: Program, names: list[str] | None = None) -> str:
        """Checks a program at the entry points; returns the report of a finding, or an empty string."""
        torch, graphs = self.torch, {}
        function = program.function(torch)
        example = program.arguments(torch, program.shapes[0])
        if isinstance(called(torch, function, example), BaseException):
            return ""
        for name in names or self.entry_points:
            row = self.rows[name]
            row.programs += 1
            began = time.monotonic()
            try:
                with time_limit(SECONDS):
                    graphs[name] = self.entry_points[name](torch, program, example)
                row.captured += 1
            except (Exception, TookTooLong) as e:  # noqa: BLE001 - refuses the function
                row.refused += 1
                self.errors[f"{name}: {type(e).__name__}: {re.sub('[0-9]+', '1', str(e))[:100]}"] += 1
            row.seconds += time.monotonic() - began
        wrong: dict[str, list[str]] = {}
        spent, numel = dict.fromkeys(graphs, 0.0), 0
        for index, shapes in enumerate(program.shapes if graphs else []):
            args = program.arguments(torch, shapes)
            expected = called(torch, function, args)
            numel += sum(map(math.prod, shapes)) * len(graphs)
            if numel > 20_000_000:
                gc.collect()  # tensors in reference cycles of exceptions
                numel = 0
            for name, graph in graphs.items():
                if spent[name] > self.budget or index > FEWER_SIZES.get(name, index):
                    continue
                began = time.monotonic()
                row, received = self.rows[name], called(torch, graph, args)
                spent[name] += time.monotonic() - began
                if isinstance(expected, BaseException):
                    row.raised += not isinstance(received, BaseException)
                    continue
                row.calls += 1
                if isinstance(received, BaseException):
                    row.refused_calls += 1
                    text = f"refuses its example: {type(received).__name__}: {str(received)[:300]}" if index == 0 else ""
                else:
                    text = difference(expected, received)
                if text:
                    wrong.setdefault(name, []).append(f"{', '.join(map(str, map(tuple, shapes)))}: {text}")
        torch.compiler.reset()
        for name, seconds in spent.items():
            self.rows[name].seconds += seconds
        for name, texts in wrong.items():
            self.rows[name].wrong += 1
            self.rows[name].wrong_calls += len(texts)
        return self.report(program, wrong) if wrong else ""

    def report(self, program: Program, wrong: dict[str, list[str]]) -> str:
        arguments = ", ".join(f"{n} ({', '.join(map(str, d))})" for n, d in zip("xyz", program.dims))
        lines = [program.name.strip("<>").removeprefix("sizes_fuzz "), program.source.rstrip(), f"arguments: {arguments}"]
        lines += [f"bounds of {s}: {low} to {high}" for s, (low, high) in program.bounds.items() if low or high]
        lines.append(f"example: {', '.join(map(str, map(tuple, program.shapes[0])))}")
        for name, texts in wrong.items():
            lines.append(f"{name} is wrong at {len(texts)} of {len(program.shapes)} sizes")
            lines += [f"  {text}" for text in texts[:2]]
        self.findings.append("\n".join(lines))
        return self.findings[-1]

    def table(self) -> str:
        heads = ("", "programs", "captured", "refused", "calls", "refused", "raised", "wrong calls", "wrong", "seconds")
        lines = [heads, *((name, *(f"{v:.0f}" for v in asdict(row).values())) for name, row in self.rows.items())]
        return "\n".join(f"{line[0]:16}" + "".join(f"{text:>13}" for text in line[1:]) for line in lines)


# ---- PyTorch


def check_peer(file: str) -> None:
    """Checks programs of a file with PyTorch, in whose environment this process runs; prints a table."""
    import torch

    torch.set_num_threads(1)
    check = Check(torch, EXPORTS)
    for names, values in json.loads(Path(file).read_text()):
        with open(os.devnull, "w") as quiet:
            before, sys.stderr = sys.stderr, quiet
            try:
                check(Program(**values), names)
            finally:
                sys.stderr = before
    print(check.table())
    print("\n\n".join(check.findings))


def run_peer(python: str, refused: list[tuple[list[str], Program]]) -> None:
    """Prints how PyTorch does with the programs that were refused."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([(names, asdict(program)) for names, program in refused], file)
        file.flush()
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        print(f"\nPyTorch, with the {len(refused)} programs that export refused:", flush=True)
        subprocess.run([python, "-m", "tests.fuzz.sizes_fuzz", "--check-peer", file.name], cwd=ROOT, env=environment, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, help="default: 20, or no limit with --count or --only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="check only this program")
    parser.add_argument("--count", type=int, help="number of programs")
    parser.add_argument("--sizes", type=int, default=100, help="sizes per program (default: 100)")
    parser.add_argument("--errors", action="store_true", help="print the most frequent errors of captures")
    parser.add_argument("--peer", action="store_true", help="check the programs that export refused with PyTorch")
    parser.add_argument("--python", help="an interpreter with PyTorch (default: .venv-peers)")
    parser.add_argument("--findings", type=Path, default=BUILD / "fuzz" / "sizes")
    parser.add_argument("--check-peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.check_peer:
        check_peer(options.check_peer)
        return 0
    import warnings

    warnings.simplefilter("ignore")
    os.environ.setdefault("TELETENSOR_DAEMON", str(BUILD / "bin/teletensord"))
    os.environ.setdefault("TELETENSOR_STORED_CAPTURES", "0")
    sys.path.insert(0, str(BUILD / "python"))
    import teletensor as torch

    torch.connect(memory_limit=2 << 30)
    options.findings.mkdir(parents=True, exist_ok=True)
    is_limited = options.count is not None or options.only is not None
    ends = time.monotonic() + (options.seconds or (math.inf if is_limited else 20))
    numbers = itertools.count() if options.count is None else range(options.count)
    if options.only is not None:
        numbers = [options.only]
    check = Check(torch, ENTRY_POINTS, BUDGET if options.only is None else math.inf)
    refused: list[tuple[list[str], Program]] = []
    for number in numbers:
        if number % 10 == 0:
            gc.collect()
        if time.monotonic() > ends:
            break
        program = made_program(torch, options.seed, number, options.sizes)
        if options.only is not None:
            print(program.source)
        before = {name: check.rows[name].refused for name in EXPORTS}
        report = check(program, entry_points_of(number) if options.only is None else None)
        names = [name for name in EXPORTS if check.rows[name].refused > before[name]]
        if names:
            refused.append((names, program))
        if report:
            (options.findings / f"seed{options.seed}-{number}.txt").write_text(report)
            print(f"{report}\n", flush=True)
    print(check.table())
    if options.errors:
        print("\n" + "\n".join(f"{n:5} {text}" for text, n in check.errors.most_common(40)))
    if options.peer:
        from benchmarks.peers import interpreter

        run_peer(options.python or interpreter(), refused)
    calls = sum(row.calls for row in check.rows.values())
    programs = max(row.programs for row in check.rows.values())
    print(f"sizes_fuzz: {programs} programs, {calls} calls, {len(check.findings)} findings, seed {options.seed}")
    return 1 if check.findings else 0


if __name__ == "__main__":
    sys.exit(main())
