"""`--offload-dir`: tensors of idle sessions leave memory that another session needs, and return at the next use."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import IN_PROCESS, SIMULATED, eventually
from tests.python.session.replaced_engine import ReplacedEngine
from tests.python.session.test_principals import Engine, run, user
from tests.python.session.test_quotas import Client as QuotaClient
from tests.python.session.test_tls import free_port

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

MIB = 1 << 20

# Executes each line of its input and prints the result as JSON, or the error.
CLIENT = """
import hashlib, json, sys, warnings
import teletensor as torch

warnings.simplefilter("ignore")  # of an interruption
torch.connect(sys.argv[1])

def fill(mib, seed):  # values that differ between sessions
    return torch.arange(mib << 18, dtype=torch.float32).mul_(0.5).add_(seed)  # without a temporary of the same size

def digest(*tensors):
    return hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in tensors)).hexdigest()

names = {"torch": torch, "fill": fill, "digest": digest}
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    try:
        try:
            code = compile(line.strip(), "<line>", "eval")
        except SyntaxError:
            code = compile(line.strip(), "<line>", "exec")
        print(json.dumps(eval(code, names)), flush=True)
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
"""


class Client:
    """A program with a session, which executes lines."""

    def __init__(self, engine: ReplacedEngine):
        self.process = engine.client(CLIENT)
        assert self._answer() == "ready"
        self.session = max(int(each["id"]) for each in status(engine)["sessions"])

    def _answer(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def send(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def __call__(self, line: str):
        self.send(line)
        return self._answer()

    def end(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0


@pytest.fixture
def start(tmp_path):
    """Starts an engine whose tensors may take 192 MB."""
    with contextlib.ExitStack() as stack:

        def make(*options: str, after: str = "0", limit: str = "192MB", folder: bool = True, **variables: str):
            place = ("--offload-dir", str(tmp_path / "offload")) if folder else ()
            engine = ReplacedEngine(
                tmp_path, *place, "--offload-after", after, "--memory-limit", limit, *options, **variables
            )
            stack.callback(engine.stop)
            return engine

        yield make


@pytest.fixture
def clients():
    with contextlib.ExitStack() as stack:

        def make(engine: ReplacedEngine) -> Client:
            client = Client(engine)

            def end() -> None:
                client.process.kill()
                client.process.communicate()

            stack.callback(end)
            return client

        yield make


def status(engine: ReplacedEngine) -> dict:
    return json.loads(engine._admin().status())


def offloaded(engine: ReplacedEngine, client: Client) -> int:
    found = [each for each in status(engine)["sessions"] if int(each["id"]) == client.session]
    return int(found[0]["offloaded_bytes"])


def files(tmp_path: Path) -> list[Path]:
    """What has left memory, by the engine's subfolders."""
    return sorted((tmp_path / "offload").rglob("*.tensors"))


def allocate(mib: int) -> str:
    return f"taken = torch.ones({mib << 18}); taken[0].item()"  # the read raises the error


STATE = """
base = fill(60, 3); row = base.view(60, -1)[1]; part = base[5::7]
weight = (torch.arange(1 << 20) % 1000 * 0.001).requires_grad_(); square = weight * weight; loss = (square * 3).sum()
pinned = torch.arange(100000.0); number = torch.ones(3)
""".strip()


def make_state(client: Client) -> list:
    for line in STATE.splitlines():
        for each in line.split("; "):
            assert client(each) is None
    return [client("digest(base, row, part, weight, square, loss, pinned, number)"), client("loss.item()")]


def test_tensors_leave_and_return_bit_identical(start, clients, tmp_path):
    engine = start()
    first = clients(engine)
    before = make_state(first)
    assert first("torch.synchronize()") is None  # temporary tensors are released
    held = [int(each["held_bytes"]) for each in status(engine)["sessions"]]
    second = clients(engine)
    assert second(allocate(140)) is None
    assert offloaded(engine, first) >= 60 * MIB
    assert offloaded(engine, second) == 0
    assert [int(each["held_bytes"]) for each in status(engine)["sessions"]][:1] == held, "the session stays charged"
    [path] = files(tmp_path)
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
    assert path.stat().st_size == int(status(engine)["offload"]["file_bytes"]) == offloaded(engine, first)

    # The first session returns, for which the second one leaves.
    assert [first("digest(base, row, part, weight, square, loss, pinned, number)"), first("loss.item()")] == before
    assert offloaded(engine, first) == 0
    assert offloaded(engine, second) > 0
    assert second("taken.sum().item()") == 140 << 18

    # A view still shares its base's memory, and the tape has what it saved.
    assert first("x = row.fill_(7)") is None
    assert first("(base.view(60, -1)[1] == 7).all().item()") is True
    assert second("taken.sum().item()") == 140 << 18  # the first one leaves again
    assert first("loss.backward()") is None
    assert first("torch.equal(weight.grad, weight.detach() * 6)") is True
    counts = status(engine)["offload"]
    assert int(counts["left"]) >= 4 and int(counts["returned"]) >= 4 and int(counts["failures"]) == 0


