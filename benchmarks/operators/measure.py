"""`python -m benchmarks.operators.measure`: reads cases as JSON lines. Writes a line for each:
microseconds per call and the number of calls in flight, or an error.

BENCH_TORCH is the measured package. Inputs are the same for every package.
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
IN_FLIGHT = {"small": 1000, "cache": 32, "large": 16}  # maximum number of calls issued before a wait
TARGET_SECONDS = 2e-3  # approximate seconds that calls in flight take together
SLOW_SECONDS = 2.0  # no further round after this many seconds, even if fewer than three were measured


def wait() -> None:
    """Waits until all issued work is done."""
    if not HERE:
        torch.synchronize()


@functools.lru_cache(maxsize=4)  # consecutive cases have the same inputs
def tensor(name: str, given: str, dtype: str):
    """Returns an input described by JSON: normal values, uniform values between limits, or integers."""
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
    """Reads an element of each result, so that a failed operation raises here instead of being measured."""
    if isinstance(result, (tuple, list)):
        for part in result:
            check(part)
    elif isinstance(result, torch.Tensor) and result.numel():
        result[(0,) * result.dim()].item()


def once(call, scope: dict, count: int) -> float:
    """Returns the seconds per call for `count` calls whose results are all kept until the last call is done."""
    wait()
    start = time.perf_counter()
    results = [eval(call, scope) for _ in range(count)]  # noqa: S307 - the benchmark's own table
    wait()
    spent = (time.perf_counter() - start) / count
    del results
    return spent


def calls_in_flight(call, scope: dict, most: int) -> int:
    """Returns how many calls together take TARGET_SECONDS. A single call may measure a round trip or noise."""
    count = 1
    while count < most and once(call, scope, count) * count < TARGET_SECONDS:
        count = min(4 * count, most)
    return count


def measure(case: dict, budget: float) -> dict:
    """Returns the best time of the rounds that fit in `budget` seconds.

    Measures at least three rounds, unless they take longer than SLOW_SECONDS.

    Uses `case["count"]` calls in flight if given, so that both packages keep the same number of results.
    """
    scope = {"torch": torch, "F": F, "reduce": functools.reduce}
    scope |= {k: tensor(k, json.dumps(v), case["dtype"]) for k, v in case["inputs"].items()}
    call = compile(case["call"], case["name"], "eval")
    check(eval(call, scope))  # noqa: S307 - the benchmark's own table
    count = case.get("count") or calls_in_flight(call, scope, IN_FLIGHT[case["size"]])
    spent, rounds = 0.0, []
    while not rounds or (spent < SLOW_SECONDS and len(rounds) < 3) or (spent < budget and len(rounds) < 1000):
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
