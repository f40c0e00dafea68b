"""A rank that ends while its threads work reports its own error and code, whatever the threads are doing."""

import random
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import client_environment
from tests.python.distributed.ranks import free_port

pytestmark = pytest.mark.slow

RANK = """
import os, sys, threading, time
import teletensor as torch, teletensor.distributed as dist
from teletensor.distributed import rpc

rank, how = int(os.environ["RANK"]), os.environ["HOW"]

@rpc.register
def work(a):
    while True:
        a = (a @ a).clamp(0, 1)
        a.sum().item()

def user_thread(x=torch.ones(50, 50)):
    try:
        while True:
            x.sum().item()
            x.exp().numpy()
    except ConnectionError:
        pass

dist.init_process_group("gloo")
rpc.init_rpc(f"w{rank}", rank=rank, world_size=2)
x = torch.ones(3)
dist.all_reduce(x)
futures = [rpc.rpc_async(f"w{1 - rank}", work, args=(torch.ones(100, 100),)) for _ in range(4)]
for _ in range(2):
    threading.Thread(target=user_thread, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()  # both ranks are ready
if rank == 0 and how != "signal":
    time.sleep(float(os.environ["DELAY"]))
    if how == "destroy":
        rpc.shutdown(graceful=False)
        dist.destroy_process_group()
    elif how == "exit":
        sys.exit(7)
    else:
        raise ValueError("the real error")
else:
    for future in futures:
        future.wait()
"""

# How rank 0 ends: its exit code, and a text that standard error contains.
ENDS = {
    "raise": (1, "ValueError: the real error"),
    "exit": (7, ""),
    "destroy": (0, ""),
    signal.SIGINT: (-signal.SIGINT, "KeyboardInterrupt"),
    signal.SIGTERM: (-signal.SIGTERM, ""),
}


@pytest.mark.parametrize("how", ENDS, ids=str)
def test_exit(how):
    is_signal, port, delay = isinstance(how, signal.Signals), str(free_port()), random.Random(str(how)).uniform(0.05, 0.5)
    ranks = []
    for rank in range(2):
        environment = client_environment(
            RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
            HOW="signal" if is_signal else how, DELAY=str(delay), TELETENSOR_THREADS="1",
        )  # fmt: skip
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        ranks.append(subprocess.Popen([sys.executable, "-c", RANK], env=environment, text=True, **pipes))
    for rank in ranks:
        assert rank.stdout.readline() == "ready\n", rank.stderr.read()
    for rank in ranks:
        rank.stdin.write("go on\n")
        rank.stdin.flush()
    if is_signal:
        time.sleep(delay)
        ranks[0].send_signal(how)
    errors = [rank.communicate(timeout=60)[1] for rank in ranks]
    assert all("terminate called" not in text for text in errors), errors
    assert ranks[0].returncode == ENDS[how][0], errors[0]
    assert ENDS[how][1] in errors[0]
    assert ranks[1].returncode == 1 and "was lost" in errors[1], errors[1]
