"""Fuzzes operators whose kernels call a library or keep plans: whatever the shapes, memory stays within the limits.

    python -m tests.fuzz.library_fuzz --seconds 20 --seed 1

Starts a daemon with a limit per session, and draws calls of convolutions, products, attention, Fourier transforms,
decompositions, sorting and random numbers, with shapes that differ in each call. A call may raise the out-of-memory error of
its session. Checked: the daemon's peak resident memory during a session (its limit plus SLACK), and its resident memory
after each session (within KEPT of that before). Prints the number of calls; exits with 1 after a finding, with its call.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

LIMIT = 64 << 20  # bytes per session
# Beyond the limit: 16 MiB of the engine itself for the session, 6 MiB that are free of charge, oneDNN's and OpenBLAS'
# buffers, which they allocate once per thread, unused segments of the pool, and what malloc keeps before it is trimmed.
SLACK = 96 << 20
KEPT = 64 << 20
CALLS_PER_SESSION = 60


def log_uniform(random: random.Random, low: int, high: int) -> int:
    """A number whose magnitude is uniform."""
    return round(low * (high / low) ** random.random())


def convolution(torch, random: random.Random):
    """A convolution of one to three dimensions, or its transpose, perhaps with gradients."""
    dims, groups = random.choice([1, 1, 2, 2, 3]), random.choice([1, 1, 2])
    channels, out = groups * random.randint(1, 16), groups * random.randint(1, 16)
    widest = {1: 200_000, 2: 3_000, 3: 300}[dims]
    sizes = [random.randint(1, 12) for _ in range(dims - 1)] + [log_uniform(random, 4, widest)]
    kernel = [min(random.randint(1, 3), s) for s in sizes[:-1]] + [min(log_uniform(random, 1, 64), sizes[-1])]
    dtype = random.choice([torch.float32, torch.float32, torch.bfloat16, torch.float64])
    padding = [random.randint(0, 2)] * (dims - 1) + [random.choice([0, 1, log_uniform(random, 1, 100_000)])]
    function = getattr(torch.nn.functional, random.choice([f"conv{dims}d", f"conv_transpose{dims}d"]))
    transposed = "transpose" in function.__name__
    if transposed:
        padding = [0] * dims
    weights = [channels, out // groups] if transposed else [out, channels // groups]
    x = torch.randn(random.randint(1, 3), channels, *sizes).to(dtype).requires_grad_(random.random() < 0.5)
    w = torch.randn(*weights, *kernel).to(dtype).requires_grad_(True)
    y = function(x, w, stride=random.randint(1, 3), padding=padding, groups=groups, dilation=1)
    if random.random() < 0.5:
        y.sum().backward()
        return w.grad
    return y


def product(torch, random: random.Random):
    """A matrix product, batched or not, or a linear layer."""
    m, k, n = (log_uniform(random, 1, 1500) for _ in range(3))
    batch = random.choice([(), (), (random.randint(1, 5),)])
    dtype = random.choice([torch.float32, torch.bfloat16, torch.float64])
    return torch.randn(*batch, m, k).to(dtype) @ torch.randn(*batch, k, n).to(dtype)


def attention(torch, random: random.Random):
    heads, width = random.randint(1, 4), 8 * random.randint(1, 12)
    length, other = log_uniform(random, 1, 1500), log_uniform(random, 1, 1500)
    q, k = torch.randn(1, heads, length, width), torch.randn(1, heads, other, width)
    return torch.nn.functional.scaled_dot_product_attention(q, k, k, is_causal=random.random() < 0.3)


def fourier(torch, random: random.Random):
    name = random.choice(["fft", "ifft", "rfft", "irfft", "hfft", "fft2", "rfftn", "stft"])
    if name == "stft":
        length = log_uniform(random, 4, 4000)
        return torch.stft(torch.randn(2, length * 3), length, return_complex=True)
    if name in ("fft2", "rfftn"):
        return getattr(torch.fft, name)(torch.randn(log_uniform(random, 2, 1500), log_uniform(random, 2, 1500)))
    x = torch.randn(random.randint(1, 3), log_uniform(random, 2, 1_500_000))
    return getattr(torch.fft, name)(x)


def decomposition(torch, random: random.Random):
    m, n = log_uniform(random, 1, 700), log_uniform(random, 1, 700)
    batch = random.choice([(), (), (random.randint(1, 4),)])
    a = torch.randn(*batch, m, n, dtype=random.choice([torch.float32, torch.float64, torch.complex64]))
    square = a @ a.mH + torch.eye(m, dtype=a.dtype) if m <= 300 else torch.eye(300, dtype=a.dtype)
    linalg = torch.linalg
    calls: list[Callable] = [
        lambda: linalg.svd(a)[1], lambda: linalg.qr(a)[1], lambda: linalg.lu(a)[2], lambda: linalg.eigh(square)[0],
        lambda: linalg.cholesky(square), lambda: linalg.inv(square), lambda: linalg.solve(square, square),
        lambda: linalg.eig(square)[0], lambda: linalg.matrix_exp(square * 0.01), lambda: linalg.pinv(a),
        lambda: linalg.lstsq(a, a[..., :1]).solution, lambda: linalg.slogdet(square)[1],
    ]  # fmt: skip
    return random.choice(calls)()


def layer(torch, random: random.Random):
    nn = torch.nn
    width, length = log_uniform(random, 1, 200), log_uniform(random, 1, 300)
    kind = random.choice(["lstm", "gru", "norm", "pool", "embedding", "batch"])
    if kind in ("lstm", "gru"):
        return getattr(nn, kind.upper())(width, random.randint(1, 100))(torch.randn(length, random.randint(1, 4), width))[0]
    if kind == "norm":
        return nn.functional.layer_norm(torch.randn(length, width), (width,))
    if kind == "pool":
        return nn.functional.max_pool2d(torch.randn(2, 3, length + 2, width + 2), random.randint(1, 3))
    if kind == "batch":
        return nn.BatchNorm1d(width)(torch.randn(length + 1, width))
    return nn.functional.embedding(torch.randint(0, 10, (length,)), torch.randn(10, width))


def order(torch, random: random.Random):
    n = log_uniform(random, 1, 1_000_000)
    x = torch.randn(n)
    calls: list[Callable] = [
        lambda: x.sort()[0], lambda: x.unique(), lambda: x.median(), lambda: x.topk(max(1, n // 3))[0], lambda: x.cumsum(0),
        lambda: torch.randperm(n), lambda: x.histc(100), lambda: torch.multinomial(x.abs() + 0.1, min(n, 1000)),
        lambda: x.kthvalue(1 + n // 2)[0], lambda: x.round().mode()[0], lambda: x.quantile(0.3) if n < 100_000 else x.sum(),
    ]  # fmt: skip
    return random.choice(calls)()


SUBJECTS = (convolution, convolution, product, attention, fourier, decomposition, layer, order)


def resident(pid: int, name: str) -> int:
    """VmRSS or VmHWM of a process, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    raise ValueError(name)


