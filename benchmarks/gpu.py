"""GPU benchmarks, printed as JSON. BENCH_TORCH is the measured package.

The same script runs with `teletensor` (through an engine) and with `torch` (in its own process), so rows are
comparable. benchmarks/gpu_report.py runs both alternately.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks import decoding, gpt, vision  # noqa: E402

torch = importlib.import_module(os.environ.get("BENCH_TORCH", "teletensor"))
nn, F = torch.nn, torch.nn.functional
# Whether to use small sizes, for the simulated device, whose times do not matter.
SMALL = bool(os.environ.get("BENCH_SMALL"))
GIB = 1 << 20 if SMALL else 1 << 30
DEVICE = "cuda"


def seconds(work, repeats: int = 20, rounds: int = 5) -> float:
    """Returns the time of one call: the best of several rounds, each of which waits only at its end."""
    repeats, rounds = (2, 1) if SMALL else (repeats, rounds)
    work()
    torch.cuda.synchronize()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / repeats)
    return best


def bandwidth(bytes_moved: int, work) -> float:
    return bytes_moved / seconds(work) / 1e9


def matmul(dtype, n: int) -> float:
    n = 64 if SMALL else n
    a = torch.randn(n, n, device=DEVICE).to(dtype)
    b = torch.randn(n, n, device=DEVICE).to(dtype)
    return 2 * n**3 / seconds(lambda: a @ b) / 1e12


def memory_bound() -> dict[str, float]:
    """Returns GB/s, counting each byte read or written once."""
    rows = {}
    for name in ("float32", "bfloat16"):
        dtype = getattr(torch, name)
        count = GIB // (4 if name == "float32" else 2)
        a = torch.ones(count, device=DEVICE, dtype=dtype)
        b, out = torch.ones_like(a), torch.ones_like(a)
        wide = a.view(-1, 4096)
        weight, bias = torch.ones(4096, device=DEVICE, dtype=dtype), torch.zeros(4096, device=DEVICE, dtype=dtype)
        rows[f"copy 1 GiB {name}"] = bandwidth(2 * GIB, lambda: out.copy_(a))
        rows[f"a + b 1 GiB {name}"] = bandwidth(3 * GIB, lambda: torch.add(a, b, out=out))
        rows[f"gelu 1 GiB {name}"] = bandwidth(2 * GIB, lambda: F.gelu(a))
        rows[f"sum 1 GiB {name}"] = bandwidth(GIB, lambda: a.sum())
        rows[f"sum of rows 1 GiB {name}"] = bandwidth(GIB, lambda: wide.sum(1))
        rows[f"sum of columns 1 GiB {name}"] = bandwidth(GIB, lambda: wide.sum(0))
        rows[f"softmax rows of 4096 {name}"] = bandwidth(2 * GIB, lambda: F.softmax(wide, -1))
        rows[f"layer norm rows of 4096 {name}"] = bandwidth(2 * GIB, lambda: F.layer_norm(wide, (4096,), weight, bias))
    return rows


def transfers() -> dict[str, float]:
    """Returns GB/s between a NumPy array, whose pages are resident, and the device, until the copy is complete.

    Rows that end in "pinned" show the link's speed. For PyTorch they measure copies between the device and pinned
    memory that is allocated once, for teletensor copies between the device and an ordinary array (a new array for each
    download).
    """
    import numpy as np

    rows = {}
    peer = torch.__name__ == "torch"
    for name, count, repeats in (("64 MiB", GIB // 16, 16), ("1 GiB", GIB, 4)):
        array = np.ones(count // 4, dtype="float32")

        def rate(work, size=array.nbytes, repeats=repeats):
            return size / seconds(work, repeats) / 1e9

        there = torch.as_tensor(array, device=DEVICE)
        up = rate(lambda: torch.as_tensor(array, device=DEVICE))
        down = rate(lambda: there.numpy(force=True))
        rows |= {f"NumPy to GPU {name}": up, f"GPU to NumPy {name}": down}
        if peer:
            pinned = torch.from_numpy(array).pin_memory()
            up = rate(lambda: there.copy_(pinned, non_blocking=True))
            down = rate(lambda: pinned.copy_(there, non_blocking=True))
            del pinned
        rows |= {f"NumPy to GPU {name}, pinned": up, f"GPU to NumPy {name}, pinned": down}
        # Most programs copy through a CPU tensor, which is in the engine.
        rows[f"from_numpy().to() {name}"] = rate(lambda: torch.from_numpy(array).to(DEVICE))
        rows[f"cpu().numpy() {name}"] = rate(lambda: there.cpu().numpy())
    return rows


def mlp_step() -> float:
    model = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
    ).to(DEVICE)  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    x, y = torch.randn(128, 784, device=DEVICE), torch.randint(0, 10, (128,), device=DEVICE)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return seconds(step, 200) * 1e6


class Block(nn.Module):
    """A GPT block: attention with materialised scores, and an MLP, each after a norm."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            t.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for t in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        scores = F.softmax((q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5, -1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def block_step() -> float:
    width, length = (64, 16) if SMALL else (1024, 1024)
    block = Block(width, width // 64).to(DEVICE).to(torch.bfloat16)
    x = torch.randn(8, length, width, device=DEVICE).to(torch.bfloat16)
    optimizer = torch.optim.SGD(block.parameters(), 1e-3)

    def step():
        optimizer.zero_grad()
        block(x).float().mean().backward()
        optimizer.step()

    return seconds(step, 20) * 1e6


def attention_step(backend: str) -> float:
    """Microseconds of causal attention and its gradient. FLASH_ATTENTION is teletensor's own kernels."""
    attention = importlib.import_module(f"{torch.__name__}.nn.attention")
    samples, length = (1, 128) if SMALL else (8, 2048)
    q, k, v = (torch.randn(samples, 16, length, 64, device=DEVICE).to(torch.bfloat16).requires_grad_() for _ in range(3))
    grad = torch.randn(samples, 16, length, 64, device=DEVICE).to(torch.bfloat16)

    def step():
        with attention.sdpa_kernel(getattr(attention.SDPBackend, backend)):
            torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v), grad)

    return seconds(step, 20) * 1e6


