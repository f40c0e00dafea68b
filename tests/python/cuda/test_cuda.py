"""Tensors on GPUs from Python: order, transfers, asynchronous errors, memory, and device loss. Graphs are in
test_cuda_graphs.py.

The GPUs are simulated (tests/cuda/simulated): work is deferred until a caller waits for it, so a missing wait gives
wrong values. On a machine with a GPU (`TELETENSOR_TEST_GPU`) the tests use that.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.conftest import IN_PROCESS, ROOT, SIMULATED, Daemon, client_environment
from tests.python.session.test_session import held_bytes, run_script

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="the engine in this process has no GPU")]
two_gpus = pytest.mark.skipif(not SIMULATED, reason="the machine may have one GPU")

MIB = 1 << 20


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# ---- Devices of tensors --------------------------------------------------------------------


def test_device_count_and_properties(torch):
    assert torch.cuda.is_available() and torch.cuda.device_count() >= (2 if SIMULATED else 1)
    properties = torch.cuda.get_device_properties(0)
    assert properties.name == torch.cuda.get_device_name("cuda:0") and properties.total_memory > 0
    assert torch.cuda.get_device_capability() == (properties.major, properties.minor)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.get_device_name(7)
    with pytest.raises(ValueError, match="Expected a cuda device"):
        torch.cuda.get_device_name("cpu")


@two_gpus
def test_current_device(torch):
    assert torch.zeros(1, device="cuda").device == torch.device("cuda", 0)
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert torch.zeros(1, device="cuda").device.index == 1
        assert torch.zeros(1).cuda().device.index == 1
        assert torch.zeros(1, device="cuda:0").device.index == 0
    assert torch.cuda.current_device() == 0
    assert torch.device("cuda").index is None and torch.device("cuda") != torch.device("cuda:0")
    x = torch.zeros(2, device="cuda")
    assert x.to("cuda") is x and x.cuda() is x and x.is_cuda and x.get_device() == 0


@two_gpus
def test_default_device(torch):
    with torch.device("cuda"):
        assert torch.zeros(2).is_cuda and torch.tensor([1.0]).is_cuda and torch.randn(2).is_cuda
        assert not torch.zeros(2, device="cpu").is_cuda
        assert not torch.zeros_like(torch.zeros(2, device="cpu")).is_cuda
        model = torch.nn.Linear(2, 2)
    assert model.weight.is_cuda and not torch.zeros(2).is_cuda
    torch.set_default_device("cuda:1")
    try:
        assert torch.zeros(2).device == torch.get_default_device() == torch.device("cuda:1")
    finally:
        torch.set_default_device(None)


def test_devices_do_not_mix(torch):
    x = torch.ones(2, device="cuda")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device.*cuda:0 and cpu"):
        x + torch.ones(2)
    assert (x + torch.tensor(2.0)).tolist() == [3, 3]  # a zero-dim CPU tensor is accepted
    assert x[torch.tensor([1, 0, 1])].tolist() == [1, 1, 1]  # CPU indices are accepted too
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    assert np.array_equal(x.cpu().numpy(), x.numpy(force=True))


@two_gpus
def test_from_gpu_to_gpu(torch):
    x = torch.ones(2, device="cuda")
    assert x.to("cuda:1").add(1).to("cuda:0").tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device.*cuda:0 and cuda:1"):
        x + x.to("cuda:1")


def test_saving(torch, tmp_path):
    x = torch.arange(5.0, device="cuda")
    torch.save({"x": x}, tmp_path / "x")
    assert torch.load(tmp_path / "x")["x"].device == x.device
    assert torch.load(tmp_path / "x", map_location="cpu")["x"].tolist() == x.tolist()


# ---- Order and transfers -------------------------------------------------------------------


def test_memory_is_reused_in_order(torch):
    """Tensors are freed before the GPU has processed them; tensors that reuse their memory must not change their
    values."""
    results = []
    for i in range(40):
        x = torch.tensor(np.full(1 << 15, i, "float32"), device="cuda")  # uploaded from the client
        y = torch.full((1 << 15,), float(i), device="cuda")
        results.append((x + y)[:3] * torch.tensor([1.0, 10.0, 100.0], device="cuda"))
        del x, y
    for i, r in enumerate(results):
        assert r.tolist() == [2 * i, 20 * i, 200 * i]


@pytest.mark.parametrize("elements", [1, 1000, 300_000, 16 * MIB, 16 * MIB + 1])
def test_transfers(torch, rng, elements):
    """Up to 64 MiB and slightly more, in both directions: inline, one chunk, several, and many rounds of the ring."""
    sent = rng.standard_normal(elements).astype("float32")
    x = torch.tensor(sent, device="cuda")
    got = (x * 2).numpy(force=True)
    assert np.array_equal(got, sent * 2)
    assert np.array_equal(x.cpu().numpy(), sent)


ROUND_TRIPS = """
import sys, numpy as np, teletensor as torch
rng = np.random.default_rng(0)
for bytes in [1, 2**18 - 1, 2**18, 2**18 + 1, 2**20 - 1, 2**20, 2**20 + 1, 2**23 - 1, 2**23, 2**23 + 1, 5 * 2**23 + 4321]:
    sent = rng.integers(0, 256, bytes, dtype=np.uint8)
    for device in ["cuda", "cpu"]:
        x = torch.tensor(sent, device=device)
        y = torch.as_tensor(sent[::-1].copy(), device=device)  # before the one before is read
        assert np.array_equal(x.numpy(force=True), sent), (device, bytes)
        assert np.array_equal((y ^ 255).numpy(force=True), sent[::-1] ^ 255), (device, bytes)
