"""``python -m benchmarks.checkpoint``: saving and loading in the engine, compared with plain reads and writes of the
same bytes on the same disk, through the page cache and without it (O_DIRECT), and a training step during an
asynchronous save.

Rounds alternate between the engine and the plain program, since disks are shared. Files are read from the disk, not from
the page cache. Writes build/bench-checkpoint.json.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build/python"))
PIECE = 8 << 20


def evict(path: Path) -> None:
    """Removes a file's pages from the page cache."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def seconds_of(call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def plain_write(path: Path, data: mmap.mmap, flags: int) -> None:
    """Like `dd bs=8M conv=fsync`; with os.O_DIRECT like `oflag=direct` too."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | flags, 0o600)
    try:
        view = memoryview(data)
        for begin in range(0, len(view), PIECE):
            piece = view[begin : begin + PIECE]
            while piece:
                piece = piece[os.write(fd, piece) :]
        os.fsync(fd)
    finally:
        os.close(fd)


def plain_read(path: Path, data: mmap.mmap, flags: int) -> None:
    """Like `dd bs=8M`; with os.O_DIRECT like `iflag=direct` too."""
    fd = os.open(path, os.O_RDONLY | flags)
    try:
        view, at = memoryview(data), 0
        while at < len(view) and (got := os.readv(fd, [view[at : at + PIECE]])):
            at += got
    finally:
        os.close(fd)


def files_and_rates(folder: Path, megabytes: int, rounds: int, torch, checkpoint) -> dict[str, list[float]]:
    """Seconds of each round."""
    count = 64
    state = {f"layer.{i}": torch.randn((megabytes << 18) // count) for i in range(count)}
    target = {name: torch.zeros_like(value) for name, value in state.items()}
    data = mmap.mmap(-1, megabytes << 20)
    data.madvise(mmap.MADV_HUGEPAGE)
    data.write(os.urandom(1 << 20) * megabytes)
    plain, engine = folder / "plain", folder / "engine.safetensors"
    torch.synchronize()
    times: dict[str, list[float]] = {
        key: [] for key in ("write", "direct write", "save", "read", "direct read", "load")
    }
    for _ in range(rounds):
        for name, flags in (("write", 0), ("direct write", os.O_DIRECT)):
            plain.unlink(missing_ok=True)
            times[name].append(seconds_of(lambda flags=flags: plain_write(plain, data, flags)))
        engine.unlink(missing_ok=True)
        times["save"].append(seconds_of(lambda: checkpoint.save(state, engine)))
        for name, flags in (("read", 0), ("direct read", os.O_DIRECT)):
            evict(plain)
            times[name].append(seconds_of(lambda flags=flags: plain_read(plain, data, flags)))
        evict(engine)
        times["load"].append(seconds_of(lambda: checkpoint.load_into(target, engine)))
    assert all((target[name] == state[name]).all() for name in state)
    return times


def steps_during_save(folder: Path, megabytes: int, torch, checkpoint) -> tuple[list[float], list[float], float]:
    """Seconds of training steps without a save and during one, and of the call that starts the save."""
    model = torch.nn.Sequential(*(layer for _ in range(3) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())))
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(256, 512)
    state = {"model": model.state_dict(), "more": torch.randn(megabytes << 18)}

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        torch.synchronize()

    for _ in range(50):
        step()
    quiet, busy, starts = [], [], []
    for _ in range(3):
        quiet += [seconds_of(step) for _ in range(100)]
        begin = time.perf_counter()
        pending = checkpoint.save_async(state, folder / "async.safetensors")
        torch.synchronize()
        starts.append(time.perf_counter() - begin)
        while not pending.done():
            busy += [seconds_of(step) for _ in range(5)]
        pending.result()
    return quiet, busy, statistics.median(starts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoint", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure; by default a temporary one")
    options = parser.parse_args()
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "TELETENSOR_ADDRESS"):
        os.environ.pop(name, None)
    import teletensor as torch
    from teletensor import checkpoint

    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        times = files_and_rates(folder, options.megabytes, options.rounds, torch, checkpoint)
        quiet, busy, start = steps_during_save(folder, options.megabytes, torch, checkpoint)
    median = {key: statistics.median(values) for key, values in times.items()}
    table = Table("", "MB/s", "of the faster plain rate", title=f"{options.megabytes} MiB, load average {load:.1f}")
    for own, other in (("save", "write"), ("load", "read")):
        for name in (other, f"direct {other}"):
            table.add_row(f"plain {name}", f"{options.megabytes * 1.048576 / median[name]:.0f}", "")
        plain = map(min, times[other], times[f"direct {other}"])
        ratio = statistics.median(a / b for a, b in zip(plain, times[own], strict=True))
        table.add_row(own, f"{options.megabytes * 1.048576 / median[own]:.0f}", f"{ratio:.2f}")
    console = Console()
    console.print(table)
    ratio = statistics.median(busy) / statistics.median(quiet)
    console.print(
        f"step: {statistics.median(quiet) * 1e3:.2f} ms; during an asynchronous save {statistics.median(busy) * 1e3:.2f} ms "
        f"({ratio:.2f}x, {len(busy)} steps); the call that starts the save takes {start * 1e3:.0f} ms"
    )
    result = {
        "megabytes": options.megabytes,
        "load": load,
        "seconds": times,
        "quiet": quiet,
        "busy": busy,
        "start": start,
    }
    (ROOT / "build/bench-checkpoint.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
