"""The processes of one node's ranks: environment, start, exit and end."""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from . import guard as _guard
from .logs import Output, Stream
from .membership import State
from .options import STDERR, STDOUT, Options, cores

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclasses.dataclass(frozen=True)
class Failure:
    """A rank that failed."""

    rank: int
    host: str
    pid: int
    code: int  # exit code; 128 + N for signal N
    error: str  # the last lines of standard error

    def describe(self) -> str:
        how = f"exit code {self.code}"
        if self.code > 128:
            try:
                how = f"killed by {signal.Signals(self.code - 128).name}, {how}"
            except ValueError:
                pass
        return f"rank {self.rank} failed first, on {self.host} (pid {self.pid}): {how}"


def end_with(parent: int) -> None:
    """Makes the kernel kill the calling process when its parent, whose id is given, ends. Runs between fork and exec."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


def environments(
    options: Options, state: State, group_rank: int, token: str, inherited: Mapping[str, str]
) -> list[dict[str, str]]:
    """Returns the environment of each local rank."""
    group = state.group
    own = group[group_rank]
    ranks = [node["ranks"] for node in group]
    same_role = [node["ranks"] if node["role"] == own["role"] else 0 for node in group]
    address, port = options.master or (group[0]["address"], group[0]["port"])
    common = {
        **inherited,
        "LOCAL_WORLD_SIZE": str(own["ranks"]),
        "WORLD_SIZE": str(sum(ranks)),
        "GROUP_RANK": str(group_rank),
        "GROUP_WORLD_SIZE": str(len(group)),
        "ROLE_NAME": own["role"],
        "ROLE_WORLD_SIZE": str(sum(same_role)),
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RESTART_COUNT": str(state.restarts),
        "TORCHELASTIC_MAX_RESTARTS": str(options.max_restarts),
        "TORCHELASTIC_RUN_ID": state.run_id,
        "TELETENSOR_GROUP_RUN": f"{state.run_id}/{state.round}",
        "TELETENSOR_GROUP_TOKEN": token,
    }
    if own["ranks"] > 1:
        common.setdefault("OMP_NUM_THREADS", "1")
    # The engine that a rank starts reads this variable.
    common.setdefault("TELETENSOR_THREADS", str(max(1, cores() // own["ranks"])))
    return [
        {
            **common,
            "LOCAL_RANK": str(local),
            "RANK": str(sum(ranks[:group_rank]) + local),
            "ROLE_RANK": str(sum(same_role[:group_rank]) + local),
        }
        for local in range(own["ranks"])
    ]


class Guard:
    """The process that kills the ranks' process groups if this launcher is killed. See guard.py."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", _guard.__file__], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def _send(self, line: str) -> None:
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except OSError:
            pass  # the guard was killed; PR_SET_PDEATHSIG still ends the ranks

    def add(self, group: int) -> None:
        self._send(f"+{group}\n")

    def remove(self, group: int) -> None:
        self._send(f"-{group}\n")

    def close(self) -> None:
        try:
            self._process.stdin.close()
        except OSError:
            pass
        self._process.wait()


class Rank:
    """One process, the leader of a session of its own, with its two streams."""

    def __init__(
        self, options: Options, environment: dict[str, str], output: Output, folder: Path | None, guard: Guard
    ):
        self.rank, self._local = int(environment["RANK"]), int(environment["LOCAL_RANK"])
        self._guard = guard
        pipes = [os.pipe(), os.pipe()]
        parent = os.getpid()
        try:
            self._process = subprocess.Popen(
                options.command, env=environment, stdin=subprocess.DEVNULL, stdout=pipes[0][1], stderr=pipes[1][1],
                start_new_session=True, preexec_fn=lambda: end_with(parent),
            )  # fmt: skip
        except BaseException:
            for read, _ in pipes:
                os.close(read)
            raise
        finally:
            for _, write in pipes:
                os.close(write)
        self.pid = self._process.pid
        self._code: int | None = None
        self._reaped = False
        guard.add(self.pid)
        self._out = self._stream(options, output, STDOUT, pipes[0][0], folder)
        self._err = self._stream(options, output, STDERR, pipes[1][0], folder)

    def _stream(self, options: Options, output: Output, stream: int, fd: int, folder: Path | None) -> Stream:
        redirected = options.redirects.get(self._local, options.redirects.get(-1, 0)) & stream
        in_file = redirected or options.tee.get(self._local, options.tee.get(-1, 0)) & stream
        shown = not redirected and (options.ranks_shown is None or self._local in options.ranks_shown)
        name = "stdout.log" if stream == STDOUT else "stderr.log"
        path = folder / str(self.rank) / name if in_file and folder is not None else None
        return Stream(fd, output, stream, output.prefix(stream, self.rank) if shown else None, path)

    @property
    def code(self) -> int | None:
        """The exit code; 128 + N after signal N; None while the process runs."""
        if self._code is None:
            # The process is not reaped before finish(), so that its id, which names its group, is not used again.
            info = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if info is not None:
                self._code = info.si_status if info.si_code == os.CLD_EXITED else 128 + info.si_status
        return self._code

    def failure(self, host: str) -> Failure:
        """Describes the failed rank, with its complete output."""
        self.finish()
        return Failure(self.rank, host, self.pid, self.code, self._err.tail())

    def kill(self, number: int) -> None:
        """Sends a signal to the rank and to the processes that it has started."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def finish(self) -> None:
        """Kills the rank and the processes that it has started, if they still run, and closes its streams."""
        if self._reaped:
            return
        self._reaped = True
        self.kill(signal.SIGKILL)
        self._guard.remove(self.pid)
        self._process.wait()
        self._out.finish()
        self._err.finish()


class Ranks:
    """The ranks of this node in one round."""

    def __init__(
        self, options: Options, environments: list[dict[str, str]], output: Output, folder: Path | None, guard: Guard
    ):
        """Raises OSError if the command cannot be executed."""
        self._ranks: list[Rank] = []
        try:
            for environment in environments:
                self._ranks.append(Rank(options, environment, output, folder, guard))
        except BaseException:
            for rank in self._ranks:
                rank.finish()
            raise

    def failed(self) -> Rank | None:
        """Returns a rank that has failed. Prefers ranks that were not terminated by SIGTERM, which another process may
        have sent.
        """
        failed = [rank for rank in self._ranks if rank.code]
        return min(failed, key=lambda rank: (rank.code == 128 + signal.SIGTERM, rank.rank)) if failed else None

    def finished(self) -> bool:
        return all(rank.code == 0 for rank in self._ranks)

    async def stop(self, number: int, grace: float, changed: asyncio.Event, interrupted, beat) -> None:
        """Ends all ranks: sends the signal, waits, and kills after the grace period.

        Args:
            number: the signal.
            grace: seconds.
            changed: is set when a child has ended or a signal has arrived.
            interrupted: returns whether to kill at once.
            beat: is called several times per second.
        """
        loop = asyncio.get_running_loop()
        for rank in self._ranks:
            if rank.code is None:
                rank.kill(number)
        end, killed = loop.time() + grace, False
        while any(rank.code is None for rank in self._ranks):
            if not killed and (interrupted() or loop.time() >= end):
                killed = True
                for rank in self._ranks:
                    rank.kill(signal.SIGKILL)
            beat()
            changed.clear()
            if any(rank.code is None for rank in self._ranks):
                try:
                    await asyncio.wait_for(changed.wait(), 0.2)
                except asyncio.TimeoutError:
                    pass
        for rank in self._ranks:
            rank.finish()
