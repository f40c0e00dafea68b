"""The end of a program: finalizers of its objects use tensors, with and without a living engine."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.conftest import client_environment

PROGRAM = """
import os, signal, sys, threading, time
import teletensor as torch
class Metric:
    def __init__(self):
        self.values = [torch.ones(2) * 3]
    def __del__(self):
        print("mean", (torch.stack(self.values).mean() + torch.ones(1)).item(), flush=True)
metric, cycle = Metric(), Metric()
cycle.itself = cycle
"""
ENDS = {
    "running": "",
    "exit": "sys.exit(0)",
    "exception": "raise SystemExit",
    "two sessions": "torch.disconnect(); metric.values = cycle.values = [torch.ones(2) * 3]",
}


def run(program: str) -> tuple[subprocess.CompletedProcess, float]:
    begin = time.monotonic()
    environment = {name: value for name, value in client_environment().items() if name != "TELETENSOR_ADDRESS"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=environment, check=False)
    return done, time.monotonic() - begin


@pytest.mark.parametrize("end", ENDS)
def test_finalizers_use_tensors(end):
    done, _ = run(PROGRAM + ENDS[end])
    assert done.returncode == 0 and not done.stderr
    assert done.stdout == "mean 4.0\n" * 2


def test_with_a_dead_engine():
    kill = """
for name in os.listdir("/proc"):
    if name.isdigit() and open(f"/proc/{name}/stat").read().rsplit(")")[-1].split()[1] == str(os.getpid()):
        os.kill(int(name), signal.SIGKILL)
"""
    done, seconds = run(PROGRAM + kill)
    assert done.returncode == 0 and done.stderr.count("ConnectionError") == 2
    assert seconds < 30


def test_with_threads_that_wait():
    """Their sessions end first: a thread that waits for an engine would not be able to return to the interpreter."""
    thread = """
def work():
    while True: torch.ones(3).sum().item()
threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    done, seconds = run(PROGRAM + thread)
    assert done.returncode == 0 and seconds < 30