"""


@pytest.mark.parametrize("threads", ["1", "4"])
@pytest.mark.parametrize("daemon_environment", [{}, {"TELETENSOR_SIMULATED_REFUSES_PINNING": "1"}], ids=["", "refused"])
def test_transfers_around_the_sizes_of_chunks_and_the_ring(own_daemon, threads, daemon_environment):
    """With one or several client threads, with and without shared memory that the GPU can access."""
    engine = own_daemon(**daemon_environment)
    result = run_script(ROUND_TRIPS, engine, TELETENSOR_TRANSFER_THREADS=threads)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("threads", ["0", "33", "many"])
def test_invalid_transfer_threads(own_daemon, threads):
    result = run_script("import teletensor as torch; torch.ones(2)", own_daemon(), TELETENSOR_TRANSFER_THREADS=threads)
    message = f"ValueError: [connect] TELETENSOR_TRANSFER_THREADS must be a number from 1 to 32, got '{threads}'"
    assert message in result.stderr


@pytest.mark.parametrize("threads", ["1", "4"])
def test_abandoned_lane_is_not_used(own_daemon, threads):
    """The engine refuses an upload whose bytes are already being sent; later uploads use chunks in the call itself."""
    engine = own_daemon("--session-memory-limit", "64MiB")
    script = """
import os, numpy as np, teletensor as torch
sent = np.random.default_rng(0).integers(0, 256, 2**23 + 5, dtype=np.uint8)
for i in range(3):
    try:
        torch.tensor(np.zeros(2**27, "uint8"), device="cuda").sum().item()
        raise SystemExit("the upload was not refused")
    except torch.OutOfMemoryError:
        pass
    x = torch.tensor(sent, device="cuda")
    assert np.array_equal((x ^ 255).numpy(force=True), sent ^ 255)
