"""Start-up: times of import and of a first result with a private engine, and the idle engine's memory, as JSON."""

import json
import os
import subprocess
import sys

IMPORT = "import time; t = time.perf_counter(); import teletensor; print(1000 * (time.perf_counter() - t))"
FIRST = (
    "import teletensor as torch, time; t = time.perf_counter(); torch.ones(2).sum().item(); "
    "print(1000 * (time.perf_counter() - t))"
)
RESIDENT = """
import json, os, time, teletensor as torch
torch.connect()
time.sleep(0.5)
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if open(f"/proc/{pid}/comm").read().strip() == "teletensord" and f"PPid:\\t{os.getpid()}" in open(f"/proc/{pid}/status").read():
            line = next(l for l in open(f"/proc/{pid}/status") if l.startswith("VmRSS"))
            print(int(line.split()[1]) / 1024)
    except OSError:
        pass
"""


def median(script: str, rounds: int = 5) -> float:
    environment = {k: v for k, v in os.environ.items() if k != "TELETENSOR_ADDRESS"}
    run = lambda: float(subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True).stdout)  # noqa: E731
    return sorted(run() for _ in range(rounds))[rounds // 2]


if __name__ == "__main__":
    print(json.dumps({
        "import teletensor": median(IMPORT),
        "start to first result": median(FIRST),
        "idle engine, resident": median(RESIDENT, 3),
    }))