def resnet_images(batch: int, dtype) -> float:
    """Images per second of ResNet-18's inference."""
    model = vision.resnet18(torch).to(DEVICE).to(dtype).eval()
    size = 32 if SMALL else 224
    x = torch.randn(batch, 3, size, size, device=DEVICE).to(dtype)

    def run():
        with torch.no_grad():
            model(x)

    return batch / seconds(run, 20)


def resnet_step(batch: int = 32) -> float:
    """Microseconds of a training step of ResNet-18 in mixed precision."""
    model = vision.resnet18(torch).to(DEVICE)
    size = 32 if SMALL else 224
    x, y = torch.randn(batch, 3, size, size, device=DEVICE), torch.randint(0, 1000, (batch,), device=DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    return seconds(step, 10) * 1e6


def gpt_step() -> float:
    """Microseconds of a training step of the character GPT: 64 texts of 64 characters, float32, AdamW."""
    model = gpt.make_gpt(torch, 65).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    x = torch.randint(0, 65, (64, 64), device=DEVICE)
    y = x.flatten()

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return seconds(step, 50) * 1e6


def tokens(compiled: bool) -> float:
    """Tokens per second of a small Llama with a cache, for one sequence."""
    layers, *sizes = next(iter(decoding.SIZES.values()))
    model = decoding.make_decoder(torch, 1 if SMALL else layers, *sizes).to(DEVICE)
    positions = [torch.tensor([i], device=DEVICE) for i in range(8 if SMALL else 128)]
    with torch.no_grad():
        token = torch.tensor([1], device=DEVICE)
        step = torch.compiler.trace(model, token, positions[0]) if compiled else model

        def write():
            last = token
            for position in positions:
                last = step(last, position)
            return last.item()

        return len(positions) / seconds(write, 1)


def round_trip() -> float:
    """Microseconds from a call on a small tensor to the number that it returns."""
    x = torch.ones(8, device=DEVICE)
    return seconds(lambda: x.sum().item(), 200) * 1e6


def calls() -> float:
    """Microseconds of a small operator in a long sequence, of which nothing is read."""
    x = torch.ones(1000, device=DEVICE)

    def work():
        y = x
        for _ in range(100):
            y = y * 1.0001 + 0.5
            y = y.view(10, 100).transpose(0, 1).reshape(1000)

    return seconds(work, 10) * 1e6 / 500


def main() -> None:
    rows = [{"what": f"matmul 8192 {n}", "value": matmul(getattr(torch, n), 8192), "unit": "TFLOP/s"}
            for n in ("bfloat16", "float16", "float32")]  # fmt: skip
    rows += [{"what": k, "value": v, "unit": "GB/s"} for k, v in (memory_bound() | transfers()).items()]
    rows.append({"what": "MLP 784-512-256-10, batch 128, Adam step", "value": mlp_step(), "unit": "us"})
    rows.append({"what": "GPT block 1024, 8 x 1024 tokens, bfloat16 step", "value": block_step(), "unit": "us"})
    rows += [
        {"what": f"ResNet-18 inference, batch {n}, {dtype}", "value": resnet_images(n, getattr(torch, dtype)), "unit": "images/s"}
        for n, dtype in ((1, "float32"), (16, "float32"), (16, "bfloat16"))
    ]
    rows.append({"what": "ResNet-18, batch 32, autocast step", "value": resnet_step(), "unit": "us"})
    rows.append({"what": "character GPT, 64 x 64, AdamW step", "value": gpt_step(), "unit": "us"})
    rows.append({"what": "Llama 15 million, one sequence", "value": tokens(False), "unit": "tokens/s"})
    if torch.__name__ != "torch":
        rows.append({"what": "Llama 15 million, one sequence, as a Program", "value": tokens(True), "unit": "tokens/s"})
    rows.append({"what": "sum of 8 elements, read", "value": round_trip(), "unit": "us"})
    rows.append({"what": "small operators in sequence", "value": calls(), "unit": "us"})
    for name, backend in (("FlashAttention", "FLASH_ATTENTION"), ("cuDNN", "CUDNN_ATTENTION")):
        what = f"attention 8 x 16 x 2048 x 64 bfloat16, causal, with gradients, {name}"
        with contextlib.suppress(RuntimeError):  # PyTorch without this implementation
            rows.append({"what": what, "value": attention_step(backend), "unit": "us"})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