"""
    result = run_script(script, engine, TELETENSOR_TRANSFER_THREADS=threads)
    assert result.returncode == 0, result.stderr


def test_views_are_read_in_their_order(torch, rng):
    sent = rng.standard_normal((600, 700)).astype("float32")
    x = torch.tensor(sent, device="cuda")
    assert np.array_equal(x.t().numpy(force=True), sent.T)
    assert np.array_equal(x[3::7, ::2].numpy(force=True), sent[3::7, ::2])
    assert x[5, :4].t().tolist() == sent[5, :4].tolist()


def test_several_readers(torch, rng):
    """Downloads in several threads while the session keeps computing."""
    from concurrent.futures import ThreadPoolExecutor

    sent = [rng.standard_normal(MIB).astype("float32") for _ in range(4)]
    tensors = [torch.tensor(s, device="cuda") for s in sent]
    with ThreadPoolExecutor(4) as pool:
        reads = [pool.submit(lambda t=t: t.numpy(force=True)) for t in tensors for _ in range(3)]
        x = torch.zeros(8, device="cuda")
        for _ in range(200):
            x = x + 1
        assert x.tolist() == [200] * 8
        for i, read in enumerate(reads):
            assert np.array_equal(read.result(), sent[i // 3])


# ---- Asynchronous errors -------------------------------------------------------------------


def line_of(text: str) -> int:
    """The number of the only line of this file that contains the text."""
    lines = open(__file__).read().splitlines()
    (found,) = [i for i, line in enumerate(lines, 1) if text in line and "line_of" not in line]
    return found


def test_invalid_index_is_reported_at_its_line(torch):
    unrelated = torch.arange(4.0, device="cuda") * 2
    table = torch.randn(5, 3, device="cuda")
    fine = torch.nn.functional.embedding(torch.tensor([1, 4], device="cuda"), table)
    bad = torch.nn.functional.embedding(torch.tensor([1, 9], device="cuda"), table)  # the invalid index
    later = (bad * 2).sum() + unrelated.sum()
    with pytest.raises(IndexError, match="index out of range in self") as raised:
        later.item()
    assert f"test_cuda.py:{line_of('# the invalid index')}" in str(raised.value)
    with pytest.raises(IndexError):
        bad.tolist()
    assert unrelated.tolist() == [0, 2, 4, 6] and fine.shape == (2, 3) and len(fine.tolist()) == 2
    assert len(table.tolist()) == 5


@pytest.mark.parametrize("kind", ["gather", "index", "target"])
def test_invalid_indices(torch, kind):
    """The kernel detects the error; it is raised when the value is read: inline, by download, or through another
    device."""
    x = torch.ones(3, 4, device="cuda")
    if kind == "gather":
        bad = x.gather(1, torch.full((3, 1), 4, device="cuda"))
    elif kind == "index":
        bad = x[torch.tensor([0, 3], device="cuda")]
    else:
        bad = torch.nn.functional.nll_loss(x, torch.tensor([0, 1, 4], device="cuda"), reduction="none")
    large = bad.reshape(-1)[0].expand(MIB).contiguous()
    with pytest.raises(IndexError, match="out of bounds|out of range"):
        large.numpy(force=True)
    with pytest.raises(IndexError, match="test_cuda.py"):
        bad.cpu().tolist()
    assert x.sum().item() == 12


def test_many_errors_at_once(torch):
    """More errors than can be pending at a time: each poisons its dependents only."""
    x = torch.ones(4, device="cuda")
    at = [torch.tensor([i % 5], device="cuda") for i in range(150)]  # every fifth is out of range
    picked = [x.gather(0, i) * k for k, i in enumerate(at)]
    for k, value in enumerate(picked):
        if k % 5 == 4:
            with pytest.raises(IndexError, match="index 4 is out of bounds"):
                value.item()
        else:
            assert value.item() == k


def test_backward_from_another_device(torch):
    """A loss computed on the CPU from a GPU's results."""
    w = torch.ones(3, device="cuda", requires_grad=True)
    (w * 2).cpu().sum().backward()
    assert w.grad.is_cuda and w.grad.tolist() == [2, 2, 2]


# ---- Streams and events --------------------------------------------------------------------


def test_events(torch):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    assert start.query()
    start.record()
    x = torch.ones(1000, device="cuda") * 2
    end.record()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    with pytest.raises(RuntimeError, match="Both events must be recorded"):
        start.elapsed_time(torch.cuda.Event(enable_timing=True))
    torch.cuda.current_stream().wait_event(end)
    torch.cuda.synchronize()
    assert x.sum().item() == 2000


