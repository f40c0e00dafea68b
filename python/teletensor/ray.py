"""Engines on a Ray cluster: ``teletensor.ray.launch()`` places and supervises teletensord processes as actors.

    import ray, teletensor, teletensor.ray
    ray.init()
    with teletensor.ray.launch(2, {"CPU": 4}) as engines:
        teletensor.connect(engines.addresses[0], token=engines.token)

Ray is optional; only launch() imports it. The package, with the same version, must be importable on every node.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _engine_package

_START_SECONDS = 30.0
_PAUSE_SECONDS = (0.1, 5.0)  # shortest and longest pause before a restart
_STOP_SECONDS = 15.0


def find_daemon() -> str:
    """Returns the path of teletensord: TELETENSOR_DAEMON, beside this package, in teletensor-engine, in the build tree, on the PATH."""
    named = os.environ.get("TELETENSOR_DAEMON")
    if named:
        return named
    here = Path(__file__).absolute().parent
    installed = _engine_package.binary()
    for candidate in (here / "teletensord", here / "bin/teletensord", installed, here.parent.parent / "bin/teletensord"):
        if candidate and os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which("teletensord")
    if not found:
        raise FileNotFoundError(
            "[teletensord] expected it on the node: pip install teletensor[engine], or set TELETENSOR_DAEMON or PATH"
        )
    return found


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as probe:
        return probe.getsockname()[1]


def _secret_file(text: str) -> int:
    """Returns the descriptor of a file in memory that only this user can read."""
    fd = os.memfd_create("token", 0)
    os.fchmod(fd, 0o600)
    os.write(fd, text.encode() + b"\n")
    return fd


class _Engine:
    """The actor: one teletensord, which is started again whenever it ends.

    A thread of the actor starts the process. The kernel ends the process with that thread, hence with the actor. Ray
    restarts a lost actor, possibly on another node; its engine then has a different address.
    """

    def __init__(self, token: str, options: Sequence[str], environment: Mapping[str, str]):
        import ray

        self._host = ray.util.get_node_ip_address()
        self._options, self._environment = list(options), dict(environment)
        # Files without a name, so that no token remains on the node if the actor is killed.
        self._tokens = [_secret_file(token), _secret_file(secrets.token_hex(32))]
        self._log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the actor
        self._process: subprocess.Popen | None = None
        self._port = _free_port(self._host)
        self._starts = 0
        self._error = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name="teletensord supervisor", daemon=True)
        self._thread.start()

    def _supervise(self) -> None:
        shortest, longest = _PAUSE_SECONDS
        pause = shortest
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                self._process = self._start()
                self._starts += 1
                self._process.wait()
                self._error = f"teletensord ended with code {self._process.returncode}: {self._log_tail()}"
            except OSError as e:
                self._error = f"cannot start teletensord: {e}"
            pause = shortest if time.monotonic() - started > longest else min(2 * pause, longest)
            self._stopping.wait(pause)

    def _start(self) -> subprocess.Popen:
        from .launch.ranks import end_with

        parent = os.getpid()
        token, admin_token = self._tokens
        command = [
            find_daemon(), "--listen", f"{self._host}:{self._port}", "--insecure", "--token-file", f"/proc/self/fd/{token}",
            "--admin-token-file", f"/proc/self/fd/{admin_token}", *self._options,
        ]  # fmt: skip
        peers = {"TELETENSOR_PEER_NETWORKS": "0.0.0.0/0,::/0"}  # the token is that of one program
        return subprocess.Popen(
            command, env={**peers, **os.environ, **self._environment}, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            pass_fds=self._tokens, preexec_fn=lambda: end_with(parent),
        )  # fmt: skip

    def _log_tail(self) -> str:
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), 1000, max(0, size - 1000)).decode(errors="replace")

    def status(self) -> dict[str, Any]:
        """Returns the engine's address, process id, number of restarts, and whether it accepts connections."""
        process = self._process
        running = process is not None and process.poll() is None
        ready = False
        if running:
            with socket.socket() as probe:
                probe.settimeout(1)
                ready = probe.connect_ex((self._host, self._port)) == 0
        return {
            "address": f"{self._host}:{self._port}", "pid": process.pid if running else None, "ready": ready,
            "restarts": max(0, self._starts - 1), "error": self._error,
        }  # fmt: skip

    def stop(self) -> None:
        """Ends the engine."""
        self._stopping.set()
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
        self._thread.join(_STOP_SECONDS)
        if self._process is not None and self._process.poll() is None:
            self._process.kill()


