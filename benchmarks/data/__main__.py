"""`python -m benchmarks.data [--peers]`: loaders that decode images, and batches of data sets in the engine.

Generates images (JPEG and PNG of 320 x 240 pixels, with Pillow) in a temporary folder. Prints images per second with 0 and 2
workers, and microseconds to issue a batch, alternating with PyTorch if --peers is given.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import peers

ROOT = Path(__file__).resolve().parent.parent.parent


def write_images(folder: Path, count: int) -> None:
    """Writes images of smooth colours with noise, which compress about as well as photographs."""
    import numpy as np
    from PIL import Image

    numbers = np.random.default_rng(0)
    y, x = np.mgrid[:240, :320]
    for i in range(count):
        waves = [np.sin(x / numbers.uniform(8, 60) + y / numbers.uniform(8, 60)) for _ in range(3)]
        pixels = np.stack(waves, 2) * 100 + 128 + numbers.normal(0, 6, (240, 320, 3))
        kind = "png" if i % 8 == 0 else "jpg"
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{i:05}.{kind}")


def run(python: str, package: str, script: str, *arguments: str):
    """The JSON that a script prints."""
    import PIL

    environment = {
        **os.environ, "BENCH_TORCH": package, "BENCH_PILLOW": str(Path(PIL.__file__).parent.parent),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "build/python"), str(ROOT)]),
    }  # fmt: skip
    command = [python, "-m", f"benchmarks.data.{script}", *arguments]
    out = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    if out.returncode:
        raise SystemExit(f"{' '.join(command)}: {out.stderr}")
    return json.loads(out.stdout)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", action="store_true", help="measure PyTorch too")
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    measured = {"teletensor": sys.executable}
    if args.peers:
        measured["torch"] = peers.interpreter()
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder), args.images)
        for workers in (0, 2):
            best = {package: float("inf") for package in measured}
            for _ in range(args.rounds):
                for package, python in measured.items():
                    best[package] = min(best[package], *run(python, package, "images", folder, str(workers), "2"))
            rates = "  ".join(f"{package} {args.images / seconds:8.0f} images/s" for package, seconds in best.items())
            ratio = f"  ratio {best['torch'] / best['teletensor']:.2f}" if args.peers else ""
            print(f"decoding with {workers} workers: {rates}{ratio}", flush=True)
    for package, python in measured.items():
        for name, microseconds in run(python, package, "resident").items():
            print(f"batch of a resident data set, {name}: {package} {microseconds:.1f} us", flush=True)


if __name__ == "__main__":
    main()