@two_gpus
def test_streams_of_two_gpus(torch):
    start, other = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    other.record(torch.cuda.current_stream(1))
    with pytest.raises(RuntimeError, match="the same device"):
        start.elapsed_time(other)
    with torch.cuda.stream(torch.cuda.Stream(device=1)):
        assert torch.zeros(1, device="cuda").device.index == 1


# ---- Memory --------------------------------------------------------------------------------


def test_memory_statistics(torch):
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    others = [torch.cuda.memory_allocated(i) for i in range(1, torch.cuda.device_count())]
    torch.cuda.reset_peak_memory_stats()
    x = torch.zeros(MIB, device="cuda")
    assert torch.cuda.memory_allocated() == before + 4 * MIB
    assert [torch.cuda.memory_allocated(i) for i in range(1, torch.cuda.device_count())] == others
    assert torch.cuda.memory_reserved() >= 4 * MIB
    del x
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() == before + 4 * MIB
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total
    assert "reserved" in torch.cuda.memory_summary() and torch.cuda.memory_stats()["num_ooms"] >= 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("p", [0.25, 1.0])
def test_dropout_mask_equals_cpu(torch, dtype, p):
    """With the same generator state, forward and backward; also for rows of a transposed matrix."""
    results = []
    for device in ("cpu", "cuda"):
        x = torch.arange(1, 1201, device=device).reshape(30, 40).to(getattr(torch, dtype)).t().requires_grad_()
        torch.manual_seed(1)
        y = torch.nn.functional.dropout(x, p)
        (grad,) = torch.autograd.grad(y, x, torch.ones_like(y))
        results.append((y.cpu(), grad.cpu()))
    (y, grad), (other_y, other_grad) = results
    assert torch.equal(y, other_y) and torch.equal(grad, other_grad)
    kept = (y != 0).float().mean().item()
    assert abs(kept - (1 - p)) < 0.06


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_cross_entropy_of_logits_far_from_zero(torch, device):
    """Norms of values far from zero are as accurate as around zero, forward and backward."""
    near = torch.tensor([[1.0, 2.5, -3.0], [0.25, 0.5, 4.0]], device=device, requires_grad=True)
    far = (near.detach() + 8192).requires_grad_()
    target = torch.tensor([0, 2], device=device)
    losses = [torch.nn.functional.cross_entropy(x, target, reduction="sum") for x in (near, far)]
    assert losses[0].item() == losses[1].item()
    for loss in losses:
        loss.backward()
    assert torch.equal(near.grad, far.grad)


def test_cross_entropy_keeps_no_probabilities(torch):
    x = torch.zeros(256, 4096, device="cuda", requires_grad=True)
    target = torch.zeros(256, dtype=torch.int64, device="cuda")
    before = torch.cuda.memory_allocated()
    loss = torch.nn.functional.cross_entropy(x, target)
    assert torch.cuda.memory_allocated() - before < x.numel()
    loss.backward()
    assert torch.allclose(x.grad.sum(1), torch.zeros(256, device="cuda"), atol=1e-6)


def test_tensor_types_have_a_device(torch):
    x = torch.cuda.FloatTensor([1, 2])
    assert x.is_cuda and x.dtype is torch.float32 and x.type() == "torch.cuda.FloatTensor"
    assert isinstance(x, torch.cuda.FloatTensor) and not isinstance(x, torch.FloatTensor) and not isinstance(x, torch.cuda.LongTensor)
    assert torch.cuda.LongTensor(2, 3).shape == (2, 3) and torch.cuda.ByteTensor().numel() == 0
    assert x.type(torch.LongTensor).device.type == "cpu" and x.type("torch.cuda.HalfTensor").type() == "torch.cuda.HalfTensor"
    assert x.type(torch.float64).type() == "torch.cuda.DoubleTensor"
    with pytest.raises(ValueError, match="invalid type: 'torch.cuda.Floating'"):
        x.type("torch.cuda.Floating")
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: cuda was passed"):
        torch.FloatTensor([1.0], device="cuda")


