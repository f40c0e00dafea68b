"""``python -m benchmarks.amp``: training steps in mixed precision, and the losses they reach, beside PyTorch's.

Steps: a character GPT (4 layers, 4 heads, width 128, context 64, batch 12) and a convolutional network, in float32, in
float32 with a GradScaler, in bfloat16, and in float16 with a GradScaler. The precisions alternate in one process; the
best of several rounds counts. Losses: the means over the last tenth of ``--steps`` training steps from the same seed. The
GPT learns Shakespeare's plays (``--data``), the network to tell apart four textures. ``--steps 2000`` is nanoGPT's run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.gpt import make_gpt

ROOT = Path(__file__).resolve().parent.parent
TEXT = ROOT.parent / "shared/data/tinyshakespeare.txt"
# Name: the lower precision, whether losses are scaled.
MODES = {
    "float32": (None, False),
    "float32, scaled": (None, True),
    "bfloat16": ("bfloat16", False),
    "float16, scaled": ("float16", True),
}


def make_convnet(torch: Any) -> Any:
    """Three convolutions with batch norm for (N, 3, 32, 32) images of four classes."""
    nn = torch.nn
    layers: list = []
    for before, after in ((3, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(1024, 4))


def text_batches(torch: Any, path: Path, count: int) -> tuple[int, list]:
    """The number of symbols, and random windows of the text: pairs of (12, 64) tokens and 768 next tokens."""
    import numpy as np

    symbols, text = np.unique(np.frombuffer(path.read_bytes(), np.uint8), return_inverse=True)
    starts = np.random.default_rng(0).integers(0, len(text) - 65, (count, 12, 1))
    windows = torch.from_numpy(text.astype("int64")[starts + np.arange(65)])
    return len(symbols), [(w[:, :-1], w[:, 1:].flatten()) for w in windows]


def texture_batches(torch: Any, count: int) -> tuple[int, list]:
    """Pairs of 32 noisy images of stripes and their classes: the direction and the width of the stripes."""
    import numpy as np

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, (count, 32))
    wave = np.sin(np.arange(32) * 1.2), np.sin(np.arange(32) * 0.6)
    plain = np.stack(
        [np.tile(wave[k // 2], (32, 1)) if k % 2 else np.tile(wave[k // 2][:, None], (1, 32)) for k in range(4)]
    )
    images = plain[labels][:, :, None] + rng.normal(0, 2.5, (count, 32, 3, 32, 32))
    return 4, [(torch.from_numpy(x.astype("float32")), torch.from_numpy(y)) for x, y in zip(images, labels)]


class Run:
    """A model in training, in one of the modes."""

    def __init__(self, torch: Any, model: Any, mode: str):
        self.torch, self.model = torch, model
        lower, scales = MODES[mode]
        self.lower = lower and getattr(torch, lower)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99))
        self.scaler = torch.amp.GradScaler("cpu", enabled=scales)

    def step(self, x: Any, y: Any) -> Any:
        """One training step; returns the loss, for which it does not wait."""
        with self.torch.autocast("cpu", self.lower, enabled=self.lower is not None):
            loss = self.torch.nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()


def workloads(torch: Any, data: Path, count: int) -> dict:
    """For each workload, what makes its model, and batches."""
    symbols, text = text_batches(torch, data, count)
    _, textures = texture_batches(torch, min(count, 200))
    return {"GPT": (lambda: make_gpt(torch, symbols), text), "conv net": (lambda: make_convnet(torch), textures)}


def times(torch: Any, make: Any, batches: list, rounds: int, steps: int) -> dict[str, float]:
    """Milliseconds per step in each mode."""
    runs = {mode: Run(torch, make(), mode) for mode in MODES}
    best = dict.fromkeys(MODES, float("inf"))
    for round_ in range(rounds + 1):
        for mode, run in runs.items():
            start = time.perf_counter()
            for i in range(steps):
                loss = run.step(*batches[i % len(batches)])
            loss.item()
            if round_:  # the first round warms up
                best[mode] = min(best[mode], (time.perf_counter() - start) / steps * 1e3)
    return best


def losses(torch: Any, make: Any, batches: list, steps: int) -> dict[str, float]:
    """The mean loss of the last tenth of the steps, for each mode except scaled float32."""
    found = {}
    for mode in MODES:
        if mode == "float32, scaled":
            continue
        torch.manual_seed(1337)
        run = Run(torch, make(), mode)
        history = [run.step(*batches[i % len(batches)]) for i in range(steps)]
        found[mode] = torch.stack(history[-max(steps // 10, 1) :]).float().mean().item()
    return found


def measure(args: argparse.Namespace) -> None:
    """Prints the results of one package as JSON."""
    torch = importlib.import_module(args.package)
    rows: dict = {}
    for name, (make, batches) in workloads(torch, args.data, max(args.steps, args.timed)).items():
        rows[name] = {
            "ms": times(torch, make, batches, args.rounds, args.timed),
            "loss": losses(torch, make, batches, args.steps),
        }
    print(json.dumps(rows))


def main() -> None:
    """Measures both packages and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=60, help="training steps whose loss is reported")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--timed", type=int, default=4, help="steps per round")
    parser.add_argument("--data", type=Path, default=TEXT)
    parser.add_argument("--no-peer", action="store_true", help="without PyTorch")
    parser.add_argument("--package", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.package:
        return measure(args)
    from rich.console import Console
    from rich.table import Table

    from .peers import interpreter

    given = ["--steps", args.steps, "--rounds", args.rounds, "--timed", args.timed, "--data", args.data]
    results = {}
    for package in ("teletensor",) if args.no_peer else ("teletensor", "torch"):
        python = sys.executable if package == "teletensor" else interpreter()
        command = [python, "-W", "ignore", "-m", "benchmarks.amp", "--package", package, *map(str, given)]
        output = subprocess.run(command, cwd=ROOT, env=os.environ, check=True, stdout=subprocess.PIPE, text=True).stdout
        results[package] = json.loads(output.splitlines()[-1])
    table = Table(title=f"training steps on the CPU, and the loss after {args.steps} steps", title_justify="left")
    table.add_column("workload"), table.add_column("precision")
    for package in results:
        for what in (f"{package}, ms", "/ float32", "loss"):
            table.add_column(what, justify="right")
    for workload in results["teletensor"]:
        for mode in MODES:
            cells = []
            for found in results.values():
                ms, loss = found[workload]["ms"], found[workload]["loss"].get(mode)
                cells += [f"{ms[mode]:.2f}", f"{ms[mode] / ms['float32']:.2f}", "" if loss is None else f"{loss:.3f}"]
            table.add_row(workload, mode, *cells)
    Console(width=None if sys.stdout.isatty() else 110).print(table)


if __name__ == "__main__":
    main()