class Engines:
    """Engines that launch() has started. They end in shutdown(), or at the end of a with statement.

    Attributes:
        token: opens sessions on every engine.
    """

    def __init__(self, actors: list, token: str):
        self._actors, self.token = actors, token

    def __len__(self) -> int:
        return len(self._actors)

    def __enter__(self) -> Engines:
        return self

    def __exit__(self, *_) -> None:
        self.shutdown()

    def status(self) -> list[dict[str, Any]]:
        """Returns per engine: address, pid (None if it does not run), ready, restarts, error (of its latest exit)."""
        import ray

        return ray.get([actor.status.remote() for actor in self._actors])

    @property
    def addresses(self) -> list[str]:
        """The engines' addresses, for connect(). The address of an engine changes when Ray moves it to another node."""
        return [engine["address"] for engine in self.status()]

    def wait(self, timeout: float = _START_SECONDS) -> None:
        """Waits until all engines accept connections.

        Raises:
            TimeoutError: an engine does not; the message contains its log.
        """
        end = time.monotonic() + timeout
        while missing := [engine for engine in self.status() if not engine["ready"]]:
            if time.monotonic() > end:
                address, error = missing[0]["address"], missing[0]["error"]
                raise TimeoutError(f"[ray] the engine at {address} is not ready after {timeout:g} s: {error}")
            time.sleep(0.05)

    def shutdown(self) -> None:
        """Ends the engines and their actors. Idempotent."""
        import ray

        actors, self._actors = self._actors, []
        if actors:
            ray.wait([actor.stop.remote() for actor in actors], num_returns=len(actors), timeout=_STOP_SECONDS + 5)
        for actor in actors:
            ray.kill(actor)


def launch(
    num_engines: int,
    resources: Mapping[str, float] | None = None,
    *,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    timeout: float = _START_SECONDS,
) -> Engines:
    """Starts engines on a Ray cluster, spread over its nodes, and waits until they accept connections.

    An engine that ends is started again with the same address; Ray restarts one whose actor or node is lost, possibly
    on another node. The tensors of an engine that has ended are lost.

    Args:
        num_engines: number of engines.
        resources: of each engine, as Ray names them, such as ``{"CPU": 4, "GPU": 1}`` (default: one CPU). A number of
            CPUs is also the number of the engine's threads; Ray shows an engine its own GPUs only.
        options: further options of teletensord.
        environment: further variables of the engines' environment.
        timeout: maximum time in seconds until all engines are ready.

    Raises:
        ImportError: Ray is not installed.
        TimeoutError: the cluster lacks the resources, or an engine does not start.
    """
    try:
        import ray
    except ImportError as e:
        raise ImportError("[ray] expected Ray to be installed: pip install ray") from e
    if num_engines < 1:
        raise ValueError(f"[ray] expected num_engines to be at least 1, got {num_engines}")
    wanted = dict(resources or {"CPU": 1})
    cpus, gpus = wanted.pop("CPU", 0), wanted.pop("GPU", 0)
    variables = {"TELETENSOR_THREADS": str(int(cpus))} if cpus >= 1 else {}
    token = secrets.token_hex(32)
    actor = ray.remote(_Engine).options(
        num_cpus=cpus, num_gpus=gpus, resources=wanted or None, max_restarts=-1, scheduling_strategy="SPREAD",
        max_concurrency=4,
    )  # fmt: skip
    engines = Engines(
        [actor.remote(token, list(options), {**variables, **(environment or {})}) for _ in range(num_engines)], token
    )
    try:
        pending = ray.wait([a.status.remote() for a in engines._actors], num_returns=num_engines, timeout=timeout)[1]
        if pending:
            raise TimeoutError(
                f"[ray] the cluster has not placed {len(pending)} of {num_engines} engines with {resources} within {timeout:g} s"
            )
        engines.wait(timeout)
    except BaseException:
        for one in engines._actors:
            ray.kill(one)
        raise
    return engines
