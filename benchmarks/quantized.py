"""`python -m benchmarks.quantized`: linear layers of 8- and 4-bit integers and convolutions of 8-bit ones, beside float32 and
PyTorch (--peers).

Each row of the first table is a layer and a number of input rows. "static": torch.ops.quantized.linear of quint8. "dynamic":
linear_dynamic of float32. "int8 weight" and "int4 weight": float32 rows with torch._weight_int8pack_mm and
_weight_int4pack_mm_for_cpu (bfloat16 in PyTorch, whose kernels require it). Microseconds until a number of the result was
read, the least of the calls, because other processes may use the machine; each is divided into the time of F.linear of the
same package. PyTorch runs in a process of its own. The second table has torch.ops.quantized.conv2d_relu of quint8 with its
channels last, as results of such convolutions have them.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks import peers

SIZES = ((1, 1024, 1024), (1, 4096, 4096), (16, 1024, 1024), (128, 1024, 1024), (512, 1024, 4096))
KINDS = ("float32", "static", "dynamic", "int8 weight", "int4 weight")
_GROUP = 64
# Name: images, channels, outputs, height and width, kernel, groups.
CONVOLUTIONS = {
    "1x1, 64 to 256, 28 x 28, 4 images": (4, 64, 256, 28, 1, 1),
    "3x3, 256 to 256, 14 x 14": (1, 256, 256, 14, 3, 1),
    "3x3, 64 to 64, 56 x 56": (1, 64, 64, 56, 3, 1),
    "3x3, 3 to 32, 224 x 224": (1, 3, 32, 224, 3, 1),
    "3x3, 96 groups, 56 x 56": (1, 96, 96, 56, 3, 96),
}


def cases(torch, rows: int, inputs: int, outputs: int) -> dict[str, Callable]:
    """Functions of no arguments that compute a layer."""
    torch.manual_seed(0)
    operators = torch.ops.quantized
    x, w, b = torch.randn(rows, inputs), torch.randn(outputs, inputs) / inputs**0.5, torch.randn(outputs)
    scales = w.abs().amax(1) / 127
    q = torch.quantize_per_channel(w, scales, torch.zeros(outputs, dtype=torch.int64), 0, torch.qint8)
    packed = operators.linear_prepack(q, b)
    quantized = torch.quantize_per_tensor(x, 8 / 255, 128, torch.quint8)
    half = torch.bfloat16 if torch.__name__ == "torch" else torch.float32
    xs, ints = x.to(half), q.int_repr()
    fours = torch.randint(0, 16, (outputs, inputs), dtype=torch.int32)
    four = torch._convert_weight_to_int4pack_for_cpu(fours, 2)
    zeros = torch.ones(inputs // _GROUP, outputs, 2, dtype=half) * 0.01
    narrow = scales.to(half)
    return {
        "float32": lambda: torch.nn.functional.linear(x, w, b),
        "static": lambda: operators.linear(quantized, packed, 8 / 255, 128).int_repr(),
        "dynamic": lambda: operators.linear_dynamic(x, packed, False),
        "int8 weight": lambda: torch._weight_int8pack_mm(xs, ints, narrow),
        "int4 weight": lambda: torch._weight_int4pack_mm_for_cpu(xs, four, _GROUP, zeros),
    }


def convolutions(torch, images: int, channels: int, outputs: int, side: int, kernel: int, groups: int) -> dict[str, Callable]:
    """Functions of no arguments that compute a convolution with relu."""
    torch.manual_seed(0)
    operators = torch.ops.quantized
    x = torch.randn(images, channels, side, side).contiguous(memory_format=torch.channels_last)
    w = torch.randn(outputs, channels // groups, kernel, kernel) / (channels // groups * kernel**2) ** 0.5
    b = torch.randn(outputs)
    q = torch.quantize_per_channel(w, w.abs().amax((1, 2, 3)) / 127, torch.zeros(outputs, dtype=torch.int64), 0, torch.qint8)
    pads = [kernel // 2] * 2
    packed = operators.conv2d_prepack(q, b, [1, 1], pads, [1, 1], groups)
    quantized = torch.quantize_per_tensor(x, 8 / 255, 128, torch.quint8)
    return {
        "float32": lambda: torch.nn.functional.relu(torch.nn.functional.conv2d(x, w, b, padding=pads[0], groups=groups)),
        "static": lambda: operators.conv2d_relu(quantized, packed, 8 / 255, 0).int_repr(),
    }


def first(result):
    """The first number of a result. Waits for it."""
    return result[(0,) * result.dim()].item()


def least(call: Callable[[], object], seconds: float = 0.5) -> float:
    """Microseconds of call()."""
    times, until = [], time.perf_counter() + seconds
    while len(times) < 10 or time.perf_counter() < until:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def measure(package: str) -> dict[str, dict[str, float]]:
    """Times of this process by layer and kind."""
    torch = importlib.import_module(package)
    torch.set_num_threads(int(os.environ["BENCH_THREADS"]))
    calls = {" x ".join(map(str, size)): cases(torch, *size) for size in SIZES}
    calls |= {name: convolutions(torch, *sizes) for name, sizes in CONVOLUTIONS.items()}
    with torch.no_grad():
        return {
            name: {kind: least(lambda c=call: first(c())) for kind, call in kinds.items()}
            for name, kinds in calls.items()
        }


def show(title: str, kinds: tuple[str, ...], ours: dict, theirs: dict) -> None:
    """Prints a table of the rows with these kinds."""
    table = Table(title=title)
    table.add_column("")
    for kind in kinds:
        table.add_column(kind, justify="right")
        if theirs:
            table.add_column("PyTorch", justify="right")
    for name in ours:
        cells = [name]
        for kind in kinds:
            for r in (ours, theirs):
                if r:
                    ratio = "" if kind == "float32" else f" ({r[name]['float32'] / r[name][kind]:.1f}x)"
                    cells.append(f"{r[name][kind]:,.0f}{ratio}")
        table.add_row(*cells)
    Console(width=None if sys.stdout.isatty() else 180).print(table)


def main() -> None:
    """Runs the benchmark."""
    options, ours, theirs = peers.measured(__doc__, "benchmarks.quantized", measure)
    for what, kinds in (("Linear layers", KINDS), ("Convolutions", ("float32", "static"))):
        wanted = [name for name in ours if set(ours[name]) == set(kinds)]
        title = f"{what}: microseconds and times faster than float32, {options.threads} thread(s)"
        show(title, kinds, {n: ours[n] for n in wanted}, {n: theirs[n] for n in wanted} if theirs else {})


if __name__ == "__main__":
    main()
