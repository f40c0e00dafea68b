"""Trains a small Llama-style model on the plays of Shakespeare, serves it, and streams text to many clients at once.

    python examples/serve_llama.py                       # trains, serves, 1 and 16 clients
    python examples/serve_llama.py --steps 200 --clients 4

The model predicts characters: RMS norms, rotary positions, grouped queries, SwiGLU (H. Touvron et al., "Llama 2", 2023). Its
folder contains two functions that share the weights: `prefill` computes a prompt, `step` appends one token to each of several
sequences; both change the cache of keys and values in place. A daemon serves the folder, and its clients are those of the Open
Inference Protocol, which know nothing of teletensor: `pip install tritonclient[grpc]`.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from teletensor import serving
from teletensor.ray import find_daemon

sys.path.insert(0, str(Path(__file__).resolve().parent))
from char_gpt import draw_windows, find_text, make_optimizer, read_text  # noqa: E402

PROMPTS = tuple(f"{name}:\n" for name in ("ROMEO", "JULIET", "KING RICHARD III", "First Citizen", "MENENIUS", "CORIOLANUS"))


def rotate(x, cos, sin):
    """Rotates pairs of the last dimension, which are its halves, by the angles of their positions."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(nn.Module):
    """Causal attention with rotary positions; groups of query heads share a head of keys and values."""

    def __init__(self, width: int, heads: int, kv_heads: int):
        super().__init__()
        self.heads, self.kv_heads, self.dim = heads, kv_heads, width // heads
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * kv_heads * self.dim, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def project(self, x, cos, sin):
        """Queries, keys and values of (N, T, width): (N, heads, T, dim)."""
        q = self.q(x).unflatten(-1, (self.heads, self.dim)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2 * self.kv_heads, self.dim)).transpose(1, 2).chunk(2, 1)
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def attend(self, q, k, v):
        """Attends to all earlier positions. Returns (N, T, width)."""
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).flatten(2))

    def attend_once(self, q, k, v, mask):
        """One query (N, heads, 1, dim) per row attends to the positions of the mask. Returns (N, 1, width). The heads of a group
        are the queries of their head of keys, so that no keys are repeated."""
        q = q.unflatten(1, (self.kv_heads, self.heads // self.kv_heads)).flatten(2, 3)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.flatten(1)[:, None])


class Block(nn.Module):
    """Attention and a gated MLP, each after an RMS norm."""

    def __init__(self, width: int, heads: int, kv_heads: int, hidden: int):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.attention = Attention(width, heads, kv_heads)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def mlp(self, x):
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Logits of the next token. `length`: the largest number of tokens of a sequence."""

    def __init__(self, symbols: int, length: int, width: int = 128, heads: int = 4, kv_heads: int = 2, layers: int = 4):
        super().__init__()
        self.length, self.kv_heads, self.dim = length, kv_heads, width // heads
        self.token = nn.Embedding(symbols, width)
        self.blocks = nn.ModuleList(Block(width, heads, kv_heads, width * 8 // 3 // 8 * 8) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, symbols, bias=False)
        angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(self.dim // 2) * 2 / self.dim)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens):
        """(N, T) tokens to (N, T, symbols)."""
        x = self.token(tokens)
        cos, sin = self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]]
        for block in self.blocks:
            attention = block.attention
            x = block.mlp(x + attention.attend(*attention.project(block.norm1(x), cos, sin)))
        return self.head(self.norm(x))

    def cache(self, slots: int) -> torch.Tensor:
        """Room for the keys and values of sequences: (layers, 2, slots, heads, length, dim)."""
        return torch.zeros(len(self.blocks), 2, slots, self.kv_heads, self.length, self.dim)

    def prefill(self, tokens, length, slot, cache):
        """Computes (1, T) tokens of a prompt, of which `length` (1) are not padding, and stores keys and values in a slot (1).
        Returns logits (1, symbols)."""
        x = self.token(tokens)
        count = tokens.shape[1]
        cos, sin = self.cos[:count], self.sin[:count]
        for block, (keys, values) in zip(self.blocks, cache):
            q, k, v = block.attention.project(block.norm1(x), cos, sin)
            keys[slot, :, :count] = k
            values[slot, :, :count] = v
            x = block.mlp(x + block.attention.attend(q, k, v))
        return self.head(self.norm(x[0].index_select(0, length - 1)))

    def step(self, tokens, positions, window, cache):
        """Appends tokens (R) at positions (R) to the first R slots, whose positions are below those of `window` (W), which
        counts from 0. Returns logits (R, symbols)."""
        rows, width = tokens.shape[0], window.shape[0]
        x = self.token(tokens)[:, None]
        cos, sin = self.cos[positions][:, None, None], self.sin[positions][:, None, None]
        mask = (window <= positions[:, None])[:, None, None]
        slots = torch.arange(rows)
        for block, (keys, values) in zip(self.blocks, cache):
            q, k, v = block.attention.project(block.norm1(x), cos, sin)
            keys[slots, :, positions] = k[:, :, 0]
            values[slots, :, positions] = v[:, :, 0]
            x = block.mlp(x + block.attention.attend_once(q, keys[:rows, :, :width], values[:rows, :, :width], mask))
        return self.head(self.norm(x[:, 0]))


def train(model: Llama, text, steps: int, batch: int = 16, report=print) -> float:
    """Trains the model, and returns the last loss."""
    optimizer, scheduler = make_optimizer(model, 2e-3, steps)

    def step(windows):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    loss = None
    for i in range(steps):
        loss = step(draw_windows(text, batch, 65))
        scheduler.step()
        if i % 100 == 0 or i == steps - 1:
            report(f"step {i}: loss {loss.item():.3f}")
    return loss.item()


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def daemon(models: Path, log: Path):
    """A teletensord that serves the folder. Yields its address, and the token that its clients need."""
    address = f"127.0.0.1:{free_port()}"
    files = {f"--{kind}token-file": str(log.with_name(f"{kind}token")) for kind in ("", "admin-")}
    command = [find_daemon(), "--listen", address, "--models", str(models), *(text for pair in files.items() for text in pair)]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        token = log.with_name("token")
        while not token.exists() or not token.read_text().strip():
            if process.poll() is not None:
                raise SystemExit(f"teletensord has ended: {log.read_text()}")
            time.sleep(0.05)
        yield address, token.read_text().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


class Client:
    """Streams tokens of one request after the other over a connection."""

    def __init__(self, address: str, token: str, model: str):
        import tritonclient.grpc as grpc

        self._grpc, self._model = grpc, model
        self._client = grpc.InferenceServerClient(address)
        self._receive = lambda _token, _error: None
        self._client.start_stream(self._read, headers={"authorization": f"Bearer {token}"})

    def _read(self, result, error) -> None:
        """Passes on an answer: a token, and None after the last one."""
        if error is not None:
            return self._receive(None, error)
        response = result.get_response()
        if (token := result.as_numpy("token")) is not None and token.size:
            self._receive(int(token[0]), None)
        if response.parameters["triton_final_response"].bool_param:
            self._receive(None, None)
        return None

    def start(self, receive, prompt: np.ndarray, **parameters) -> None:
        """Calls receive(token, error) on a thread of the connection for each token, with (None, None) at the end, and with an
        error instead of a token after a failure.
        """
        self._receive = receive
        tokens = self._grpc.InferInput("tokens", list(prompt.shape), "INT64")
        tokens.set_data_from_numpy(prompt)
        self._client.async_stream_infer(self._model, [tokens], parameters=parameters, enable_empty_final_response=True)

    def generate(self, prompt: np.ndarray, **parameters):
        """Yields tokens."""
        answers: queue.Queue = queue.Queue()
        self.start(lambda *answer: answers.put(answer), prompt, **parameters)
        while True:
            token, error = answers.get(timeout=60)
            if error is not None:
                raise error
            if token is None:
                return
            yield token

    def close(self) -> None:
        self._client.stop_stream()
        self._client.close()


def tokens_per_second(address: str, token: str, prompts: list[np.ndarray], count: int) -> tuple[float, list[list[int]]]:
    """Generates `count` tokens for each prompt at the same time, each from a client of its own."""
    clients = [Client(address, token, "llama") for _ in prompts]
    texts: list[list[int]] = [[] for _ in prompts]
    ends: queue.Queue = queue.Queue()

    def receive(i: int, token: int | None, error: Exception | None) -> None:
        if token is None:
            ends.put(error)
        else:
            texts[i].append(token)

    start = time.perf_counter()
    for i, client in enumerate(clients):
        client.start(functools.partial(receive, i), prompts[i], max_tokens=count, temperature=0.8, seed=i)
    for _ in clients:
        if (error := ends.get(timeout=120)) is not None:
            raise error
    seconds = time.perf_counter() - start
    for client in clients:
        client.close()
    return sum(map(len, texts)) / seconds, texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=200, help="per client")
    parser.add_argument("--data", type=Path, default=None)
    args = parser.parse_args()
    torch.manual_seed(0)
    symbols, text = read_text(find_text(args.data))
    model = Llama(len(symbols), 256, args.width, layers=args.layers)
    train(model, torch.tensor(text), args.steps)
    index = {symbol: i for i, symbol in enumerate(symbols)}
    prompts = []
    for i in range(args.clients):
        known = [index[c] for c in PROMPTS[i % len(PROMPTS)].encode() if c in index]  # another text may lack some
        prompts.append(np.array(known or [i % len(symbols)], np.int64))
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder, "models")
        (models / "llama").mkdir(parents=True)
        model.eval()
        decoder = serving.Decoder(model.prefill, model.step, model.cache(args.clients), args.clients, model.length)
        serving.save(decoder, models / "llama" / "1")
        with daemon(models, Path(folder, "log")) as (address, token):
            wait_until_ready(address, token, "llama")
            tokens_per_second(address, token, prompts, 8)  # compiles
            one, _ = tokens_per_second(address, token, prompts[:1], args.tokens)
            many, texts = tokens_per_second(address, token, prompts, args.tokens)
    for prompt, written in list(zip(prompts, texts))[:2]:
        print("-" * 80, bytes(symbols[t] for t in [*prompt, *written]).decode(errors="replace"), sep="\n")
    print("-" * 80)
    print(f"tokens per second: {one:.0f} for one client, {many:.0f} for {args.clients} ({many / one:.1f} times)")


def wait_until_ready(address: str, token: str, model: str, seconds: float = 60) -> None:
    """Waits until the daemon serves the model."""
    import tritonclient.grpc as grpc

    headers = {"authorization": f"Bearer {token}"}
    until = time.monotonic() + seconds
    with grpc.InferenceServerClient(address) as client:
        while True:
            with contextlib.suppress(grpc.InferenceServerException):
                if client.is_model_ready(model, headers=headers):
                    return
            if time.monotonic() > until:
                raise SystemExit(f"the model is not ready after {seconds:g} s")
            time.sleep(0.1)


if __name__ == "__main__":
    main()
