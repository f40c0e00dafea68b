"""FAULTS: what happens to an engine, its clients and the machine below them, and what has to hold nevertheless.

Each function causes its fault `rehearsal.rounds` times during a training run, and returns what it did, for the report.
It appends to `rehearsal.complaints` what did not hold.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import trustme

from tests.chaos.engine import LEASE, PATIENCE, ROOT, Engine, Training, Usage, pause, wait_for
from tests.relay.process import RelayProcess

# Prints the sum of a tensor, or the error of connect().
CLIENT = """
import teletensor as torch
try:
    torch.connect()
    print(torch.ones(1000).sum().item())
except ConnectionError as error:
    print(str(error).splitlines()[0])
"""
NO_SHARED_MEMORY = {"TELETENSOR_SHARED_MEMORY": "0"}  # which would bypass the relay


@dataclass
class Rehearsal:
    """One fault's run: its folder, its size and what it found."""

    folder: Path
    rounds: int
    steps: int
    digest: str  # of the weights of an undisturbed run of as many steps
    seed: int = 1
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.random = random.Random(self.seed)

    def check(self, holds: bool, complaint: str) -> None:
        """Records a complaint unless the invariant holds."""
        if not holds:
            self.complaints.append(complaint)

    @contextlib.contextmanager
    def engine(self, *options: str, lease: float = LEASE, **environment: str) -> Iterator[Engine]:
        """An engine, which has to end properly."""
        engine = Engine(self.folder, *options, lease=lease, **environment)
        try:
            yield engine
        finally:
            complaint = engine.stop()
            self.check(not complaint, complaint)

    def train(self, address: str, *options: str, **environment: str) -> Training:
        """Starts the training run."""
        return Training(address, self.steps, *options, **environment)

    def finish(self, training: Training) -> None:
        """Waits for a training run; its weights must be those of an undisturbed run, its instructions executed once."""
        result = training.result()
        self.check("reason" not in result, result.get("reason", ""))
        if "reason" not in result:
            self.check(result["digest"] == self.digest, "the weights differ from those of an undisturbed run")
            self.check(result["count"] == self.steps, f"{self.steps} increments were executed {result['count']} times")

    def settle(self, engine: Engine, before: Usage) -> None:
        """The engine must return what its sessions held."""
        left = engine.leftovers(before)
        self.check(not left, left)

    def stops(self) -> list[int]:
        """The steps at which the rounds begin, spread over a training run."""
        return [(number + 1) * self.steps // (self.rounds + 2) for number in range(self.rounds)]

    def spread(self, training: Training) -> Iterator[int]:
        """Yields the numbers of the rounds when a training run has reached their steps."""
        for number, step in enumerate(self.stops()):
            training.reach(step)
            if not training.is_running():
                return
            yield number


def _client(address: str, code: str = CLIENT, **environment: str) -> subprocess.Popen:
    path = os.pathsep.join([str(Path(os.environ.get("TELETENSOR_BUILD", ROOT / "build")) / "python"), str(ROOT)])
    variables = {**os.environ, "PYTHONPATH": path, "TELETENSOR_ADDRESS": address, **environment}
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=variables)


def _answer(client: subprocess.Popen) -> str:
    out, errors = client.communicate(timeout=2 * PATIENCE)
    return out.strip() or errors[-500:]


def _idle_usage(engine: Engine) -> Usage:
    """What the engine holds after its first session, which loads libraries."""
    _answer(_client(engine.address))
    time.sleep(0.2)
    return engine.usage()


def cut_links(rehearsal: Rehearsal) -> str:
    """Connections break at random bytes: every instruction is executed exactly once, on the same session."""
    with rehearsal.engine() as engine:
        before = _idle_usage(engine)
        with RelayProcess(engine.place, seed=rehearsal.seed) as relay:
            training = rehearsal.train(relay.address, **NO_SHARED_MEMORY)
            training.reach(1)
            relay.command("cut-every 60000")
            rehearsal.finish(training)
            connections = relay.stats()["connections"]
        rehearsal.check(connections > 3, "no link was cut")
        rehearsal.settle(engine, before)
    return f"{connections} connections"


