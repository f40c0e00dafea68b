"""`python stress.py [STEPS]`: stress test of a real device's allocator: no block overlaps another, no memory leaks.

Creates tensors of random sizes, fills each with a unique number, copies and drops them in random order, and checks
their values; some requests exceed the available memory. At the end the session must hold no memory.
"""

from __future__ import annotations

import random
import sys

import teletensor as torch


def check(tensors: dict[int, torch.Tensor]) -> None:
    """Checks that every element of each tensor still is its number."""
    for number, t in tensors.items():
        low, high = t.min().item(), t.max().item()
        assert low == high == number, f"tensor {number} of {t.numel()} elements holds {low} to {high}"


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    random.seed(0)
    live: dict[int, torch.Tensor] = {}
    total = torch.cuda.get_device_properties(0).total_memory
    budget, held, refused = total // 4, 0, 0
    for number in range(1, steps + 1):
        size = int(2 ** random.uniform(0, 22)) if random.random() < 0.9 else int(2 ** random.uniform(22, 26))
        size = min(size, budget // 16)
        while held + 4 * size > budget:
            held -= 4 * live.pop(random.choice(list(live))).numel()
        t = torch.full((size,), float(number % 1000), device="cuda")
        live[number % 1000] = t.clone() if random.random() < 0.3 else t
        held = sum(4 * kept.numel() for kept in live.values())
        if number % 500 == 0:
            check(live)
        if number % 1000 == 0:
            try:
                torch.empty(total, device="cuda").fill_(0).sum().item()
            except torch.cuda.OutOfMemoryError as e:
                refused += 1
                assert "requested" in str(e), e
    check(live)
    live.clear()
    del t
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == 0, f"{torch.cuda.memory_allocated()} bytes leaked"
    torch.cuda.empty_cache()
    print(f"{steps} tensors, {refused} refusals, no leaks; {torch.cuda.memory_stats()}")


if __name__ == "__main__":
    main()
