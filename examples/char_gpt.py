"""Trains a character GPT on the plays of Shakespeare, in float32 and in bfloat16, and writes text with it.

    python examples/char_gpt.py                                  # 2,000 steps in each dtype
    python examples/char_gpt.py --dtypes bfloat16 --steps 500
    TELETENSOR_ADDRESS=gpu-box:7070 python examples/char_gpt.py --device cuda

Model and training are those of nanoGPT's README for a CPU (github.com/karpathy/nanoGPT: 4 layers, 4 heads, width 128, context
64, batch 12, 2,000 steps, no dropout), which reports a validation loss of 1.88. The text is stored in the engine, which also
draws the batches: no statement of the loop waits. Writes the losses as a picture to examples/out/.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import time
import urllib.request
from collections import deque
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F

OUT = Path(__file__).resolve().parent / "out"
PUBLISHED = 1.88  # validation loss after 2,000 steps, according to nanoGPT's README
URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
PLACES = (
    Path(__file__).resolve().parents[2] / "shared/data/tinyshakespeare.txt",
    Path(__file__).resolve().parent / "data/tinyshakespeare.txt",
)


def find_text(path: Path | None = None, url: str = URL) -> Path:
    """Returns the path of the text: the given one, or that of tinyshakespeare, which is downloaded if it is missing."""
    if path is not None:
        return path
    for place in PLACES:
        if place.exists():
            return place
    print(f"downloading {url} to {os.path.relpath(PLACES[-1])}")
    try:
        with urllib.request.urlopen(url, timeout=30) as reply:
            data = reply.read()
    except OSError as error:
        raise SystemExit(f"cannot download {url}: {error}; --data names another text") from None
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise SystemExit(f"expected tinyshakespeare with the SHA-256 sum {SHA256} from {url}, received another file")
    PLACES[-1].parent.mkdir(exist_ok=True)
    part = PLACES[-1].with_suffix(f".{os.getpid()}.part")  # other ranks may download it too
    part.write_bytes(data)
    return part.replace(PLACES[-1])


def read_text(path: Path) -> tuple[bytes, np.ndarray]:
    """Returns the characters that occur, sorted, and the text as indices of them (int64)."""
    symbols, text = np.unique(np.frombuffer(path.read_bytes(), np.uint8), return_inverse=True)
    return symbols.tobytes(), text.astype("int64")


class Block(nn.Module):
    """Causal attention and an MLP, each after a layer norm."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """Predicts the next character of every prefix: (N, T) tokens to (N, T, symbols) logits. Source: A. Radford et al.,
    "Language Models are Unsupervised Multitask Learners", 2019, without dropout."""

    def __init__(self, symbols: int, length: int, width: int = 128, heads: int = 4, layers: int = 2):
        super().__init__()
        self.length = length
        self.token, self.position = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:  # the paper's initialisation: smaller where the blocks add to their input
                inner = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if inner else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        self.head.weight = self.token.weight

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def generate(self, tokens, count: int, temperature: float = 0.8):
        """Appends `count` characters to (N, T) tokens, each drawn by its predicted probability. Nothing waits."""
        for _ in range(count):
            logits = self(tokens[:, -self.length :])[:, -1].float() / temperature
            tokens = torch.cat([tokens, torch.multinomial(logits.softmax(-1), 1)], 1)
        return tokens


def loss_of(model: GPT, windows) -> torch.Tensor:
    """The mean loss over windows of context + 1 characters."""
    return F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def make_optimizer(model: GPT, lr: float, steps: int):
    """Returns nanoGPT's AdamW, and its schedule: a linear warm-up, then a half cosine down to a tenth of the rate."""
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    warm_up = min(100, max(steps // 4, 1))

    def rate(step: int) -> float:
        if step < warm_up:
            return (step + 1) / (warm_up + 1)
        return 0.55 + 0.45 * math.cos(math.pi * (step - warm_up) / max(steps - warm_up, 1))

    optimizer = torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.99))
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, rate)


def draw_windows(text, batch: int, length: int) -> torch.Tensor:
    """Random windows (batch, length) of the text, drawn and gathered in the engine."""
    starts = torch.randint(0, len(text) - length + 1, (batch, 1), device=text.device)
    return text[starts + torch.arange(length, device=text.device)]


