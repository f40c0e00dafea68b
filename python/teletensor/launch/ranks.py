"""The processes of one node's ranks: environment, start, exit and end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import string
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from . import guard as _guard
from .failure import Failure
from .function import Call, FunctionProcess, end_with
from .logs import FilterFile, Output, Stream
from .membership import State
from .options import STDERR, STDOUT, Options, cores

# Others notice a process that a signal ends, by its closed sockets, before its exit code is known.
_NOTICED_SECONDS = 0.1
_UNSURE_SECONDS = 3.0  # after the first exit, how long the ranks that are exiting are waited for


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
            **_local_rank(options, local, inherited),
            "RANK": str(sum(ranks[:group_rank]) + local),
            "ROLE_RANK": str(sum(same_role[:group_rank]) + local),
        }
        for local in range(own["ranks"])
    ]


def _local_rank(options: Options, local: int, inherited: Mapping[str, str]) -> dict[str, str]:
    """With --virtual-local-rank every rank is local rank 0 and sees its own GPU only."""
    if not options.virtual_local_rank:
        return {"LOCAL_RANK": str(local)}
    visible = [name.strip() for name in inherited.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    own = visible[local] if local < len(visible) else str(local)
    return {"LOCAL_RANK": "0", "CUDA_VISIBLE_DEVICES": own}


class Guard:
    """The process that kills the ranks' process groups and removes `folder` if this launcher is killed. See guard.py."""

    def __init__(self, folder: str):
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", _guard.__file__, folder], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def _send(self, line: str) -> None:
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except OSError:
            pass  # the guard was killed; PR_SET_PDEATHSIG still ends the ranks

    def fileno(self) -> int:
        """The descriptor whose end the guard waits for: no other process may keep a copy."""
        return self._process.stdin.fileno()

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
        self, options: Options, local: int, environment: dict[str, str], output: Output, folder: Path | None,
        failures: Path, guard: Guard, filters: dict[int, FilterFile], call: Call | None,
    ):  # fmt: skip
        self.rank, self._local = int(environment["RANK"]), local
        self._guard = guard
        self._failure_file, self._result_file = failures / f"{self.rank}.json", failures / f"{self.rank}.result"
        environment = {**environment, "TORCHELASTIC_ERROR_FILE": str(self._failure_file)}
        pipes = [os.pipe(), os.pipe()]
        try:
            self._process = self._start(options, environment, pipes[0][1], pipes[1][1], call)
        except BaseException:
            for read, _ in pipes:
                os.close(read)
            raise
        finally:
            for _, write in pipes:
                os.close(write)
        self.pid = self._process.pid
        self._code: int | None = None
        self._ended_at = 0.0
        self._reaped = False
        guard.add(self.pid)
        self._out = self._stream(options, output, STDOUT, pipes[0][0], folder, filters)
        self._err = self._stream(options, output, STDERR, pipes[1][0], folder, filters)

    def _start(
        self, options: Options, environment: dict[str, str], stdout: int, stderr: int, call: Call | None
    ) -> subprocess.Popen | FunctionProcess:
        if call is not None:
            return FunctionProcess(call, environment, stdout, stderr, self._result_file, self._guard.fileno())
        parent = os.getpid()
        return subprocess.Popen(
            [word.replace("${local_rank}", str(self._local)) for word in options.command],  # torchrun's macro
            env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True,
            preexec_fn=lambda: end_with(parent),
        )  # fmt: skip

    def _stream(
        self, options: Options, output: Output, stream: int, fd: int, folder: Path | None, filters: dict[int, FilterFile]
    ) -> Stream:
        redirected = options.redirects.get(self._local, options.redirects.get(-1, 0)) & stream
        in_file = redirected or options.tee.get(self._local, options.tee.get(-1, 0)) & stream
        shown = not redirected and (options.ranks_shown is None or self._local in options.ranks_shown)
        name = "stdout.log" if stream == STDOUT else "stderr.log"
        path = folder / str(self.rank) / name if in_file and folder is not None else None
        text = None
        if options.line_prefix is not None:
            text = string.Template(options.line_prefix).substitute(
                rank=self.rank, local_rank=self._local, role_name=options.role, hostname=socket.gethostname()
            )
        prefix = output.prefix(stream, self.rank, text) if shown else None
        filtered = filters.get(stream)
        plain = f"[{self.rank}] " if text is None else text
        return Stream(fd, output, stream, prefix, path, (filtered, plain.encode()) if filtered else None)

    @property
    def code(self) -> int | None:
        """The exit code; 128 + N after signal N; None while the process runs."""
        if self._code is None:
            # The process is not reaped before finish(), so that its id, which names its group, is not used again.
            info = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if info is not None:
                self._code = info.si_status if info.si_code == os.CLD_EXITED else 128 + info.si_status
                self._ended_at = time.time() - (_NOTICED_SECONDS if self._code > 128 else 0)
        return self._code

    def is_being_freed(self) -> bool:
        """Whether the process has ended, but its exit code is not known yet: the kernel has freed its memory."""
        try:
            return self.code is None and set(Path(f"/proc/{self.pid}/statm").read_text().split()) == {"0"}
        except OSError:
            return False

    def recorded(self) -> dict | None:
        """Returns the contents of the rank's failure file; None if it has not written one."""
        try:
            with self._failure_file.open() as file:
                record = json.load(file)
            return {"time": float(record["time"]), "caused_by_peer": bool(record["caused_by_peer"]),
                    "traceback": str(record["message"]["extraInfo"]["py_callstack"])}  # fmt: skip
        except (OSError, ValueError, TypeError, KeyError):  # absent, or written by another program
            return None

    def failure(self, host: str) -> Failure:
        """Describes the rank, which has failed or, having written its file, is about to (code 0)."""
        record = self.recorded() or {"time": self._ended_at, "caused_by_peer": False, "traceback": ""}
        return Failure(
            self.rank, host, self.pid, self.code or 0, self._err.tail() or record["traceback"], record["time"],
            record["caused_by_peer"],
        )  # fmt: skip

    def result(self) -> bytes | None:
        """Returns the pickled value that the rank's function returned; None if the rank is a program."""
        return self._result_file.read_bytes() if self._result_file.exists() else None

    def kill(self, number: int) -> None:
        """Sends a signal to the rank and to the processes that it has started."""
        for send in (os.killpg, os.kill):  # a function's process that is being started has no group of its own yet
            try:
                return send(self.pid, number)
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
        self, options: Options, environments: list[dict[str, str]], output: Output, folder: Path | None, failures: Path,
        guard: Guard, call: Call | None = None,
    ):  # fmt: skip
        """Raises OSError if the command cannot be executed. `failures` is an empty folder for the failure files. With
        `call` the ranks call a function instead of executing the command.
        """
        self._ranks: list[Rank] = []
        self._filters = {
            stream: FilterFile(folder / f"filtered_{'stdout' if stream == STDOUT else 'stderr'}.log", texts)
            for stream, texts in options.filters.items()
            if folder is not None
        }
        self._failed_at: float | None = None
        try:
            for local, environment in enumerate(environments):
                self._ranks.append(Rank(options, local, environment, output, folder, failures, guard, self._filters, call))
        except BaseException:
            for rank in self._ranks:
                rank.finish()
            raise

    def failed(self, host: str) -> Failure | None:
        """Returns the first failure, once it is known: a rank that has written its failure file, or whose memory
        the kernel has freed, may still be exiting, and when all failures report a lost rank, that rank may be one whose
        exit is still to be seen.
        """
        freed = [rank for rank in self._ranks if rank.is_being_freed()]
        failed = [rank for rank in self._ranks if rank.code]
        if not failed:
            return None
        now = time.monotonic()
        if self._failed_at is None:
            self._failed_at = now
        exiting = [rank for rank in self._ranks if rank.code is None and rank.recorded()]
        first = min([*failed, *exiting], key=lambda rank: rank.failure(host).order)
        running = any(rank.code is None for rank in self._ranks)
        unsure = freed or first in exiting or running and first.failure(host).caused_by_peer
        if unsure and now - self._failed_at < _UNSURE_SECONDS:
            return None
        first = min(failed, key=lambda rank: rank.failure(host).order)
        first.finish()
        return first.failure(host)

    def finished(self) -> bool:
        return all(rank.code == 0 for rank in self._ranks)

    def results(self) -> dict[int, bytes | None]:
        """Returns what Rank.result() returns, by rank."""
        return {rank.rank: rank.result() for rank in self._ranks}

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
        for file in self._filters.values():
            file.close()
