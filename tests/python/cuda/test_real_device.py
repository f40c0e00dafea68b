"""What only the machine's own GPU shows (`TELETENSOR_TEST_GPU`): NVIDIA's libraries, the driver's numbers, its memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request

import pytest

from tests.conftest import SIMULATED, client_environment
from tests.python.distributed.devices import device_cases
from tests.python.distributed.model_parallel import pipeline_cases
from tests.python.distributed.ranks import Ranks, free_port
from tests.python.session.test_session import run_script

pytestmark = pytest.mark.skipif(bool(SIMULATED), reason="the GPUs are simulated")

GIB = 1 << 30


def status(engine) -> dict:
    command = [sys.executable, "-m", "teletensor.cli", "--address", engine.address, "status", "--json"]
    shown = subprocess.run(command, env=client_environment(), capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def test_libraries_are_found(own_daemon):
    """Products, convolutions, Fourier transforms and decompositions are computed by NVIDIA's libraries."""
    engine = own_daemon()
    script = """
import teletensor as torch, teletensor.nn.functional as F
x = torch.randn(512, 512, device="cuda")
(x @ x).sum().item()
F.conv2d(torch.ones(2, 4, 8, 8, device="cuda"), torch.ones(4, 4, 3, 3, device="cuda")).sum().item()
torch.fft.fft(x).abs().sum().item()
torch.linalg.svdvals(x).sum().item()
(x.sin() * 2 + 1).exp().sum().item()
"""
    run = run_script(script, engine)
    assert run.returncode == 0, run.stderr
    shown = json.dumps(status(engine))
    print(re.findall(r'"librar[^]]*\]', shown))
    for library in ("cuBLASLt", "cuDNN", "cuFFT", "cuSOLVER", "NVRTC"):
        assert library in shown and f"{library} is missing" not in shown, shown


def test_metrics_of_the_driver(own_daemon):
    place = f"127.0.0.1:{free_port()}"
    engine = own_daemon("--http", place)
    script = """
import teletensor as torch
x = torch.ones(1 << 26, device="cuda")
for _ in range(300):
    x = x * 1.0001
x.sum().item()
"""
    assert run_script(script, engine).returncode == 0
    with urllib.request.urlopen(f"http://{place}/metrics") as answer:
        text = answer.read().decode()
    lines = [line for line in text.splitlines() if line.startswith("teletensor_gpu_")]
    print("\n".join(lines))
    used = [float(line.split()[-1]) for line in lines if 'kind="used"' in line]
    rates = [float(line.split()[-1]) for line in lines if line.startswith("teletensor_gpu_utilization_ratio")]
    assert used and used[0] > 0 and "NVIDIA" in lines[0], text
    assert rates and all(0 <= rate <= 1 for rate in rates), text


def test_activations_of_products_keep_nan(torch):
    """The activation that cuBLASLt fuses with a product, on explicit request."""
    a, b = torch.ones(16, 16, device="cuda"), torch.ones(16, 16, device="cuda")
    a[0, 0] = float("nan")
    bias = torch.zeros(16, device="cuda")
    for gelu in (False, True):
        fused = torch._addmm_activation(bias, a, b, use_gelu=gelu)
        assert torch.isnan(fused[0]).all().item() and not torch.isnan(fused[1:]).any().item(), gelu


def test_convolutions_use_tf32_if_allowed(torch):
    """Its products have about three decimal digits."""
    x, w = torch.randn(8, 64, 32, 32, device="cuda"), torch.randn(64, 64, 3, 3, device="cuda") / 24
    exact = torch.nn.functional.conv2d(x.double(), w.double())
    errors = {}
    for allowed in (True, False):
        with torch.backends.cudnn.flags(allow_tf32=allowed):
            errors[allowed] = (torch.nn.functional.conv2d(x, w) - exact).abs().max().item()
    print(errors)
    assert errors[False] < 1e-5 < errors[True] < 1e-2


@pytest.mark.parametrize("conf", ["", "expandable_segments:True", "max_split_size_mb:256,garbage_collection_threshold:0.8"])
def test_memory_under_pressure(own_daemon, conf):
    """Tensors of random sizes that fill nine tenths of the memory, released and replaced; values, and one refusal."""
    script = """
import random
import teletensor as torch
random.seed(1)
total = torch.cuda.mem_get_info()[0]
budget, held, kept = int(total * 0.9), 0, {}
for number in range(400):
    size = int(2 ** random.uniform(20, 31.5))
    while held + size > budget:
        name = random.choice(list(kept))
        held -= kept.pop(name).nbytes
    kept[number] = torch.full((size // 4,), float(number), device="cuda")
    held += kept[number].nbytes
for number, t in kept.items():
    assert t.min().item() == t.max().item() == number
try:
    torch.empty(total, device="cuda", dtype=torch.float32).fill_(0).sum().item()
except torch.cuda.OutOfMemoryError as e:
    refused = str(e)
assert "requested" in refused
kept.clear()
del t
torch.cuda.synchronize()
assert torch.cuda.memory_allocated() == 0
assert (torch.ones(3, device="cuda") + 1).tolist() == [2, 2, 2]
print(torch.cuda.memory_stats())
"""
    run = run_script(script, own_daemon(**({"TELETENSOR_ALLOC_CONF": conf} if conf else {})))
    assert run.returncode == 0, run.stderr
    print(run.stdout)


def test_collectives_by_nccl(tmp_path):
    """One rank: NCCL refuses two on one GPU. Its own log shows that it was used."""
    log = tmp_path / "nccl"
    group = Ranks(1, NCCL_DEBUG="INFO", NCCL_DEBUG_FILE=str(log))
    try:
        assert group.run(1, device_cases.reductions) == [[]]
        assert group.run(1, device_cases.pieces) == [[]]
    finally:
        group.stop()
    written = log.read_text() if log.exists() else ""
    print(written[:2000])
    assert "Init COMPLETE" in written or "ncclCommInitRank" in written, os.listdir(tmp_path)


@pytest.fixture(scope="module")
def sharing():
    """Two ranks with one GPU, whose collectives copy through the host's memory."""
    group = Ranks(2)
    yield group
    group.stop()


@pytest.mark.parametrize("length", [1, 1000, 1 << 20])
def test_collectives_of_ranks_that_share_the_gpu(sharing, length):
    assert sharing.run(2, device_cases.collectives, length=length) == [[], []]


@pytest.mark.parametrize("kind", ["DistributedDataParallel", "fully_shard"])
def test_training_of_ranks_that_share_the_gpu(sharing, kind):
    assert max(sharing.run(2, device_cases.trains, kind=kind)) < 1e-4


def test_pipeline_of_ranks_that_share_the_gpu(sharing):
    assert max(sharing.run(2, pipeline_cases.on_devices)) < 1e-4
