"""How long clients wait while an engine is replaced: 20 sessions with 4 GiB in all.

    python benchmarks/upgrade.py [--sessions 20] [--gib 4]

Starts an engine of its own, opens the sessions, each with half of its memory as a model's parameters and half as views
of one tensor, and reads a number from each of them in turn while `teletensor upgrade` runs. Prints the pause that the
engine reports, the longest read, and whether every tensor has the bits that it had.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import teletensor as torch
from teletensor import _C

ENGINE = Path(__file__).parent.parent / "build/bin/teletensord"


def fill(mib: int) -> list:
    tensors = [torch.randn(1 << 18) for _ in range(mib // 2)]  # 1 MiB each
    whole = torch.arange(mib // 2 * (1 << 18), dtype=torch.float32)
    return [*tensors, whole, *whole.split(1 << 20)]


def digest(tensors: list) -> float:
    return sum(each.double().abs().sum() for each in tensors).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--gib", type=float, default=4.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/engine.sock"
        environment = {**os.environ, "TELETENSOR_CUDA_PLUGIN": ""}
        process = subprocess.Popen([ENGINE, "--listen", address, "--no-auth", "--log-level", "warn"], env=environment)
        while not Path(folder, "engine.sock").exists():
            time.sleep(0.02)
        engines = torch.connect_all([address] * options.sessions)
        contents, digests, numbers = [], [], []
        for i in range(options.sessions):
            with engines.use(i):
                contents.append(fill(int(options.gib * 1024 / options.sessions)))
                digests.append(digest(contents[-1]))
                numbers.append(torch.zeros(()))
        admin = _C.Admin(address, deadline_seconds=300)
        replies = []
        upgrade = threading.Thread(target=lambda: replies.append(json.loads(admin.upgrade(10, False))))
        longest, count = 0.0, 0
        upgrade.start()
        end = None
        while end is None or time.monotonic() < end:
            for number in numbers:
                start = time.monotonic()
                number.add_(1)
                number.item()
                longest = max(longest, time.monotonic() - start)
            count += 1
            if not upgrade.is_alive() and end is None:
                end = time.monotonic() + 1
        (reply,) = replies
        intact = all(digest(each) == before for each, before in zip(contents, digests, strict=True))
        counted = all(number.item() == count for number in numbers)
        print(f"{reply['sessions']} sessions, {int(reply['bytes']) / 2**30:.2f} GiB")
        print(
            f"pause reported by the engine: {reply['pause_seconds']:.2f} s; longest read of a client: {longest:.2f} s"
        )
        print("all bits as before:", intact, "- every operation executed once:", counted)
        torch.disconnect()
        os.kill(int(reply["pid"]), 15)
        process.wait()


if __name__ == "__main__":
    main()
