"""Writes the seeds of the frame fuzzer: for each operator sample, the frame that a client sends for it; and frames of
operators without samples.

Usage: ``python -m tests.fuzz.seeds FOLDER``. Requires the test build of the package (tests/in_process).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(Path(os.environ.get("TELETENSOR_BUILD", ROOT / "build")) / "tests/python"))

import numpy as np  # noqa: E402

import teletensor as torch  # noqa: E402
from teletensor import _C, _connection  # noqa: E402
from tests.operators import samples  # noqa: E402


def open_recorded(file: Path) -> None:
    """Opens a session whose frames are written to the file, one after the other: together they are one frame."""
    torch.disconnect()
    _connection._current = _C.connect_in_process(record=str(file))
    _C.set_session(_connection._current)


def record_published(file: Path) -> None:
    """Publishes, opens, writes, lists and unpublishes tensors in a recorded session."""
    open_recorded(file)
    base = torch.ones(6)
    torch.publish("seed", {"a": base, "b": base.view(2, 3).T})
    opened = torch.open("seed")
    (opened["a"] + opened["b"].flatten()).sum().item()
    torch.published()
    torch.unpublish("seed")
    torch.publish("shared", torch.zeros(2), read_only=False, persist=True)
    torch.open("shared").add_(1)
    torch.synchronize()


def record(sample: samples.Sample, file: Path) -> None:
    """Runs a sample, and the gradient of its results' sum if differentiable, in a recorded session."""
    open_recorded(file)
    kwargs = samples.arguments(torch, sample, lambda name, array: samples.tensor(
        torch, array.astype(np.float32) if name in sample.floating else array, requires_grad=name in sample.floating))
    results = samples.call(torch, sample, kwargs)
    for result in results:
        if result is not None and result.requires_grad:
            result.sum().backward(retain_graph=True)
    for result in results:
        if result is not None:
            result.detach().cpu()
    torch.synchronize()


def anonymise(file: Path) -> None:
    """Overwrites the path of this source tree in a recorded frame's source lines, so that kept inputs contain no path of
    a machine."""
    root = str(ROOT).encode()
    file.write_bytes(file.read_bytes().replace(root, b"r" * len(root)))


def main(folder: Path) -> None:
    """Writes one file per sample; a sample that the engine refuses still gives a frame."""
    folder.mkdir(parents=True, exist_ok=True)
    for sample in samples.SAMPLES:
        file = folder / str(sample)
        file.unlink(missing_ok=True)
        try:
            record(sample, file)
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            pass  # samples that require another dtype
        torch.disconnect()
        if file.exists():
            anonymise(file)
    published = folder / "published"
    published.unlink(missing_ok=True)
    record_published(published)
    anonymise(published)
    torch.disconnect()
    print(f"{len(list(folder.iterdir()))} seeds in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
