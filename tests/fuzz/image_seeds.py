"""Writes the seeds of the image fuzzer: images of sessions, one per operator sample and one per program of this file.

Usage: ``python -m tests.fuzz.image_seeds PROGRAM FRAMES IMAGES``. PROGRAM is the built ``image_seeds`` (image_seeds.cc),
which executes the frames in sessions and writes their images. FRAMES is a folder with the frames of the operators'
samples (tests/fuzz/seeds.py). Requires the test build of the package (tests/in_process).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.seeds import anonymise, open_recorded

import teletensor as torch
from teletensor import _C


class _Scaled(torch.autograd.Function):
    """A function whose gradient the client computes."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        return x * scale, x + scale

    @staticmethod
    def backward(ctx, *gradients):
        return gradients[0] * 3 + gradients[1], None


def _leaf(*sizes: int) -> torch.Tensor:
    return torch.ones(*sizes).requires_grad_()


def views() -> list:
    """Views of views, writes through them, expanded, empty and scalar tensors, and other dtypes."""
    base = _leaf(4, 3)
    whole = base * 2
    row = whole[1]
    row.mul_(3)
    part = whole.t()[1:, ::2]
    part.add_(1)
    return [base, whole, row, part, torch.zeros(0, 5), torch.ones(1).expand(3, 4), torch.tensor(5),
            torch.ones(3, dtype=torch.complex64), torch.ones(2, dtype=torch.bfloat16), torch.arange(7), whole.sum()]


def training() -> list:
    """A model with gradients, moments of an optimizer, random numbers and the graph of the next step."""
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    x, y = torch.randn(3, 4), torch.tensor([0, 1, 1])
    for _ in range(2):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return [model, optimizer, x, y, torch.nn.functional.cross_entropy(model(x), y)]


def errors() -> list:
    """Errors in the place of tensors, those that depend on them, and a gradient that an error has ended."""
    x, bad = _leaf(3), torch.ones(2).add(torch.ones(2))
    wrong = torch.linalg.inv(torch.zeros(2, 2))
    lost = (x * 2).reshape(3)
    product = lost * torch.linalg.inv(torch.zeros(3, 3)).sum()
    try:
        product.sum().backward()
        torch.synchronize()
    except RuntimeError:
        pass
    return [x, bad, wrong, wrong + 1, lost, product]


def functions() -> list:
    """Nodes whose gradients the client computes, and hooks on tensors and nodes."""
    x = _leaf(3)
    first, second = _Scaled.apply(x, 2.0)
    first.register_hook(lambda g: g * 2)
    product = first * second
    product.grad_fn.register_prehook(lambda gradients: None)
    product.grad_fn.register_hook(lambda inputs, outputs: None)
    normal = torch.nn.functional.layer_norm(product, (3,))
    normal.grad_fn.register_hook(lambda inputs, outputs: None)
    x.register_hook(lambda g: g)
    return [x, first, second, product, normal, normal.sum()]


def saved() -> list:
    """Saved tensors that the client stores, that are copies, and whose bytes were released and restored."""
    x, weight = _leaf(2, 3), _leaf(3, 2)
    kept: list = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or len(kept) - 1, lambda i: kept[i]):
        stored = (x * x).exp() @ weight
    with torch.autograd.graph.save_on_cpu():
        copied = (x * 2).tanh()
    gathered = torch.ones(6)
    _C.ops.saved_bytes_watch(1, gathered)
    used = x * gathered.view(2, 3)
    _C.ops.saved_bytes_release(1)
    restored = torch.ones(6)
    _C.ops.saved_bytes_watch(2, restored)
    product = x / restored.view(2, 3)
    return [x, weight, kept, stored, copied, used, product, product.sum(), stored.sum()]


def second_order() -> list:
    """A gradient that is part of a graph, and a leaf that accumulates it."""
    x = _leaf(3)
    (gradient,) = torch.autograd.grad((x**3).sum(), [x], create_graph=True)
    gradient.pow(2).sum().backward(retain_graph=True)
    return [x, gradient, gradient.sum(), x.grad]


def autocast() -> list:
    """Casts that autocast keeps, and settings of the session."""
    weight = _leaf(3, 3)
    torch.set_num_threads(1)
    torch.autograd.set_detect_anomaly(True)
    scope = torch.autocast("cpu", dtype=torch.bfloat16)
    scope.__enter__()
    return [weight, torch.ones(2, 3) @ weight, (torch.ones(2, 3) @ weight).sum(), scope]


def lists() -> list:
    """Operators with lists of tensors, several results, numbers, strings and tuples among their arguments."""
    x = _leaf(2, 6)
    parts = torch.split(x * 2, [1, 2, 3], dim=1)
    joined = torch.cat([parts[2], parts[0]], dim=1)
    values, positions = torch.sort(joined, descending=True)
    padded = torch.nn.functional.pad(x, (1, 1), mode="constant", value=0.5)
    picked = torch.nn.functional.conv1d(padded[None], torch.ones(1, 2, 3), padding=1, stride=2)
    return [x, *parts, joined, values, positions, padded, picked, torch.einsum("ij,kj->ik", x, x),
            torch.nn.functional.gelu(x, approximate="tanh").sum(), torch.linalg.svd(x)[1].sum()]


PROGRAMS = (views, training, errors, functions, saved, second_order, autocast, lists)


def record(program, file: Path) -> None:
    """Writes the frames of a program, while all that it returns is in use."""
    open_recorded(file)
    kept = program()
    torch.synchronize()
    anonymise(file)
    frames = file.read_bytes()
    if program is autocast:
        kept.pop().__exit__(None, None, None)
        torch.autograd.set_detect_anomaly(False)
    del kept
    torch.disconnect()
    file.write_bytes(frames)


def main(tool: str, frames: Path, images: Path) -> None:
    """Writes one image per file of the folder of frames and per program."""
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for frame in frames.iterdir():
            shutil.copy(frame, folder)
        for program in PROGRAMS:
            record(program, Path(folder) / f"session-{program.__name__}")
        subprocess.run([tool, folder, str(images)], check=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