def lost_links(rehearsal: Rehearsal) -> str:
    """Links are refused, stall and fall silent for a part of the lease: the session waits and continues."""
    faults = [("refuse", "accept", 1.0), ("stall", "resume", 1.5), ("cut", "accept", 0.0), ("lose", "accept", 0.0)]
    with rehearsal.engine(lease=30) as engine, RelayProcess(engine.place, seed=rehearsal.seed) as relay:
        training = rehearsal.train(relay.address, **NO_SHARED_MEMORY)
        for number in rehearsal.spread(training):
            begin, end, seconds = faults[number % len(faults)]
            relay.command(begin)
            if begin == "refuse":
                relay.command("cut")
            time.sleep(seconds)
            relay.command(end)
        rehearsal.finish(training)
    return f"{rehearsal.rounds} faults"


def killed_clients(rehearsal: Rehearsal) -> str:
    """Clients are killed at random moments: the engine returns all that they held, another client notices nothing."""
    with rehearsal.engine() as engine:
        before = _idle_usage(engine)
        training = rehearsal.train(engine.address)
        for number in range(rehearsal.rounds):
            environment = NO_SHARED_MEMORY if number % 2 else {}
            client = Training(engine.place if number % 2 else engine.address, 1_000_000, "--pause=0", "--save=killed",
                              "--every=3", **environment)
            wait_for(lambda client=client: client.count("begun") or not client.is_running(), "a client's session")
            time.sleep(rehearsal.random.uniform(0, 0.2))
            rehearsal.check(client.is_running(), "a client ended before it was killed")
            client.kill()
        rehearsal.finish(training)
        shutil.rmtree(engine.checkpoints / "killed", ignore_errors=True)
        rehearsal.settle(engine, before)
    return f"{rehearsal.rounds} clients"


def _ended_engines(rehearsal: Rehearsal, end: Callable[[Engine], None]) -> str:
    with rehearsal.engine() as engine:
        training = rehearsal.train(engine.address, "--save=run", "--every=5")
        for _ in rehearsal.spread(training):
            time.sleep(rehearsal.random.uniform(0, 0.05))
            end(engine)
            begun = training.count("begun")
            engine.start()
            wait_for(lambda begun=begun: training.count("begun") > begun or not training.is_running(), "the next session")
        rehearsal.finish(training)
        unfinished = list(engine.checkpoints.glob(".*.saving"))
        rehearsal.check(not unfinished, f"the engine left {unfinished}")
    return f"{training.count('lost')} engines lost"


def killed_engines(rehearsal: Rehearsal) -> str:
    """The engine is killed, also while it writes a checkpoint: the run continues from the last one, with the same bits."""
    return _ended_engines(rehearsal, Engine.kill)


def restarted_engines(rehearsal: Rehearsal) -> str:
    """The engine is ended by SIGTERM: its clients learn it at once; the run continues with the same bits."""

    def restart(engine: Engine) -> None:
        complaint = engine.stop()
        rehearsal.check(not complaint, complaint)

    return _ended_engines(rehearsal, restart)


def paused_engine(rehearsal: Rehearsal) -> str:
    """The engine's process does not run for a while, as on an overloaded host: nothing is lost."""
    with rehearsal.engine() as engine, RelayProcess(engine.place) as relay:
        local = rehearsal.train(engine.address)
        remote = rehearsal.train(relay.address, **NO_SHARED_MEMORY)
        for _ in rehearsal.spread(local):
            pause(engine, rehearsal.random.uniform(0.2, 1.5))
        rehearsal.finish(local)
        rehearsal.finish(remote)
    return f"{rehearsal.rounds} pauses"


