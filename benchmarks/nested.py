"""Attention over nested tensors with the jagged layout: time against tokens, and against padded tensors.

    PYTHONPATH=build/python python -m benchmarks.nested
    .venv-peers/bin/python -m benchmarks.nested --peer

Prints milliseconds of self-attention, forward and with gradients, over sequences of very different lengths: the same tokens in
more or fewer sequences, jagged and padded to the longest one. `--peer` runs the same with PyTorch.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

HEADS, ELEMENTS = 8, 64


def lengths(count: int, longest: int) -> list[int]:
    """Lengths of which one in eight is the longest, and the others a tenth of it."""
    return [longest if i % 8 == 0 else max(longest // 10, 1) for i in range(count)]


def measured(torch: Any, function: Any, seconds: float) -> float:
    """The median milliseconds of a call whose result is a number that is read."""
    function().item()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        function().item()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def inputs(torch: Any, sizes: list[int], padded: bool, dtype: Any) -> list:
    """Query, key and value (batch, heads, sequence, elements), which require gradients."""
    made = []
    for seed in range(3):
        torch.manual_seed(seed)
        if padded:
            made.append(torch.randn(len(sizes), HEADS, max(sizes), ELEMENTS, dtype=dtype).requires_grad_())
            continue
        values = torch.randn(sum(sizes), HEADS, ELEMENTS, dtype=dtype).requires_grad_()
        offsets = torch.tensor([sum(sizes[:i]) for i in range(len(sizes) + 1)]) if not made else made[0].offsets()
        nested = torch.nested.nested_tensor_from_jagged(values, offsets, min_seqlen=min(sizes), max_seqlen=max(sizes))
        made.append(nested.transpose(1, 2))
    return made


def times(torch: Any, sizes: list[int], padded: bool, dtype: Any, seconds: float) -> tuple[float, float]:
    """Milliseconds of the forward pass without gradients, and of a pass with gradients."""
    attend = torch.nn.functional.scaled_dot_product_attention
    query, key, value = inputs(torch, sizes, padded, dtype)
    mask = None
    if padded:
        columns = torch.arange(max(sizes)).reshape(1, 1, 1, -1)
        mask = columns < torch.tensor(sizes).reshape(-1, 1, 1, 1)

    def total() -> Any:
        result = attend(query, key, value) if mask is None else attend(query, key, value, attn_mask=mask)
        return (result if padded else result.values()).sum()

    def without_gradients() -> Any:
        with torch.no_grad():
            return total()

    def with_gradients() -> Any:
        loss = total()
        torch.autograd.grad(loss, [query, key, value])
        return loss

    forward = measured(torch, without_gradients, seconds)
    try:
        return forward, measured(torch, with_gradients, seconds)
    except (RuntimeError, NotImplementedError) as error:
        print(f"    gradients: {type(error).__name__}: {str(error)[:80]}")
        return forward, float("nan")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="store_true", help="measure PyTorch")
    parser.add_argument("--longest", type=int, default=512, help="the longest sequence")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--seconds", type=float, default=1.0, help="the time per figure")
    args = parser.parse_args()
    if args.peer:
        import torch
    else:
        import teletensor as torch
    dtype = getattr(torch, args.dtype)
    print(f"{'sequences':>9} {'tokens':>7} {'padded to':>9} {'layout':>7} {'forward ms':>11} {'gradients ms':>13} {'us/token':>9}")
    for count in (8, 16, 32, 64):
        sizes = lengths(count, args.longest)
        for layout in ("jagged", "padded"):
            forward, both = times(torch, sizes, layout == "padded", dtype, args.seconds)
            per_token = forward * 1e3 / sum(sizes)
            print(f"{count:9} {sum(sizes):7} {count * max(sizes):9} {layout:>7} {forward:11.2f} {both:13.2f} {per_token:9.2f}", flush=True)


if __name__ == "__main__":
    main()