@torch.no_grad()
def validate(model: GPT, text) -> float:
    """The mean loss over the whole text, in consecutive windows."""
    count = (len(text) - 1) // model.length
    ends = torch.arange(count, device=text.device).unsqueeze(1) * model.length
    windows = text[ends + torch.arange(model.length + 1, device=text.device)]
    total = sum(loss_of(model, part) * len(part) for part in windows.split(128))
    return (total / count).item()


def train(model: GPT, train_text, valid_text, args, autocast, title: str) -> dict:
    """Trains; returns the losses as lists of (step, loss), and the seconds per step."""
    optimizer, schedule = make_optimizer(model, args.lr, args.steps)
    history, checks, pending = [], [], deque()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    started, validating = time.perf_counter(), 0.0
    with Progress(*columns) as progress:
        bar = progress.add_task(title, total=args.steps)
        for step in range(1, args.steps + 1):
            windows = draw_windows(train_text, args.batch, args.length + 1)
            with autocast():
                loss = loss_of(model, windows)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if step % 10 == 0 or step == args.steps:
                pending.append((step, loss.item_async()))
            if step % args.validate == 0 or step == args.steps:
                torch.synchronize()
                before = time.perf_counter()
                with autocast():
                    checks.append((step, validate(model, valid_text)))
                validating += time.perf_counter() - before
            while pending and (step == args.steps or pending[0][1].done()):  # a loss is shown when it has arrived
                computed, value = pending.popleft()
                history.append((computed, value.wait()))
                checked = f"  validation {checks[-1][1]:.3f}" if checks else ""
                progress.update(bar, completed=computed, description=f"{title}  loss {history[-1][1]:.3f}{checked}")
    seconds = (time.perf_counter() - started - validating) / args.steps
    return {"title": title, "history": history, "checks": checks, "seconds": seconds}


def draw(results: list[dict], file: Path) -> None:
    """Draws the losses as a PNG file."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for result, color, size in zip(results, ("C0", "C1"), (9, 5)):
        axes.plot(*zip(*result["history"]), color=color, alpha=0.35, lw=1)
        axes.plot(*zip(*result["checks"]), "o-", color=color, ms=size, label=f"{result['title']}, validation")
    axes.axhline(PUBLISHED, ls="--", color="gray", label=f"nanoGPT's README: {PUBLISHED}")
    axes.set(xlabel="step", ylabel="loss", title="Character GPT on teletensor; pale: training")
    axes.grid(alpha=0.3)
    axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120, bbox_inches="tight")
    print(f"wrote {os.path.relpath(file)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="A character GPT on a teletensor engine. With five minutes: --dtypes float32 --steps 500."
    )
    parser.add_argument("--dtypes", nargs="+", choices=["float32", "bfloat16"], default=["float32", "bfloat16"])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--length", type=int, default=64, help="characters of context")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--validate", type=int, default=250, help="number of steps between validations")
    parser.add_argument("--sample", type=int, default=400, help="number of characters to write")
    parser.add_argument("--device", default="cpu", help="device to compute on: cpu or cuda")
    parser.add_argument("--data", type=Path, help="a text; by default tinyshakespeare, downloaded once")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the picture")
    args = parser.parse_args()

    symbols, text = read_text(find_text(args.data))
    text = torch.from_numpy(text).to(args.device)
    train_text, valid_text = text.split([len(text) * 9 // 10, len(text) - len(text) * 9 // 10])
    console, results = Console(), []
    for dtype in args.dtypes:
        torch.manual_seed(1337)
        model = GPT(len(symbols), args.length, args.width, args.heads, args.layers).to(args.device)

        def autocast(dtype=dtype):
            return torch.autocast(args.device, torch.bfloat16, enabled=dtype == "bfloat16")

        results.append(train(model, train_text, valid_text, args, autocast, dtype))
        # The first symbol, which is a line break in most texts.
        prompt = torch.zeros(1, 1, dtype=torch.int64, device=args.device)
        with autocast():
            written = model.generate(prompt, args.sample)[0].tolist()
        console.print(
            Panel(bytes(symbols[i] for i in written).decode(errors="replace").strip(), title=f"written in {dtype}")
        )

    table = Table("dtype", "validation loss", "nanoGPT's README", "ms per step", title=f"{args.steps} steps")
    for result in results:
        loss, milliseconds = result["checks"][-1][1], 1e3 * result["seconds"]
        table.add_row(result["title"], f"{loss:.4f}", f"{PUBLISHED} (2,000 steps)", f"{milliseconds:.1f}")
    console.print(table)
    draw(results, args.out / "char_gpt.png")
    print(torch.sync_report())


if __name__ == "__main__":
    main()
