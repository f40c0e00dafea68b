"""Time of torch.onnx.export for small models of common kinds, beside PyTorch's exporter.

python -m benchmarks.onnx_export [--peers]
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import math
import statistics
import sys
import time
import warnings

from tests.python.onnx_export.models import MODELS, example

from .peers import interpreter, measured

ROUNDS = 2
OPSET = 20


def measure(package: str) -> dict[str, dict[str, float]]:
    """For each model, the seconds of an export with constant and with dynamic sizes, and the numbers of nodes."""
    torch = importlib.import_module(package)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    found = {}
    for name, (make, inputs, dynamic) in MODELS.items():
        module = make(torch).eval()
        args = example(torch, inputs, {"batch": 2, "length": 6})
        row: dict[str, float] = {}
        for kind, shapes in (("constant", None), ("dynamic", dynamic)):
            seconds = []
            try:
                for _ in range(ROUNDS + 1):
                    start = time.perf_counter()
                    with contextlib.redirect_stdout(io.StringIO()):
                        program = torch.onnx.export(module, args, dynamic_shapes=shapes, opset_version=OPSET)
                    seconds.append(time.perf_counter() - start)
            except torch.onnx.OnnxExporterError:  # a size that the exporter cannot make dynamic
                row[kind], row[f"{kind}_nodes"] = math.nan, 0
                continue
            row[kind] = statistics.median(seconds[1:])
            row[f"{kind}_nodes"] = len(program.model_proto.graph.node)
        found[name] = row
    return found


def main() -> None:
    """Prints a table."""
    if "--peers" in sys.argv:
        interpreter("onnx", "onnxscript")
    _, ours, theirs = measured(__doc__, "benchmarks.onnx_export", measure)
    head = "| model | sizes | seconds | nodes |" + (" PyTorch: seconds | nodes |" if theirs else "")
    print(head)
    print("|---" * (head.count("|") - 1) + "|")
    for name, row in ours.items():
        for kind in ("constant", "dynamic"):
            line = f"| {name} | {kind} | {row[kind]:.2f} | {row[f'{kind}_nodes']} |"
            if theirs:
                line += f" {theirs[name][kind]:.2f} | {theirs[name][f'{kind}_nodes']} |"
            print(line)


if __name__ == "__main__":
    main()
