"""`python -m benchmarks.problems --checkout FOLDER --peers`: the problems of KernelBench, in smaller sizes, beside PyTorch.

FOLDER is a checkout of github.com/ScalingIntelligence/KernelBench. A problem is a module with inputs; each package computes it
without gradients, with parameters and inputs from NumPy that are the same for both. Prints the problems whose results differ, and
the least time of some calls until a number of the result was read, divided by PyTorch's. Sizes are divided until the inputs have
at most a million elements.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import re
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import peers

LEVELS = "KernelBench/level[123]/*.py"
DIVISORS = (8, 16, 32, 64, 128, 256)
MOST_ELEMENTS = 1 << 20  # of the inputs of a problem
LEAST_SIZE = 64
SECONDS = 0.3  # of each measurement
SAMPLES = 400  # elements of each result that are compared
_SIZES = re.compile(
    r"^(batch_size|dim\d?|width|height|depth|in_features|out_features|sequence_length|seq_len|seq_length|input_size|hidden_size"
    r"|length|width_in|height_in|depth_in|image_size|features|max_seqlen|M|N|K|L|input_length|num_features|feature_size"
    r"|input_shape|block_len)( *= *)([^#\n]*)",
    re.MULTILINE,
)


def smaller(source: str, divisor: int) -> str:
    """The problem with sizes divided by a quarter of `divisor`, and its batch by up to 32."""

    def divided(match: re.Match) -> str:
        name, equals, value = match.groups()

        def size(number: re.Match) -> str:
            n = int(number[0])
            if name == "batch_size":
                return str(max(1, n // min(divisor, 32)))
            return str(n if n < 2 * LEAST_SIZE else max(n // (divisor // 4), LEAST_SIZE))

        return name + equals + re.sub(r"(?<![\w.])\d+(?![\w.])", size, value)

    return _SIZES.sub(divided, source)


def tensors_of(result) -> list:
    """The tensors of a result."""
    return [t for t in (result if isinstance(result, (tuple, list)) else [result]) if hasattr(t, "dtype")]


def numbers(name: str, shape: tuple, scale: float = 1.0) -> np.ndarray:
    """Normally distributed numbers that depend on the name."""
    return np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape, dtype=np.float32) * np.float32(scale)


class Problem:
    """A problem in one package: its module, with the values for both packages, and its inputs."""

    def __init__(self, torch, source: str, name: str):
        space: dict = {"__name__": name}
        exec(compile(source, name, "exec"), space)
        with torch.device("meta"):
            self.elements = sum(x.numel() for x in space["get_inputs"]() if isinstance(x, torch.Tensor))
        self._torch, self._space = torch, space

    def build(self) -> None:
        """Creates the module and the inputs."""
        torch = self._torch
        torch.manual_seed(0)
        self.module = self._space["Model"](*self._space["get_init_inputs"]()).eval()
        for name, value in [*self.module.named_parameters(), *self.module.named_buffers()]:
            if value.is_floating_point():
                drawn = numbers(name, tuple(value.shape), 0.05)
                value.copy_(torch.from_numpy(np.abs(drawn) + 0.5 if name.endswith("running_var") else np.asarray(drawn)))
        self.inputs = [self._values(i, x) for i, x in enumerate(self._space["get_inputs"]())]

    def _values(self, place: int, given):
        torch, random = self._torch, np.random.default_rng(place)
        if not isinstance(given, torch.Tensor):
            return given
        least, most = given.min().item(), given.max().item()
        if not given.is_floating_point():
            return torch.from_numpy(random.integers(int(least), int(most) + 1, tuple(given.shape))).to(given.dtype)
        is_unit = -0.5 < least and most < 1.5  # else normally distributed
        drawn = random.random(tuple(given.shape), dtype=np.float32) if is_unit else numbers(str(place), tuple(given.shape))
        return torch.from_numpy(drawn).to(given.dtype)

    def values(self) -> list:
        """Some elements of each result."""
        found = []
        for t in tensors_of(self.module(*self.inputs)):
            flat = (t.float() if t.is_floating_point() else t).flatten()
            at = np.linspace(0, max(len(flat) - 1, 0), min(len(flat), SAMPLES)).astype(np.int64)
            found.append([list(t.shape), str(t.dtype), flat[self._torch.from_numpy(at)].tolist()])
        return found

    @staticmethod
    def _read(result) -> None:
        last = tensors_of(result)[-1]
        if last.numel():
            last.flatten()[-1].item()

    def seconds(self) -> float:
        """The least time of a call and a read, after two calls: the engine packs weights that are used again."""
        for _ in range(2):
            self._read(self.module(*self.inputs))
        best, end = math.inf, time.perf_counter() + SECONDS
        while best == math.inf or time.perf_counter() < end:
            begin = time.perf_counter()
            self._read(self.module(*self.inputs))
            best = min(best, time.perf_counter() - begin)
        return best


def small_problem(torch, source: str, name: str) -> Problem:
    """The problem in the first size that is small enough and that its module accepts."""
    error: Exception = ValueError(f"expected a size of at most {MOST_ELEMENTS} elements")
    for divisor in DIVISORS:
        try:
            problem = Problem(torch, smaller(source, divisor), name)
            if problem.elements <= MOST_ELEMENTS:
                problem.build()
                return problem
        except (RuntimeError, ValueError, AssertionError) as e:
            error = e
    raise error


def measure(package: str, files: list[Path]) -> dict[str, dict]:
    """By problem: what values() and seconds() return, or the error."""
    if package != "torch":
        import teletensor.as_torch  # noqa: F401 - `import torch` is teletensor
    torch = importlib.import_module("torch")
    torch.set_num_threads(int(os.environ["BENCH_THREADS"]))
    rows = {}
    with torch.no_grad():
        for file in track(files, package, console=Console(stderr=True)):
            name = f"{file.parent.name}/{file.stem}"
            try:
                problem = small_problem(torch, file.read_text(), name)
                rows[name] = {"values": problem.values(), "seconds": problem.seconds()}
            except Exception as e:  # noqa: BLE001 - reported
                rows[name] = {"error": f"{type(e).__name__}: {e}"[:200]}
    return rows


def difference(ours: dict, theirs: dict) -> str:
    """How the results of a problem differ; empty if they agree."""
    if "error" in ours or "error" in theirs:
        return "" if "error" in theirs else f"teletensor: {ours['error']}"
    for a, b in zip(ours["values"], theirs["values"], strict=True):
        if a[:2] != b[:2]:
            return f"expected {b[1]} {b[0]}, got {a[1]} {a[0]}"
        scale = max((abs(x) for x in b[2] if math.isfinite(x)), default=1.0)
        if not np.allclose(a[2], b[2], rtol=1e-3, atol=1e-3 * max(scale, 1e-6), equal_nan=True):
            return f"largest difference {np.nanmax(np.abs(np.subtract(a[2], b[2]))):.3g}, largest number {scale:.3g}"
    return ""


def report(ours: dict[str, dict], theirs: dict[str, dict]) -> int:
    """Prints the tables. Returns the number of problems that differ."""
    console = Console()
    differences = {name: text for name in theirs if (text := difference(ours[name], theirs[name]))}
    for name, text in differences.items():
        console.print(f"{name}: {text}", markup=False)
    ratios = {n: r["seconds"] / theirs[n]["seconds"] for n, r in ours.items() if "seconds" in r and "seconds" in theirs[n]}
    table = Table("problem", "ms", "PyTorch ms", "ratio", title="the largest ratios", title_justify="left")
    for name in sorted(ratios, key=ratios.get, reverse=True)[:12]:
        table.add_row(name, f"{1e3 * ours[name]['seconds']:.2f}", f"{1e3 * theirs[name]['seconds']:.2f}", f"{ratios[name]:.2f}")
    console.print(table)
    for name, row in theirs.items():
        if "error" in row:
            console.print(f"{name}: PyTorch: {row['error']}", markup=False)
    failed = sum("error" in row for row in theirs.values())
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios)) if ratios else math.nan
    console.print(
        f"{len(theirs)} problems: {len(theirs) - failed - len(differences)} as PyTorch's, {len(differences)} differ, {failed} failed with "
        f"PyTorch; time / PyTorch's: geometric mean {mean:.2f}, {sum(r > 1.2 for r in ratios.values())} above 1.2"
    )
    return len(differences)


def main() -> int:
    """Measures; returns 1 if results differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, required=True, help="a checkout of KernelBench")
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--peers", action="store_true", help="compare with PyTorch, installed in a separate environment")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--package", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["BENCH_THREADS"] = str(options.threads)
    files = [file for file in sorted(options.checkout.glob(LEVELS)) if options.only in file.stem]
    if not files:
        parser.error(f"expected problems with {options.only!r} in {LEVELS} of {options.checkout}, found none")
    if options.package:
        print(json.dumps(measure(options.package, files)))
        return 0
    theirs = {}
    if options.peers:
        command = [peers.interpreter("rich", "einops"), "-m", "benchmarks.problems", "--package", "torch", *sys.argv[1:]]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        theirs = json.loads(output.splitlines()[-1])
    ours = measure("teletensor", files)
    if not options.peers:
        for name, row in ours.items():
            print(f"{name}: {row['error']}" if "error" in row else f"{name}: {1e3 * row['seconds']:.2f} ms")
        return int(any("error" in row for row in ours.values()))
    return int(report(ours, theirs) > 0)


if __name__ == "__main__":
    sys.exit(main())
