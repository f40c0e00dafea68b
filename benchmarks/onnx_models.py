"""Compares the latency of imported ONNX models with onnxruntime's, on the CPU, and the outputs of both.

    python benchmarks/onnx_models.py FOLDER [--batch 1 16] [--threads 1] [--seconds 3]

FOLDER has models, such as those of onnx_export_models.py, or magika.onnx of PyPI's package magika. Each model runs as one
Program, in turns with onnxruntime, and the best times are compared.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

LENGTH = 64  # for dimensions other than the batch that a model leaves open


def inputs_for(model, batch: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random inputs of the sizes that a model declares."""
    found = {}
    for name, (kind, dims) in model.inputs.items():
        shape = [d if isinstance(d, int) and d > 0 else (batch if i == 0 else LENGTH) for i, d in enumerate(dims)]
        if kind == 1:
            found[name] = rng.standard_normal(shape).astype(np.float32)
        elif "mask" in name:
            found[name] = np.ones(shape, np.int64)
        else:
            found[name] = rng.integers(0, 256, shape).astype(np.int64 if kind == 7 else np.int32)
    return found


def best(call, seconds: float) -> float:
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="per turn")
    parser.add_argument("--only", default="")
    parser.add_argument("--explain", action="store_true", help="print what the engine makes of each model")
    args = parser.parse_args()
    os.environ.setdefault("TELETENSOR_THREADS", str(args.threads))
    import onnxruntime

    import teletensor as torch

    torch.set_num_threads(args.threads)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = args.threads
    print("| model | batch | onnxruntime ms | teletensor ms | ratio | largest difference |")
    print("|---|---|---|---|---|---|")
    for path in sorted(args.folder.glob("*.onnx")):
        if args.only and args.only not in path.name:
            continue
        model = torch.onnx.load(path)
        peer = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        for batch in args.batch:
            given = inputs_for(model, batch, np.random.default_rng(0))
            tensors = {name: torch.from_numpy(a) for name, a in given.items()}
            with torch.no_grad():
                program = model.program(**{_identifier(n): t for n, t in tensors.items()})
                values = {_identifier(n): t for n, t in tensors.items()}
                if args.explain:
                    print(program.explain(**values))

                def ours(program=program, values=values):
                    found = program(**values)
                    return found.numpy() if isinstance(found, torch.Tensor) else [f.numpy() for f in found]

                def theirs(peer=peer, given=given):
                    return peer.run(None, given)

                a, b = ours(), theirs()[0]
                error = float(np.abs((a if isinstance(a, np.ndarray) else a[0]) - b).max())
                for _ in range(3):
                    ours()
                found = [(best(theirs, args.seconds / 2), best(ours, args.seconds / 2)) for _ in range(2)]
            them, us = min(f[0] for f in found), min(f[1] for f in found)
            print(
                f"| {path.stem} | {batch} | {them * 1e3:.2f} | {us * 1e3:.2f} | {us / them:.2f} | {error:.1e} |",
                flush=True,
            )
    return 0


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)


if __name__ == "__main__":
    sys.exit(main())
