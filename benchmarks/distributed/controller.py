"""The time of a process that controls four engines per collective and per operator. Prints JSON, in microseconds."""

from __future__ import annotations

import json
import time

import teletensor as torch
from teletensor import _C
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.tensor import Replicate, Shard, ones

CALLS = 30  # calls in a burst, which fits into the window, so that no call waits for the engines


def per_call(call, engines) -> float:
    """Returns the shortest mean time of a call in a burst of calls to idle engines."""
    best = float("inf")
    for _ in range(200):
        engines.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, (time.perf_counter() - begin) / CALLS)
    return best * 1e6


def main() -> None:
    engines = torch.connect_all(4)
    mesh = init_device_mesh("cpu", (4,))
    x = ones(4, 4, device_mesh=mesh, placements=[Shard(0)])
    total = x.sum()
    pairs = [(local, member.groups[0]) for local, member in zip(total.to_locals(), mesh._members(), strict=True)]

    def all_reduce() -> None:
        for local, group in pairs:
            _C.ops.group_reduced(local, group, op="sum", sums=False)

    print(
        json.dumps(
            {
                "all_reduce": per_call(all_reduce, engines),
                "redistribute": per_call(lambda: total.redistribute(placements=[Replicate()]), engines),
                "add": per_call(lambda: x + x, engines),
            }
        )
    )


if __name__ == "__main__":
    main()