def test_the_longest_idle_session_leaves_first(start, clients):
    engine = start(after="1")  # a session that is in use is passed over
    first, second, third = clients(engine), clients(engine), clients(engine)
    for client in (first, second):
        assert client(allocate(70)) is None
        assert client("torch.synchronize()") is None  # sends the releases now; later they would be a use
    assert first("taken[0].item()") == 1  # used after the second
    time.sleep(2)
    assert third(allocate(60)) is None
    assert [offloaded(engine, each) for each in (first, second, third)] == [0, 70 * MIB, 0], status(engine)


def test_a_session_in_use_never_leaves(start, clients):
    engine = start()
    busy, other = clients(engine), clients(engine)
    assert busy("kept = fill(100, 1); torch.synchronize()") is None
    before = busy("digest(kept)")
    assert busy("matrix = torch.randn(1800, 1800); torch.synchronize()") is None
    # The engine waits a second for the session to end its use before it refuses memory: the work must last longer.
    for repeats in (8, 32, 128):
        busy.send(f"[torch.linalg.svdvals(matrix) for _ in range({repeats})][-1].sum().item() > 0")
        eventually(lambda: any(each["state"] == "execute" for each in status(engine)["sessions"]))
        answer = other(allocate(140))
        if answer is not None:
            break
        assert busy._answer() is True
        assert other("del taken; torch.synchronize()") is None
    assert answer is not None and answer.startswith("OutOfMemoryError"), answer
    assert any(each["state"] == "execute" for each in status(engine)["sessions"]), "the session had no more work"
    assert offloaded(engine, busy) == 0
    assert busy._answer() is True
    assert other(allocate(140)) is None
    assert busy("digest(kept)") == before


def test_a_session_used_a_moment_ago_stays(start, clients):
    engine = start(after="3600")
    first, second = clients(engine), clients(engine)
    assert first(allocate(100)) is None
    answer = second(allocate(140))
    assert answer.startswith("OutOfMemoryError"), answer
    assert offloaded(engine, first) == 0
    assert first("taken.sum().item()") == 100 << 18


@pytest.mark.parametrize("option", ["--offload-limit", "--offload-principal-limit"])
def test_a_full_folder_leaves_tensors_in_memory(start, clients, tmp_path, option):
    engine = start(option, "50MB")
    first, second = clients(engine), clients(engine)
    assert first("kept = fill(100, 1); torch.synchronize()") is None
    before = first("digest(kept)")
    answer = second(allocate(140))
    assert answer.startswith("OutOfMemoryError"), answer
    assert offloaded(engine, first) == 0
    assert files(tmp_path) == []
    assert first("digest(kept)") == before
    assert second("torch.ones(3).sum().item()") == 3


def test_a_failing_disk_leaves_tensors_in_memory(start, clients, tmp_path):
    engine = start()
    first, second = clients(engine), clients(engine)
    assert first("kept = fill(100, 1); torch.synchronize()") is None
    before = first("digest(kept)")
    # The engine's files may not become larger than 1 MiB: writing fails like on a full disk.
    subprocess.run(["prlimit", f"--pid={engine.pid}", f"--fsize={MIB}:"], check=True)
    answer = second(allocate(140))
    assert answer.startswith("OutOfMemoryError"), answer
    assert files(tmp_path) == []
    assert int(status(engine)["offload"]["failures"]) > 0
    assert int(status(engine)["offload"]["file_bytes"]) == 0
    assert first("digest(kept)") == before
    subprocess.run(["prlimit", f"--pid={engine.pid}", "--fsize=unlimited:"], check=True)
    eventually(lambda: second(allocate(140)) is None)  # a failed move is not repeated at once
    assert first("digest(kept)") == before


