"""Ctrl-C: every wait for an engine ends with KeyboardInterrupt, and the session stays usable."""

from __future__ import annotations

import pytest

from tests.conftest import IN_PROCESS
from tests.python.session.test_session import run_script

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

# An engine that is stopped makes every call wait for as long as the test requires.
PREAMBLE = """
import os, signal, sys, threading, time
import numpy as np
import teletensor as torch

engine = int(os.environ["ENGINE"])
x = torch.ones(4)
big = torch.ones(4_000_000)
torch.synchronize()

def interrupt_after(seconds, signal_number=signal.SIGINT):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal_number))
    timer.daemon = True
    timer.start()

def stop_engine():
    os.kill(engine, signal.SIGSTOP)
    for thread in os.listdir(f"/proc/{engine}/task"):
        while open(f"/proc/{engine}/task/{thread}/stat").read().rsplit(")", 1)[1].split()[0] != "T":
            time.sleep(0.001)

def interrupted(wait):
    stop_engine()
    interrupt_after(0.3)
    started = time.monotonic()
    try:
        wait()
    except KeyboardInterrupt:
        took = time.monotonic() - started
    else:
        sys.exit("the wait was not interrupted")
    finally:
        os.kill(engine, signal.SIGCONT)
    assert 0.2 < took < 5, took

def issue_without_end():
    y = x
    while True:
        y = y + 1
"""

WAITS = {
    "item": "x.sum().item()",
    "if": "bool(x.sum() > 1)",
    "synchronize": "(x + 1, torch.synchronize())",
    "download": "big.numpy()",
    "array": "big.numpy_async().wait()",
    "upload": "torch.tensor(np.ones(40_000_000, dtype=np.float32))",
    "sizes": "torch.nonzero(x)",
    "full window": "issue_without_end()",
    "status": "torch._C.Admin(os.environ['TELETENSOR_ADDRESS'], '', 60.0).status()",
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
def test_interrupted_wait_keeps_the_session(daemon, wait):
    script = PREAMBLE + f"""
for _ in range(3):
    interrupted(lambda: {wait})
    assert x.sum().item() == 4
    assert big.numpy().sum() == 4_000_000
    assert torch.tensor(np.full(3_000_000, 2, dtype=np.float32)).sum().item() == 6_000_000
print("ok")
"""
    result = run_script(script, daemon, ENGINE=str(daemon.process.pid))
    assert result.stdout.strip() == "ok", result.stderr


def test_waiting_thread_does_not_block_interrupt(daemon):
    script = PREAMBLE + """
def wait():
    threading.Thread(target=issue_without_end, daemon=True).start()
    time.sleep(60)
interrupted(wait)
print("ok", flush=True)
os._exit(0)
"""
    result = run_script(script, daemon, ENGINE=str(daemon.process.pid))
    assert result.stdout.strip() == "ok", result.stderr


def test_wait_continues_after_a_handler_that_does_not_raise(daemon):
    script = PREAMBLE + """
seen = []
def handler(*_):
    os.kill(engine, signal.SIGCONT)
    seen.append(x.sum().item())  # a wait within the wait
signal.signal(signal.SIGALRM, handler)
stop_engine()
interrupt_after(0.3, signal.SIGALRM)
assert (x * 2).sum().item() == 8
assert seen == [4.0], seen
print("ok")
"""
    result = run_script(script, daemon, ENGINE=str(daemon.process.pid))
    assert result.stdout.strip() == "ok", result.stderr


def test_connecting_is_interrupted(daemon):
    script = PREAMBLE + """
address = os.environ["TELETENSOR_ADDRESS"]
torch.disconnect()
interrupted(lambda: torch.connect(address))
assert torch.connect(address) and torch.ones(2).sum().item() == 2
print("ok")
"""
    result = run_script(script, daemon, ENGINE=str(daemon.process.pid))
    assert result.stdout.strip() == "ok", result.stderr


def test_session_exit_is_interrupted(daemon):
    script = PREAMBLE + """
stop_engine()
y = x + 1
interrupt_after(0.3)
started = time.monotonic()
try:
    torch.disconnect()
except KeyboardInterrupt:
    assert time.monotonic() - started < 4
    print("ok")
os.kill(engine, signal.SIGCONT)
"""
    result = run_script(script, daemon, ENGINE=str(daemon.process.pid))
    assert result.stdout.strip() == "ok", result.stderr


def test_private_engine_start_is_interrupted(tmp_path):
    slow = tmp_path / "teletensord"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    script = """
import os, signal, threading
import teletensor as torch
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    torch.ones(1)
except KeyboardInterrupt:  # without an interrupt: ConnectionError
    print("ok")
"""
    result = run_script(script, TELETENSOR_ADDRESS="", TELETENSOR_DAEMON=str(slow))
    assert result.stdout.strip() == "ok", result.stderr


def test_second_interrupt_cancels_queued_work(daemon):
    script = PREAMBLE + """
try:
    torch.connection().cancel()
except NotImplementedError:
    print("not implemented")
    sys.exit()
w = torch.rand(2048, 2048)
y = w
for _ in range(200):
    y = y @ w
for _ in range(2):
    interrupt_after(0.5)
    try:
        y.sum().item()
        sys.exit("the wait was not interrupted")
    except KeyboardInterrupt:
        pass
started = time.monotonic()
assert x.sum().item() == 4
print("went on after", time.monotonic() - started)
assert time.monotonic() - started < 20
try:
    y.sum().item()
    sys.exit("the work was not cancelled")
except RuntimeError as error:
    assert "cancel" in str(error), error
print("ok")
"""
    result = run_script(script, daemon, ENGINE=str(daemon.process.pid))
    if result.stdout.strip() == "not implemented":
        pytest.skip("this engine does not implement Engine.Cancel")
    assert result.stdout.strip().endswith("ok"), result.stderr
