"""Kills a random rank's engine at a random moment during a stream of random collectives, many times.

Usage: ``python -m tests.adversary.ranks [--rounds 200] [--seed 0]``. In every round two to four ranks form a group over
shared memory or Gloo and run random collectives until one of them is killed; every other rank must receive an error that
names the killed rank, compute afterwards, and form a group without it. Prints the time from the kill to the errors, and
at the end the growth of the surviving engines' descriptors, threads and memory, and the segments that dead engines left
in /dev/shm. Exits with 1 if a rank hung, an error did not name the rank, or something leaked.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import statistics
import sys
import time
from pathlib import Path

from tests.python.distributed.failures import failure_cases as cases
from tests.python.distributed.ranks import Rank, free_port

MOST_DESCRIPTORS = 8  # maximum growth of a surviving engine
MOST_THREADS = 8
MOST_MEMORY = 64 << 20
# After this number of rounds an engine's memory pools contain most of the sizes that the collectives use. An engine
# that lived for 55 rounds had 78 MiB of resident memory after ten of them, 84 after twenty and 87 after 35 and later.
WARM_UP = 5


def usage(pid: int) -> tuple[int, int, int]:
    """Returns the descriptors, threads and bytes of resident memory of a process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"]), int(status["VmRSS"].split()[0]) << 10


_used_ports: set[int] = set()


def new_port() -> int:
    """Returns a free port that no round has used, because ranks count the groups formed at an address."""
    while (port := free_port()) in _used_ports:
        pass
    _used_ports.add(port)
    return port


def segments() -> set[str]:
    """Returns the names of groups' segments in /dev/shm."""
    return {name for name in os.listdir("/dev/shm") if name.startswith("teletensor")}  # noqa: S108


class Member:
    """A rank's process, and its engine."""

    def __init__(self):
        self.rank = Rank()
        self._start(cases.engine_pid)

    def _start(self, function) -> None:
        self.rank.start(function)
        self.pid = self.rank.result()
        self.rounds = 0
        self.first: tuple[int, int, int] | None = None  # usage after WARM_UP rounds

    def replace_engine(self) -> None:
        """Starts another engine after this one was killed."""
        self._start(cases.new_engine)

    def stop(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.rank.stop()


def play(members: list[Member], generator: random.Random, round_: int) -> tuple[int, list[float], list[str]]:
    """Runs one round. Returns the killed rank, the seconds until each error, and the faults."""
    size, backend, port = len(members), generator.choice(["shm", "gloo"]), new_port()
    victim, seed = generator.randrange(size), generator.randrange(1 << 30)
    delay, faults, seconds = generator.uniform(0, 0.8), [], []
    for rank, member in enumerate(members):
        member.rank.start(cases.random_stream, rank, size, port, backend, seed)
    time.sleep(delay)
    killed = time.monotonic()
    os.kill(members[victim].pid, signal.SIGKILL)
    survivors = [rank for rank in range(size) if rank != victim]
    what = f"round {round_} ({backend}, {size} ranks, rank {victim} killed after {delay:.3f} s)"
    for rank in survivors:
        message, when, kept, steps = members[rank].rank.result()
        if f"rank {victim}" not in message and steps > 0:
            faults.append(f"{what}: rank {rank} after {steps} collectives: {message!r}")
        if kept != [0, 2, 4, 6, 8]:
            faults.append(f"{what}: rank {rank} lost its tensors: {message!r}")
        if steps > 0:
            seconds.append(when - killed)
    members[victim].rank.result()
    port = new_port()
    for rank in survivors:
        members[rank].rank.start(cases.form_again, rank, size, port, survivors)
    for rank in survivors:
        if (result := members[rank].rank.result()) != [sum(survivors)] * 3:
            faults.append(f"{what}: rank {rank} computed {result} in the new group")
    return victim, seconds, faults


def main() -> int:
    """Plays the rounds and prints a summary."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    generator = random.Random(args.seed)  # noqa: S311 - a reproducible sequence
    before, pool = segments(), [Member() for _ in range(4)]
    faults: list[str] = []
    seconds: list[float] = []
    growth: list[tuple[int, int, int]] = []
    ages: list[int] = []
    for round_ in range(args.rounds):
        members = generator.sample(pool, generator.randint(2, 4))
        victim, times, found = play(members, generator, round_)
        faults += found
        seconds += times
        for fault in found:
            print(fault, flush=True)
        for rank, member in enumerate(members):
            member.rounds += 1
            if rank == victim:
                continue
            now = usage(member.pid)
            if member.first is None and member.rounds >= WARM_UP:
                member.first = now
            elif member.first is not None:
                growth.append(tuple(n - f for n, f in zip(now, member.first, strict=True)))
                ages.append(member.rounds)
        members[victim].replace_engine()
        if (round_ + 1) % 20 == 0:
            print(f"{round_ + 1} rounds, {len(faults)} faults", flush=True)
    for member in pool:
        member.stop()
    left = segments() - before
    if left:
        faults.append(f"/dev/shm still contains {sorted(left)}")
    print(f"{args.rounds} rounds; a rank lived for up to {max(ages, default=0)}")
    if seconds:
        seconds.sort()
        print(f"from the kill to the error: median {statistics.median(seconds) * 1e3:.0f} ms, "
              f"99th percentile {seconds[int(len(seconds) * 0.99)] * 1e3:.0f} ms, maximum {seconds[-1] * 1e3:.0f} ms")  # fmt: skip
    if growth:
        most = [max(column) for column in zip(*growth, strict=True)]
        print(f"largest growth of a survivor: {most[0]} descriptors, {most[1]} threads, {most[2] / 2**20:.1f} MiB")
        limits = (("descriptors", MOST_DESCRIPTORS), ("threads", MOST_THREADS), ("bytes", MOST_MEMORY))
        for value, (name, limit) in zip(most, limits, strict=True):
            if value > limit:
                faults.append(f"a surviving engine has {value} more {name}, expected at most {limit}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