@pytest.mark.parametrize("damage", ["flipped", "truncated", "missing"])
def test_a_damaged_file_is_an_error(start, clients, tmp_path, damage):
    engine = start()
    first, second = clients(engine), clients(engine)
    assert first("kept = fill(100, 1); torch.synchronize()") is None
    before = first("digest(kept)")
    assert second(allocate(140)) is None
    [path] = files(tmp_path)
    intact = path.read_bytes()
    if damage == "flipped":
        with path.open("r+b") as file:
            file.seek(54321)
            file.write(bytes([intact[54321] ^ 4]))
    elif damage == "truncated":
        os.truncate(path, len(intact) - 100)
    else:
        path.unlink()
    expected = {"flipped": "a checksum differs", "truncated": "it ends early", "missing": "No such file"}[damage]
    for line in ("kept[5].item()", "kept.sum().item()", "kept[:3].tolist()", "digest(kept)"):
        answer = first(line)
        assert expected in answer and "RuntimeError" in answer, answer
    assert int(status(engine)["offload"]["failures"]) > 0
    if damage == "missing":
        # Without the lost tensor, the session continues.
        first("del kept; torch.synchronize()")  # this frame may still need it
        assert first("(torch.ones(3) * 2).tolist()") == [2.0] * 3
        assert offloaded(engine, first) == 0
        return
    path.write_bytes(intact)  # nothing was lost
    assert first("digest(kept)") == before
    assert second("taken.sum().item()") == 140 << 18


def test_a_return_without_memory_fails_and_loses_nothing(start, clients):
    engine = start(after="5")
    first, second = clients(engine), clients(engine)
    assert first("kept = fill(100, 1); torch.synchronize()") is None
    before = first("digest(kept)")
    time.sleep(5.5)
    assert second(allocate(140)) is None
    answer = first("kept.add_(1).sum().item()")
    assert answer.startswith("OutOfMemoryError") and "offloaded (100 MiB)" in answer, answer
    assert offloaded(engine, first) == 100 * MIB
    answer = first("kept[5].item()")
    assert answer.startswith("OutOfMemoryError") and "offloaded" in answer, answer
    assert second("taken.sum().item()") == 140 << 18
    assert second("del taken; torch.synchronize()") is None
    assert first("digest(kept)") == before, "the failed instruction must not have changed the tensor"
    assert first("kept.add_(1)[0].item()") == 2.0


def test_the_session_limit_counts_what_has_left(start, clients):
    engine = start("--session-memory-limit", "128MB")
    first, second = clients(engine), clients(engine)
    assert first(allocate(100)) is None
    assert second(allocate(120)) is None
    assert offloaded(engine, first) == 100 * MIB
    answer = first(f"torch.ones({40 << 18}).sum().item()")
    assert answer.startswith("OutOfMemoryError") and "128 MiB limit" in answer, answer
    assert first("taken.sum().item()") == 100 << 18


def test_files_end_with_their_session(start, clients, tmp_path):
    engine = start("--lease", "1")
    first, second, third = clients(engine), clients(engine), clients(engine)
    assert first(allocate(90)) is None
    assert second(allocate(90)) is None
    assert third(allocate(180)) is None
    assert offloaded(engine, first) == offloaded(engine, second) == 90 * MIB
    first.end()
    eventually(lambda: len(files(tmp_path)) == 1)
    second.process.kill()  # its lease expires
    second.process.communicate()
    eventually(lambda: files(tmp_path) == [])
    eventually(lambda: int(status(engine)["offload"]["bytes"]) == int(status(engine)["offload"]["file_bytes"]) == 0)
    assert third("taken.sum().item()") == 180 << 18
    engine.stop()
    assert list((tmp_path / "offload").iterdir()) == []


def test_what_a_killed_engine_left_is_removed(start, clients, tmp_path):
    engine = start()
    first, second = clients(engine), clients(engine)
    assert first(allocate(100)) is None
    assert second(allocate(140)) is None
    [left] = files(tmp_path)
    (tmp_path / "offload" / "other").mkdir()
    engine.kill()
    assert files(tmp_path) == [left]
    engine.start()
    assert files(tmp_path) == []
    assert not left.parent.exists()
    assert (tmp_path / "offload" / "other").exists(), "what is no engine's must stay"


