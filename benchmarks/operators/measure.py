"""`python -m benchmarks.operators.measure`: reads cases as JSON lines, writes microseconds a call and how many calls were
in flight, or an error, a line each.

BENCH_TORCH says which package is measured. Inputs are the same for every package.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
import time
import zlib

import numpy as np

torch = importlib.import_module(os.environ.get("BENCH_TORCH", "teletensor"))
F = importlib.import_module(f"{torch.__name__}.nn.functional")
HERE = torch.__name__ == "torch"
IN_FLIGHT = {"small": 1000, "cache": 32, "large": 16}  # at most so many calls are issued before one waits
STRETCH = 2e-3  # seconds that they take together, about
PATIENCE = 2.0  # seconds after which rounds need not be three


def wait() -> None:
    """Until everything issued is done."""
    if not HERE:
        torch.synchronize()


@functools.lru_cache(maxsize=4)  # neighbours among the cases have the same inputs
def tensor(name: str, given: str, dtype: str):
    """An input, as JSON says it: normal values, uniform between limits, or integers."""
    about = json.loads(given)
    about = about if isinstance(about, dict) else {"size": about}
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if "int" in about:
        values = rng.integers(*about["int"], size=about["size"])
    elif "low" in about or "high" in about:
        values = rng.uniform(about.get("low", 0), about.get("high", 1), size=about["size"])
    else:
        values = rng.normal(size=about["size"])
        if dtype.startswith("int"):
            values = np.abs(np.round(values * 10))
    dtype = about.get("dtype", dtype) if "int" in about else dtype
    return torch.from_numpy(np.ascontiguousarray(values)).to(getattr(torch, dtype))


def check(result) -> None:
    """Reads an element of each result: what failed on the way raises here, and is not measured."""
    if isinstance(result, (tuple, list)):
        for part in result:
            check(part)
    elif isinstance(result, torch.Tensor) and result.numel():
        result[(0,) * result.dim()].item()


def once(call, scope: dict, count: int) -> float:
    """Seconds of one call among `count` whose results are all kept until they are done."""
    wait()
    start = time.perf_counter()
    kept = [eval(call, scope) for _ in range(count)]  # noqa: S307 - the benchmark's own table
    wait()
    spent = (time.perf_counter() - start) / count
    del kept
    return spent


def in_flight(call, scope: dict, most: int) -> int:
    """How many calls take STRETCH together. One alone would say too few: its time is a round trip's, or a busy machine's."""
    count = 1
    while count < most and once(call, scope, count) * count < STRETCH:
        count = min(4 * count, most)
    return count


def measure(case: dict, budget: float) -> dict:
    """The best of as many rounds as the budget (seconds) allows: at least three, or one of what takes longer than PATIENCE.

    Of `case["count"]` calls in flight where it is given: results that are all kept, or not, lie elsewhere in the caches.
    """
    scope = {"torch": torch, "F": F, **{k: tensor(k, json.dumps(v), case["dtype"]) for k, v in case["inputs"].items()}}
    call = compile(case["call"], case["name"], "eval")
    check(eval(call, scope))  # noqa: S307 - the benchmark's own table
    count = case.get("count") or in_flight(call, scope, IN_FLIGHT[case["size"]])
    spent, rounds = 0.0, []
    while not rounds or (spent < PATIENCE and len(rounds) < 3) or (spent < budget and len(rounds) < 1000):
        rounds.append(once(call, scope, count))
        spent += rounds[-1] * count
    return {"us": 1e6 * min(rounds), "count": count}


def main() -> int:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        case = json.loads(line)
        try:
            reply = measure(case, case["budget"])
        except Exception as e:
            reply = {"error": f"{type(e).__name__}: {e}"[:300]}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