def full_disk(rehearsal: Rehearsal) -> str:
    """The disk is full: saves fail with an error, the previous checkpoint stays, the training goes on."""
    size = 400_000  # bytes; the run's checkpoint has 120,000
    with contextlib.ExitStack() as undo:
        engine = undo.enter_context(rehearsal.engine())
        disk = engine.checkpoints
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "chaos", disk], capture_output=True)
        if mounted.returncode == 0:
            undo.callback(subprocess.run, ["umount", "-l", disk], check=True)
        # The trainer does not run while the disk is being filled, so that it fails to save at its next steps.
        training = rehearsal.train(engine.address, "--save=run", "--every=5", "--stop-at", *map(str, rehearsal.stops()))
        for _ in rehearsal.spread(training):
            wait_for(lambda: training.is_stopped() or not training.is_running(), "the trainer's stop")
            failures = training.count("not saved")
            _fill(engine, disk, mounted.returncode == 0)
            training.process.send_signal(signal.SIGCONT)
            wait_for(lambda failures=failures: training.count("not saved") > failures or not training.is_running(),
                     "a failed save")
            _empty(engine, disk, mounted.returncode == 0)
            saved = training.count("saved")
            wait_for(lambda saved=saved: training.count("saved") > saved or not training.is_running(), "a checkpoint")
        failures = training.count("not saved")
        rehearsal.finish(training)
        rehearsal.check(failures >= rehearsal.rounds, "no save failed")
        # The checkpoint must be complete: a run that continues from it has the same weights.
        rehearsal.finish(rehearsal.train(engine.address, "--save=run", "--every=1000000"))
    return f"{failures} failed saves, " + ("a full file system" if mounted.returncode == 0 else "a limit of files' sizes")