def test_another_user_must_not_read_the_folder(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(AssertionError, match="no other one can access"):
        ReplacedEngine(tmp_path, "--offload-dir", str(tmp_path / "open"))
    with pytest.raises(AssertionError, match="require --offload-dir"):
        ReplacedEngine(tmp_path, "--offload-limit", "1GB")


def test_an_upgrade_passes_on_what_has_left(start, clients, tmp_path):
    engine = start()
    first, second = clients(engine), clients(engine)
    before = make_state(first)
    assert second("kept = fill(140, 9); torch.synchronize()") is None
    other = second("digest(kept)")
    assert offloaded(engine, first) >= 60 * MIB
    [old] = files(tmp_path)
    assert engine.upgrade()["sessions"] == "2"
    eventually(lambda: not old.parent.exists())
    # Both do not fit into the new process's memory either.
    assert first("loss.item()") == before[1]
    assert second("digest(kept)") == other
    assert first("digest(base, row, part, weight, square, loss, pinned, number)") == before[0]
    assert first("loss.backward()") is None
    assert first("torch.equal(weight.grad, weight.detach() * 6)") is True
    first.end()
    second.end()


def test_an_image_contains_what_has_left(start, clients, tmp_path):
    engine = start("--state-dir", str(tmp_path / "state"), "--lease", "60")
    first, second = clients(engine), clients(engine)
    assert first("torch.persist(3600); None") is None
    before = make_state(first)
    assert second(allocate(140)) is None
    assert offloaded(engine, first) >= 60 * MIB
    engine.stop()  # writes an image of the first session
    assert files(tmp_path) == []
    engine.start()
    assert [first("digest(base, row, part, weight, square, loss, pinned, number)"), first("loss.item()")] == before
    assert re.search("continues from its image of frame [1-9]", engine.log.read_text())


def test_published_tensors_stay(start, clients):
    engine = start()
    first, reader, other = clients(engine), clients(engine), clients(engine)
    assert first("common = fill(40, 1); torch.synchronize()") is None
    expected = first("digest(common)")
    assert first("x = torch.publish('common', {'t': common})") is None
    assert reader("common = torch.open('common')['t']; own = fill(70, 2); torch.synchronize()") is None
    own = reader("digest(own)")
    assert other(allocate(120)) is None
    assert offloaded(engine, first) == 0, "a session that publishes tensors stays"
    assert offloaded(engine, reader) == 70 * MIB
    assert first("digest(common)") == reader("digest(common)") == expected
    assert reader("digest(own)") == own


def test_uploaded_bytes_are_not_taken_from_what_has_left(start, clients):
    """Equal uploads are copied between sessions of a principal, except from tensors that have left."""
    engine = start()
    first, second, third = clients(engine), clients(engine), clients(engine)
    upload = "import numpy as np; kept = torch.from_numpy(np.arange(60 << 18, dtype=np.float32)); torch.synchronize()"
    assert first(upload) is None
    before = first("digest(kept)")
    assert second(allocate(140)) is None
    assert offloaded(engine, first) == 60 * MIB
    assert third(upload) is None
    assert third("digest(kept)") == before
    assert first("digest(kept)") == before


def test_workers(start, clients, tmp_path):
    """With --isolate=principal each worker has a folder of its own."""
    of = Engine(tmp_path, "--isolate", "principal", "--worker-memory", "192MB", "--offload-dir", str(tmp_path / "offload"),
                "--offload-after", "0")  # fmt: skip
    alice = user(of.file, "add", "alice")
    root = user(of.file, "add", "root", "--role", "operator")
    of.start()
    try:
        with contextlib.ExitStack() as stack:
            first, second = QuotaClient(of, alice), QuotaClient(of, alice)
            for each in (first, second):
                stack.callback(each.process.communicate)
                stack.callback(each.process.kill)
            assert first(f"kept = torch.arange({90 << 18}.0); torch.synchronize()") is None
            before = first("kept.view(torch.int32).sum().item()")
            assert second(f"taken = torch.ones({120 << 18}); torch.synchronize()") is None
            done = run("--address", of.address, "--token", root, "status", "--json")
            shown = json.loads(done.stdout)
            assert int(shown["offload"]["bytes"]) == 90 * MIB, shown
            assert [int(each["offloaded_bytes"]) for each in shown["principals"] if each["name"] == "alice"] == [90 * MIB]
            assert len(files(tmp_path)) == 1
            assert first("kept.view(torch.int32).sum().item()") == before
            assert second("taken.sum().item()") == 120 << 18
    finally:
        of.stop()
    eventually(lambda: files(tmp_path) == [])


def test_many_sessions_take_turns(start, clients, tmp_path):
    engine = start()
    many = [clients(engine) for _ in range(7)]
    expected = []
    for number, client in enumerate(many):
        assert client(f"kept = fill(64, {number}); seen = kept[::1000]; torch.synchronize()") is None
        expected.append(client("digest(kept, seen)"))
    for turn in range(3):
        for number, client in enumerate(many):
            assert client("digest(kept, seen)") == expected[number], (turn, number)
            assert client("kept.add_(1.0) is kept") is True
            expected[number] = client("digest(kept, seen)")
    assert len(set(expected)) == len(many)
    counts = status(engine)["offload"]
    assert int(counts["left"]) > 20 and int(counts["failures"]) == 0
    for client in many:
        client.end()
    eventually(lambda: files(tmp_path) == [])


def test_sessions_at_once(start, clients):
    """Concurrent use: each answer is right or an out-of-memory error."""
    engine = start()
    many = [clients(engine) for _ in range(4)]
    sums = []
    for number, client in enumerate(many):
        assert client(f"kept = fill(56, {number}); torch.synchronize()") is None
        sums.append(client("digest(kept)"))
    right = 0
    for _ in range(12):
        for client in many:
            client.send("digest(kept)")
        for number, client in enumerate(many):
            answer = client._answer()
            assert answer == sums[number] or answer.startswith("OutOfMemoryError"), answer
            right += answer == sums[number]
    assert right > 0
    for number, client in enumerate(many):
        assert client("digest(kept)") == sums[number]


@pytest.mark.skipif(not SIMULATED, reason="requires simulated GPUs")
@pytest.mark.parametrize("folder", [True, False], ids=["file", "host memory"])
def test_gpu(start, clients, tmp_path, folder):
    engine = start(limit="64MB", folder=folder, TELETENSOR_CUDA_PLUGIN=SIMULATED)
    first, second = clients(engine), clients(engine)
    assert first("kept = torch.arange(6 << 20, device='cuda'); view = kept[::7]; x = torch.ones(3)") is None
    assert first("w = torch.ones(40000, device='cuda').requires_grad_(); loss = (w * w).sum(); torch.synchronize()") is None
    before = first("digest(kept.cpu(), view.cpu(), w.cpu())")
    assert first("torch.synchronize()") is None  # the copies on the host are released
    held = status(engine)["sessions"][0]["held_bytes"]
    assert second("taken = torch.arange(5 << 20, device='cuda'); torch.synchronize()") is None
    expected = second("digest(taken.cpu())")
    assert offloaded(engine, first) >= 48 * MIB
    assert status(engine)["sessions"][0]["held_bytes"] == held
    assert len(files(tmp_path)) == (1 if folder else 0)
    assert int(status(engine)["offload"]["file_bytes"]) == (offloaded(engine, first) if folder else 0)
    if not folder:  # the host has the same limit, so that it has no room for the tensors of both
        assert second("del taken; torch.synchronize()") is None
    assert first("digest(kept.cpu(), view.cpu(), w.cpu())") == before
    assert first("loss.backward()") is None
    assert first("(w.grad == 2).all().item()") is True
    if folder:
        assert offloaded(engine, second) >= 40 * MIB
        assert second("digest(taken.cpu())") == expected
    first.end()
    second.end()
    eventually(lambda: int(status(engine)["offload"]["bytes"]) == 0)
    assert files(tmp_path) == []


def test_metrics(start, clients):
    port = free_port()
    engine = start("--http", f"127.0.0.1:{port}")
    first, second = clients(engine), clients(engine)
    assert first(allocate(100)) is None
    assert second(allocate(140)) is None
    assert second("taken[0].item()") == 1
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
        text = reply.read().decode()
    assert re.search(r'^teletensor_offloaded_bytes\{principal="[^"]*"\} 104857600$', text, re.M), text
    assert re.search(r'^teletensor_offload_moves_total\{direction="out"\} 1$', text, re.M), text
    assert re.search(r'^teletensor_offload_moves_total\{direction="back"\} 0$', text, re.M), text
    assert re.search(r"^teletensor_offload_failures_total 0$", text, re.M), text