class Finding(AssertionError):
    """A bound was exceeded; the message has the figures and the last call."""


def run_session(torch, address: str, pid: int, seed: int, calls: int = CALLS_PER_SESSION) -> None:
    """Runs the calls of one seed in a session of their own. Raises Finding."""
    draw = random.Random(seed)
    before = resident(pid, "VmRSS")
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # resets VmHWM
    torch.connect(address)
    torch.manual_seed(seed)
    try:
        for i in range(calls):
            subject = draw.choice(SUBJECTS)
            try:
                subject(torch, draw).abs().sum().item()
            except torch.OutOfMemoryError:
                pass
            except (RuntimeError, ValueError, NotImplementedError) as error:  # such as a kernel larger than its input
                if "Connection" in type(error).__name__ or "session" in str(error):
                    raise
            peak = resident(pid, "VmHWM")
            if peak > before + LIMIT + SLACK:
                raise Finding(f"{subject.__name__}, call {i} of seed {seed}: {peak >> 20} MiB resident, {before >> 20} before")
    finally:
        torch.disconnect()
    end = time.monotonic() + 10
    while (after := resident(pid, "VmRSS")) > before + KEPT and time.monotonic() < end:
        time.sleep(0.1)
    if after > before + KEPT:
        raise Finding(f"after seed {seed}: {after >> 20} MiB resident, {before >> 20} before")


def main() -> int:
    """Fuzzes; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path, help="not used: a finding is reproduced by its seed")
    args = parser.parse_args()
    import teletensor as torch
    from teletensor import _C  # noqa: F401 - fails here if the package is not built

    root = Path(__file__).resolve().parents[2]
    calls, seed = 0, args.seed
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/engine.sock"
        command = [str(root / "build/bin/teletensord"), "--listen", address, "--no-auth", "--session-memory-limit", str(LIMIT)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not Path(address[5:]).exists():
                time.sleep(0.02)
            run_session(torch, address, process.pid, 0, 3)  # what the process allocates once
            end = time.monotonic() + args.seconds
            while time.monotonic() < end:
                run_session(torch, address, process.pid, seed)
                calls, seed = calls + CALLS_PER_SESSION, seed + 1
        except Finding as finding:
            print(f"finding: {finding}")
            print(f"{calls} calls")
            return 1
        finally:
            process.terminate()
            process.wait()
    print(f"{calls} calls")
    return 0


if __name__ == "__main__":
    sys.exit(main())