def _fill(engine: Engine, disk: Path, mounted: bool) -> None:
    if not mounted:  # without the right to mount, the process's limit of a file's size stands in for the disk
        resource.prlimit(engine.process.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        return
    with contextlib.suppress(OSError), open(disk / "ballast", "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def _empty(engine: Engine, disk: Path, mounted: bool) -> None:
    if mounted:
        (disk / "ballast").unlink()
    else:
        resource.prlimit(engine.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def slow_disk(rehearsal: Rehearsal) -> str:
    """Each write takes long: saves are slow, but complete, and other sessions' steps do not wait for them."""
    library = rehearsal.folder / "slow_disk.so"
    source = Path(__file__).with_name("slow_disk.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    with rehearsal.engine(LD_PRELOAD=str(library), TELETENSOR_CHAOS_DISK=str(rehearsal.folder / "checkpoints")) as engine:
        saving = rehearsal.train(engine.address, "--save=run", f"--every={max(rehearsal.steps // rehearsal.rounds, 1)}")
        wait_for(lambda: saving.step > 0, "the first step")
        other = rehearsal.train(engine.address)
        rehearsal.finish(other)
        waiting = saving.is_running()
        rehearsal.finish(saving)
        rehearsal.check(saving.count("saved") > 0, "nothing was saved")
        rehearsal.check(waiting, "the session that saves was not slower than the other one")
    return f"{saving.count('saved')} slow saves"


def no_descriptors(rehearsal: Rehearsal) -> str:
    """The engine has no descriptor left: new clients get an error or wait; those that it has, notice nothing."""
    with rehearsal.engine() as engine:
        before = _idle_usage(engine)
        training = rehearsal.train(engine.address)
        refused = 0
        for _ in rehearsal.spread(training):
            held = engine.usage().descriptors
            limit = resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE, (held - 1, limit[1]))
            clients = [_client(engine.place, **NO_SHARED_MEMORY) for _ in range(3)]
            time.sleep(0.5)
            refused += sum(client.poll() is None or client.returncode != 0 for client in clients)
            resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE, limit)
            answers = [_answer(client) for client in clients]
            rehearsal.check(all(answers), "a client ended without an answer or an error")
            answer = _answer(_client(engine.place, **NO_SHARED_MEMORY))
            rehearsal.check(answer == "1000.0", f"a client after the shortage gets {answer}")
        rehearsal.finish(training)
        rehearsal.settle(engine, before)
    return f"{refused} clients waited"


def clock_jumps(rehearsal: Rehearsal) -> str:
    """The host's clock is set forwards and backwards by years: leases and deadlines do not depend on it."""
    library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if library is None:
        raise FileNotFoundError("libfaketime is not installed; make chaos installs it")
    file = rehearsal.folder / "clock"
    file.write_text("+0\n")
    environment = {"LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_NO_CACHE": "1",
                   "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    jumps = ["+3650d", "-3650d", "+1d", "-1h", "+0"]
    with rehearsal.engine(**environment) as engine, RelayProcess(engine.place) as relay:
        training = rehearsal.train(relay.address, **NO_SHARED_MEMORY)
        for number in rehearsal.spread(training):
            file.write_text(jumps[number % len(jumps)] + "\n")
            relay.command("cut")  # the session's lease begins
            answer = _answer(_client(engine.address))
            rehearsal.check(answer == "1000.0", f"a client after the jump gets {answer}")
        rehearsal.finish(training)
        years = {line[:4] for line in engine.log.read_text().splitlines() if line[:2] == "20"}
        rehearsal.check(len(years) > 1, "the engine's clock did not jump")
    return f"{rehearsal.rounds} jumps"


def expired_certificate(rehearsal: Rehearsal) -> str:
    """The certificate expires during a run: new clients get an error that says so; sessions go on once it is renewed."""
    authority = trustme.CA()
    certificate, key, ca = (rehearsal.folder / name for name in ("cert.pem", "key.pem", "authority.pem"))
    authority.cert_pem.write_to_path(ca)

    def issue(**options) -> None:
        issued = authority.issue_cert("127.0.0.1", **options)
        issued.private_key_pem.write_to_path(key)
        certificate.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))

    issue()
    places = {"TELETENSOR_TLS_CA": str(ca), **NO_SHARED_MEMORY}
    with rehearsal.engine("--tls-cert", str(certificate), "--tls-key", str(key), lease=60) as engine:
        with RelayProcess(engine.place) as relay:
            training = rehearsal.train(f"teletensors://{relay.address}", **places)
            training.reach(1)
            for _ in rehearsal.spread(training):
                # The engine keeps a valid certificate instead of one that has expired when it reads it.
                issue(not_after=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=8))
                expired = _await_answer(engine, places, lambda answer: answer != "1000.0")
                rehearsal.check("certificate" in expired, f"a new client gets {expired!r}, without the reason")
                relay.command("cut")  # the session cannot be resumed until the certificate is renewed
                issue()
                _await_answer(engine, places, lambda answer: answer == "1000.0")
            rehearsal.finish(training)
    return f"{rehearsal.rounds} certificates"


def _await_answer(engine: Engine, environment: dict[str, str], accepts: Callable[[str], bool]) -> str:
    """Starts clients until one gets such an answer: the engine reads certificates again after some seconds."""
    deadline = time.monotonic() + PATIENCE
    while not accepts(answer := _answer(_client(f"teletensors://{engine.place}", **environment))):
        if time.monotonic() > deadline:
            return f"still {answer!r}"
    return answer


# Each with its number of rounds in an ordinary run.
FAULTS: dict[str, tuple[Callable[[Rehearsal], str], int]] = {
    "cut links": (cut_links, 1),
    "lost links": (lost_links, 8),
    "killed clients": (killed_clients, 30),
    "killed engines": (killed_engines, 10),
    "restarted engines": (restarted_engines, 5),
    "paused engine": (paused_engine, 5),
    "full disk": (full_disk, 3),
    "slow disk": (slow_disk, 4),
    "no descriptors": (no_descriptors, 3),
    "clock jumps": (clock_jumps, 5),
    "expired certificate": (expired_certificate, 2),
}