def test_generator_state_is_shared_by_devices(torch):
    torch.cuda.manual_seed_all(3)
    states = torch.cuda.get_rng_state_all()
    assert len(states) == torch.cuda.device_count()
    first = torch.rand(4, device="cuda")
    torch.cuda.set_rng_state_all(states)
    assert torch.equal(torch.rand(4, device="cuda"), first)
    torch.cuda.set_rng_state(torch.cuda.get_rng_state("cuda:0"), device="cuda")



def test_empty_cache_affects_own_session_only(own_daemon):
    script = """
import os, subprocess, sys, teletensor as torch
torch.cuda.empty_cache()                             # before there is a connection: nothing
x = torch.zeros(2**24, device="cuda")
del x
cached = torch.cuda.memory_reserved()
assert cached >= 2**26, cached
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() <= cached - 2**26
x = torch.ones(2**24, device="cuda")
assert x.sum().item() == 2**24
other = subprocess.Popen([sys.executable, "-c", os.environ["OTHER"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert other.stdout.readline() == "cached\\n"
del x
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() >= 2**26         # the other's
other.communicate("")
"""
    other = """
import sys, teletensor as torch
x = torch.zeros(2**24, device="cuda")
x.sum().item()
del x
torch.cuda.synchronize()
print("cached", flush=True)
sys.stdin.read()
"""
    result = run_script(script, own_daemon(), OTHER=other)
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(not SIMULATED, reason="requires the small memory of a simulated GPU")
def test_out_of_memory_affects_one_session_only(own_daemon):
    engine = own_daemon(TELETENSOR_SIMULATED_MEMORY_MB="64")
    holder = """
import sys, teletensor as torch
kept = torch.arange(8 * 2**20, dtype=torch.float32, device="cuda")
print(kept[-1].item(), flush=True)
sys.stdin.readline()
print(kept[-1].item(), (kept[:10] + 1).sum().item())
"""
    environment = client_environment(TELETENSOR_ADDRESS=engine.address)
    first = subprocess.Popen(
        [sys.executable, "-c", holder], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout.readline().strip() == "8388607.0"
    greedy = """
import numpy as np, teletensor as torch
kept = torch.ones(1000, device="cuda")
try:
    (torch.zeros(12 * 2**20, device="cuda") + 1).sum().item()
except torch.cuda.OutOfMemoryError as e:
    print(e)
try:
    torch.tensor(np.zeros(12 * 2**20, "float32"), device="cuda").sum().item()
except torch.OutOfMemoryError as e:
    print(e)
print(kept.sum().item(), torch.cuda.memory_stats()["num_ooms"] >= 2)
"""
    second = run_script(greedy, engine)
    assert second.stdout.count("out of memory") == 2 and "1000.0 True" in second.stdout, second.stdout + second.stderr
    said, _ = first.communicate("\n", timeout=30)
    assert said.strip() == "8388607.0 55.0" and first.returncode == 0


def test_session_memory_limit_on_gpus(own_daemon):
    engine = own_daemon("--session-memory-limit", "16MiB")
    script = """
import teletensor as torch
kept = torch.ones(2**20, device="cuda")
try:
    torch.ones(2**22, device=f"cuda:{torch.cuda.device_count() - 1}").sum().item()
except torch.cuda.OutOfMemoryError as e:
    print(e)
print(kept.sum().item())
"""
    result = run_script(script, engine)
    assert "of its 16 MiB limit" in result.stdout and result.stdout.strip().endswith("1048576.0"), result.stderr


@two_gpus
def test_engine_memory_limit_per_gpu(own_daemon):
    engine = own_daemon("--memory-limit", "64MiB")
    script = """
import teletensor as torch
kept = torch.ones(10 * 2**20, device="cuda:0"), torch.ones(10 * 2**20, device="cuda:1")
try:
    torch.ones(10 * 2**20, device="cuda:1").sum().item()
except torch.cuda.OutOfMemoryError as e:
    print("out of memory")
print([k.sum().item() for k in kept], torch.cuda.memory_stats()["limit_bytes"])
"""
    result = run_script(script, engine)
    assert result.stdout.split("\n")[:2] == ["out of memory", "[10485760.0, 10485760.0] 67108864"], result.stderr


def wait_until_it_holds(engine: Daemon, before: int) -> None:
    """Checks that the engine frees the memory and serves another client."""
    deadline = time.monotonic() + 15
    while held_bytes(engine) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert held_bytes(engine) == before
    assert run_script("import teletensor as torch; assert torch.ones(3, device='cuda').sum().item() == 3", engine).returncode == 0


def test_killed_client_frees_its_memory(own_daemon):
    engine = own_daemon()
    before = held_bytes(engine)
    script = """
import os, signal, threading, numpy as np, teletensor as torch
x = torch.tensor(np.ones(2**22, "float32"), device="cuda")
y = (x + 1) * x
torch.cuda.synchronize()
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
while True:  # in the middle of transfers both ways
    z = torch.tensor(np.ones(2**22, "float32"), device="cuda")
    (z + y).numpy(force=True)
"""
    assert run_script(script, engine).returncode == -signal.SIGKILL
    wait_until_it_holds(engine, before)


@pytest.mark.parametrize("work", ["torch.tensor(sent, device='cuda')", "there.numpy(force=True)"])
def test_client_killed_during_transfer_frees_its_memory(own_daemon, work):
    """Several times, at random moments: the GPU may be accessing the shared memory."""
    engine = own_daemon()
    before = held_bytes(engine)
    script = f"""
import os, random, signal, threading, numpy as np, teletensor as torch
sent = np.ones(2**24, "float32")
there = torch.tensor(sent, device="cuda")
torch.cuda.synchronize()
threading.Timer(random.random() * 0.1, os.kill, (os.getpid(), signal.SIGKILL)).start()
while True:
    {work}
"""
    for _ in range(4):
        assert run_script(script, engine, TELETENSOR_TRANSFER_THREADS="3").returncode == -signal.SIGKILL
        wait_until_it_holds(engine, before)


def test_client_killed_during_graph_frees_its_memory(own_daemon):
    engine = own_daemon()
    before = held_bytes(engine)
    script = """
import os, signal, teletensor as torch
x = torch.ones(2**20, device="cuda")
torch.cuda.synchronize()
torch.cuda.CUDAGraph().capture_begin()
y = x * 2 + 1
torch.connection().synchronize()
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_script(script, engine).returncode == -signal.SIGKILL
    wait_until_it_holds(engine, before)


# ---- Losing a GPU --------------------------------------------------------------------------


@pytest.mark.skipif(not SIMULATED, reason="a real GPU cannot be lost on request")
def test_lost_gpu(own_daemon, tmp_path):
    """The lost GPU's tensors become errors; the session, the other GPU, other sessions and the daemon stay usable."""
    engine = own_daemon(TELETENSOR_SIMULATED_LOSSES=str(tmp_path))
    script = """
import os, numpy as np, teletensor as torch
a, b = torch.ones(2**20, device="cuda:0"), torch.ones(2**20, device="cuda:1")
print((a + a).sum().item(), (b + b).sum().item())
c = b + 1
open(os.environ["LOSSES"] + "/lost-1", "w").close()
for read in (lambda: c[0].item(), lambda: b.numpy(force=True), lambda: (b * 2).sum().item(), lambda: torch.cuda.synchronize(1),
             lambda: torch.tensor(np.ones(2**20), device="cuda:1").sum().item()):
    try:
        print("read", read())
    except RuntimeError as e:
        print("lost" if "the device fell off" in str(e) else e)
print((a + 1).sum().item(), torch.ones(2).sum().item())
"""
    result = run_script(script, engine, LOSSES=str(tmp_path))
    assert result.stdout.splitlines() == ["2097152.0 2097152.0", *["lost"] * 5, "2097152.0 2.0"], result.stderr
    again = run_script("import teletensor as torch; print(torch.ones(3, device='cuda').sum().item())", engine)
    assert again.stdout.strip() == "3.0", again.stderr
    deadline = time.monotonic() + 10
    while held_bytes(engine) != 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert held_bytes(engine) == 0


# ---- End to end ----------------------------------------------------------------------------


def test_status_shows_gpus(own_daemon):
    command = [sys.executable, "-m", "teletensor.cli", "--address", own_daemon("--memory-limit", "1GB").address, "status"]
    environment = client_environment(COLUMNS="160")
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
    name = "simulated GPU" if SIMULATED else "NVIDIA"
    assert name in shown.stdout and "cuda:0" in shown.stdout and "1.0 GiB" in shown.stdout, shown.stderr
    status = json.loads(subprocess.run([*command, "--json"], env=environment, capture_output=True, text=True, timeout=30).stdout)
    gpu = status["devices"][1]
    assert float(gpu["device"]["compute_capability"]) >= 7.5 and gpu["device"]["driver"] and int(gpu["memory"]["limit"]) == 1 << 30


def test_status_reports_libraries(own_daemon):
    """Libraries used so far: here cuDNN for a convolution or, without it, a kernel of the engine."""
    engine = own_daemon()
    script = """
import teletensor as torch, teletensor.nn.functional as F
F.conv2d(torch.ones(1, 1, 4, 4, device="cuda"), torch.ones(1, 1, 3, 3, device="cuda")).sum().item()
"""
    result = run_script(script, engine)
    assert result.returncode == 0, result.stderr
    command = [sys.executable, "-m", "teletensor.cli", "--address", engine.address, "status"]
    shown = subprocess.run(command, env=client_environment(COLUMNS="160"), capture_output=True, text=True, timeout=30).stdout
    assert ("cuDNN is missing: simulated" if SIMULATED else "cuDNN") in shown, shown


@pytest.mark.slow
def test_the_example_trains_on_a_gpu(own_daemon):
    command = [sys.executable, str(ROOT / "examples/fashion_mnist.py"), "--device", "cuda", "--steps", "3", "--batch", "16"]
    command += [] if SIMULATED else ["--data", str(ROOT / "data")]  # the data's path in a bundle
    environment = client_environment(TELETENSOR_ADDRESS=own_daemon().address)
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0 and "trained 3 steps" in result.stdout, result.stderr


def test_memory_without_a_tensor(torch):
    before = torch.cuda.memory_allocated(0)
    first = torch.cuda.caching_allocator_alloc(4 * MIB)
    second = torch.cuda.caching_allocator_alloc(MIB, 0, torch.cuda.current_stream())
    assert type(first) is int and first != second
    assert torch.cuda.memory_allocated(0) - before == 5 * MIB
    torch.cuda.caching_allocator_delete(first)
    assert torch.cuda.memory_allocated(0) - before == MIB
    torch.cuda.caching_allocator_delete(second)
    assert torch.cuda.memory_allocated(0) == before
    with pytest.raises(RuntimeError, match=f"invalid device pointer: {second}"):
        torch.cuda.caching_allocator_delete(second)


@two_gpus
def test_memory_without_a_tensor_is_of_the_current_gpu(torch):
    before = [torch.cuda.memory_allocated(i) for i in (0, 1)]
    with torch.cuda.device(1):
        memory = torch.cuda.caching_allocator_alloc(MIB)
    assert [torch.cuda.memory_allocated(i) - n for i, n in enumerate(before)] == [0, MIB]
    torch.cuda.caching_allocator_delete(memory)


def test_functions_of_the_runtime(torch):
    runtime = torch.cuda.cudart()
    free, total = runtime.cudaMemGetInfo(0)
    assert 0 < free <= total == torch.cuda.get_device_properties(0).total_memory
    assert runtime.cudaGetErrorString(runtime.cudaError.success) == "no error"
    with pytest.raises(NotImplementedError, match="use nsys, on teletensord"):
        runtime.cudaProfilerStart()
    with pytest.raises(AttributeError, match="no attribute 'cudaMalloc'"):
        runtime.cudaMalloc(1)
