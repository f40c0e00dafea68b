"""The attacks of a hostile client. Each runs until its process is killed.

Usage: ``python -m tests.adversary.attacks NAME ADDRESS TOKEN SEED``
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import grpc
import h2.config
import h2.connection
import h2.events

from tests.adversary.http2 import FLOODS, send
from tests.adversary.models import Caller, description
from tests.adversary.surfaces import SURFACES
from tests.adversary.wire import ADMIN, ENGINE, Peer, UnfinishedCalls, instruction, message, signatures

FLOAT32, CPU = 8, 0
Attack = Callable[[str, str, random.Random], None]


def _frames(*frames):
    """Yields frames, numbered from 1, and then keeps the stream open."""
    for sequence, frame in enumerate(frames, 1):
        frame.sequence = sequence
        yield frame
    threading.Event().wait(5)


def _new_session(address: str, token: str):
    peer = Peer(address, token)
    return peer, peer.hello(client="adversary").session_key


def _one_session(address: str, token: str, *frames) -> None:
    """Sends frames in a new session and reads the replies until the engine closes the stream."""
    peer, key = _new_session(address, token)
    try:
        for reply in peer.session(key, _frames(*frames)):
            if reply.HasField("fault"):
                break
    finally:
        peer.close()


# ---- Without a token


def held_reflection_streams(address: str, token: str, rng: random.Random) -> None:
    """Opens reflection streams without a token and never closes them."""
    while True:
        peers = [Peer(address, "") for _ in range(20)]
        never = threading.Event()
        calls = []
        for peer, _ in itertools.product(peers, range(100)):
            call = peer.channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
            calls.append(call(iter(lambda: never.wait(10) and b"", None)))
        time.sleep(3)
        for peer in peers:
            peer.close()


def unfinished_hellos(address: str, token: str, rng: random.Random) -> None:
    """Sends all but the last byte of a 16 MB Hello on many streams of one connection."""
    host, port = address.rsplit(":", 1)
    while True:
        try:
            _send_unfinished_hellos(host, int(port))
        except (OSError, h2.exceptions.ProtocolError):
            time.sleep(0.2)  # the engine closed the connection


def _send_unfinished_hellos(host: str, port: int) -> None:
    body = 16 << 20
    deadline = time.monotonic() + 5
    with socket.create_connection((host, port), timeout=2) as link:
        http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        http.initiate_connection()
        headers = [(":method", "POST"), (":path", ENGINE + "Hello"), (":scheme", "http"), (":authority", host),
                   ("content-type", "application/grpc"), ("te", "trailers")]
        unsent = {}
        for _ in range(120):
            stream = http.get_next_available_stream_id()
            http.send_headers(stream, headers)
            http.send_data(stream, b"\0" + body.to_bytes(4, "big"))
            unsent[stream] = body - 1
        while time.monotonic() < deadline:
            for stream, left in unsent.items():
                size = min(left, http.local_flow_control_window(stream), http.max_outbound_frame_size) if left else 0
                if size > 0:
                    http.send_data(stream, bytes(size))
                    unsent[stream] -= size
            link.sendall(http.data_to_send())
            link.settimeout(0.05)
            try:
                received = link.recv(1 << 16)
            except TimeoutError:
                continue
            if not received:
                return
            for event in http.receive_data(received):
                if isinstance(event, (h2.events.StreamReset, h2.events.StreamEnded)):
                    unsent.pop(event.stream_id, None)


def hostile_frames(address: str, token: str, rng: random.Random) -> None:
    """Sends HTTP/2 frames that cost a server much: unfinished header blocks, cancelled calls, settings."""
    host, port = address.rsplit(":", 1)
    while True:
        flood = FLOODS[rng.choice(list(FLOODS))]
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=2) as link:
            send(link, flood(ENGINE + "Hello"), 64 << 20)


def guessed_tokens(address: str, token: str, rng: random.Random) -> None:
    """Guesses tokens and session keys."""
    peer = Peer(address, "")
    while True:
        peer.token = rng.randbytes(32).hex()
        for call in (peer.hello, peer.status):
            try:
                call()
            except grpc.RpcError:
                continue
            raise SystemExit("the engine accepted a guessed token")
        try:
            next(peer.session(rng.randbytes(32).hex(), iter([message("Frame")(sequence=1)])), None)
        except grpc.RpcError:
            continue
        raise SystemExit("the engine accepted a guessed session key")


# ---- With a user's token


def session_flood(address: str, token: str, rng: random.Random) -> None:
    """Opens as many sessions as the engine allows, and abandons them."""
    while True:
        peer = Peer(address, token)
        try:
            for _ in range(200):
                peer.hello(client="\x1b[31mflood\n" * 40)
        except grpc.RpcError:
            time.sleep(0.1)
        peer.close()


def empty_instructions(address: str, token: str, rng: random.Random) -> None:
    """Sends frames of 16 MB that contain only empty instructions."""
    body = b"\x08\x01" + b"\x12\x00" * ((16 << 19) - 16)
    while True:
        peer, key = _new_session(address, token)
        try:
            for _ in peer.session(key, iter([body])):
                pass
        except grpc.RpcError:
            pass
        peer.close()


def many_reads(address: str, token: str, rng: random.Random) -> None:
    """Requests one value as many times as fit in a frame, and does not read the replies."""
    frame = message("Frame")()
    instruction(frame, "zeros", [64], FLOAT32, CPU, result=1)
    for request in range(1, 200_000):
        frame.reads.add(request=request, handle=1)
    while True:
        try:
            _one_session(address, token, frame)
        except grpc.RpcError:
            continue


def instruction_bombs(address: str, token: str, rng: random.Random) -> None:
    """Creates as many results, errors and source lines as allowed, and releases none."""
    while True:
        frames, name = [], 1
        for _ in range(8):
            frame = message("Frame")()
            for i in range(20_000):
                op = ("zeros", "matmul")[i % 2]
                args = ([0], FLOAT32, CPU) if op == "zeros" else (("h", name - 1), ("h", name - 1))
                instruction(frame, op, *args, result=name).site = i
                frame.sites.add(id=i, file="x" * 50, line=i)
                name += 1
            frames.append(frame)
        try:
            _one_session(address, token, *frames)
        except grpc.RpcError:
            continue


def memory_hog(address: str, token: str, rng: random.Random) -> None:
    """Allocates memory until it is refused, repeatedly."""
    while True:
        frame = message("Frame")()
        for name in range(1, 2000):
            instruction(frame, "full", [rng.choice([10, 1000, 1 << 20, 1 << 26])], 1.0, FLOAT32, CPU, result=name)
        frame.reads.add(request=1, handle=1999)
        try:
            _one_session(address, token, frame)
        except grpc.RpcError:
            continue


def small_tensors(address: str, token: str, rng: random.Random) -> None:
    """Fills as many sessions as allowed with tensors of one element, as a principal with a limit of memory."""
    peers = []
    while True:
        try:
            peers.append(hold_small_tensors(address, os.environ["ADVERSARY_LIMITED_TOKEN"]))
        except grpc.RpcError:
            time.sleep(1)


def hold_small_tensors(address: str, token: str, count: int = 7000):
    """A connection whose session has tensors of one element each, or their errors, when the function returns."""
    peer, key = _new_session(address, token)
    frame = message("Frame")()
    for name in range(1, count + 1):
        instruction(frame, "ones", [1], FLOAT32, CPU, result=name)
    replies = peer.session(key, _frames(frame))
    next(replies, None)
    return peer, replies


def endless_work(address: str, token: str, rng: random.Random) -> None:
    """Queues minutes of work and drops the connection."""
    while True:
        frame = message("Frame")()
        instruction(frame, "full", [1024, 1024], 1.0, FLOAT32, CPU, result=1)
        for name in range(2, 3000):
            instruction(frame, "matmul", ("h", 1), ("h", 1), result=name).release.append(name - 1 if name > 2 else 0)
            if name == 2:
                frame.instructions[-1].ClearField("release")
        peer, key = _new_session(address, token)
        frame.sequence = 1
        replies = peer.session(key, _frames(frame))
        threading.Timer(rng.uniform(0.1, 1.5), replies.cancel).start()
        try:
            next(replies, None)
        except grpc.RpcError:
            pass
        peer.close()


def killed_clients(address: str, token: str, rng: random.Random) -> None:
    """Starts real clients with queued work and kills them."""
    script = """
import teletensor as torch
x = torch.randn(512, 512, requires_grad=True)
print("busy", flush=True)
while True:
    y = (x @ x).relu(); y.sum().backward(); x.grad = None; y.cpu()
"""
    while True:
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as client:
            client.stdout.readline()
            time.sleep(rng.uniform(0, 0.5))
            client.kill()


def unread_downloads(address: str, token: str, rng: random.Random) -> None:
    """Requests many downloads, of tensors that exist and of tensors that never will, and reads none."""
    while True:
        peer, key = _new_session(address, token)
        frame = message("Frame")()
        instruction(frame, "full", [1 << 20], 1.0, FLOAT32, CPU, result=1)
        try:
            next(peer.session(key, _frames(frame)), None)
            calls = [peer.download(key, 1, rng.choice([1, 1 << 40])) for _ in range(300)]
            time.sleep(2)
            del calls
        except grpc.RpcError:
            pass
        peer.close()


def unfed_uploads(address: str, token: str, rng: random.Random) -> None:
    """Starts uploads, sends a few bytes of each, and stalls."""
    def chunks(number: int):
        yield message("UploadChunk")(transfer=number, total_bytes=1 << 20, data=b"x" * 1000)
        time.sleep(30)

    while True:
        peer, key = _new_session(address, token)
        try:
            calls = [peer.upload(key, chunks(n)) for n in range(1, 300)]
            time.sleep(2)
            del calls
        except grpc.RpcError:
            pass
        peer.close()


# ---- Memory, threads and ports that an account could miss, by programs of real clients


def _programs(script: str) -> None:
    """Runs a program with the client's package again and again; ends if it fails otherwise than by the engine's refusal."""
    while True:
        done = subprocess.run([sys.executable, "-c", "import teletensor as torch\n" + script], stderr=subprocess.PIPE, text=True,
                              check=False)
        refusal = re.search(r"out of memory|at most|memory limit|exceeds|session has ended|timed out", done.stderr)
        if done.returncode != 0 and not refusal:
            raise SystemExit(done.stderr)


def many_shapes(address: str, token: str, rng: random.Random) -> None:
    """Makes libraries compile and plan for hundreds of shapes."""
    _programs("""
import random
for i in range(300):
    x = torch.randn(1, random.randint(1, 8), random.randint(16_000, 130_000))
    torch.conv1d(x, torch.randn(4, x.shape[1], 5), padding=random.choice([0, 2, 100_000])).sum().item()
    torch.fft.rfft(x[0, 0, :random.randint(1000, 16_000)]).abs().sum().item()
    torch.linalg.svdvals(torch.randn(random.randint(2, 60), 40)).sum().item()
""")


def share(queue, done) -> None:
    """Sends a tensor of 20 MB, and ends its session once it was received."""
    import teletensor as torch

    queue.put(torch.ones(5 << 20))
    done.wait(5)


def shared_memory(address: str, token: str, rng: random.Random) -> None:
    """Keeps tensors of sessions that have ended."""
    _programs("""
import teletensor.multiprocessing as mp
from tests.adversary.attacks import share
context, kept = mp.get_context("spawn"), []
while True:
    queue, done = context.Queue(), context.Event()
    maker = context.Process(target=share, args=(queue, done))
    maker.start()
    kept.append(queue.get(timeout=20))
    done.set()
    maker.join()
""")


def released_lists(address: str, token: str, rng: random.Random) -> None:
    """Drops a list of a million tensors at once."""
    _programs("""
x = torch.zeros(1)
views = []
for _ in range(4):
    views.extend(x.expand(1 << 17).unbind())
views.clear()
assert (x + 1).item() == 1
""")


def full_stores(address: str, token: str, rng: random.Random) -> None:
    """Serves stores and fills them."""
    _programs("""
import teletensor.distributed as dist
stores = []
for i in range(64):
    stores.append(dist.TCPStore("127.0.0.1", 0, 1, True))
    for k in range(256):
        stores[-1].set(str(k), "x" * (1 << 20))
""")


def many_groups(address: str, token: str, rng: random.Random) -> None:
    """Forms as many groups as the engine allows."""
    _programs("""
import teletensor.distributed as dist
dist.init_process_group("gloo", store=dist.TCPStore("127.0.0.1", 0, 1, True), rank=0, world_size=1)
groups = [dist.new_group([0]) for _ in range(1000)]
""")


def forbidden_ports(address: str, token: str, rng: random.Random) -> None:
    """Looks for ports and hosts through the engine; ends if two refused targets can be distinguished."""
    import teletensor as torch
    from teletensor import _C

    torch.connect(address, token=token)
    while True:
        target = f"{rng.choice(['127.0.0.1', '0.0.0.0', 'localhost', '10.0.0.1', 'nobody.invalid'])}:{rng.randrange(1, 1024)}"
        call = rng.choice([
            lambda: _C.ops.store_serve(target, "token"),
            lambda: _C.ops.pull(target, "token", "0" * 32, size=[1], dtype=torch.float32, device="cpu", timeout=0.1)])
        try:
            call().tolist()
        except RuntimeError as error:
            if f"--peer-networks and --peer-ports allow, got {target}" in str(error):
                continue
            raise SystemExit(f"{target}: {error}") from None
        raise SystemExit(f"{target} was allowed")


def silent_connections(address: str, token: str, rng: random.Random) -> None:
    """Opens hundreds of silent connections per second; ends if a client with the token is refused meanwhile."""
    host, port = address.rsplit(":", 1)
    silent: list[socket.socket] = []
    while True:
        for _ in range(100):
            with contextlib.suppress(OSError):
                silent.append(socket.create_connection((host, int(port)), timeout=2))
        for old in silent[:-400]:
            old.close()
        del silent[:-400]
        for attempt in range(3):  # as clients do (kOpenAttempts)
            peer = Peer(address, token)
            try:
                peer.hello(client="honest")
                break
            except grpc.RpcError as error:
                if attempt == 2:
                    raise SystemExit(f"a client with the token was refused: {error.details()}") from None
            finally:
                peer.close()


def slow_publish(address: str, token: str, rng: random.Random) -> None:
    """Publishes models whose warm-up takes hours, and abandons the calls; ends if another principal cannot publish, call and
    withdraw a model meanwhile.
    """
    quick, slow = description(2, [4, 4]), description(4000, [1500, 1500])
    caller, other = Caller(address, token), Caller(address, os.environ["ADVERSARY_OTHER_TOKEN"])
    calls: list[grpc.Future] = []
    while True:
        calls += [caller.start(f"slow{rng.randrange(1 << 30)}", slow, timeout=rng.choice([2, 10, 600])) for _ in range(4)]
        name = f"quick{rng.randrange(1 << 30)}"
        try:
            other.publish(name, quick)
            other.infer(name, 4)
            other.withdraw(name)
        except grpc.RpcError as error:
            raise SystemExit(f"another principal's model was refused: {error.details()}") from None
        time.sleep(rng.uniform(0, 1))
        for call in calls[:-6]:
            call.cancel()
        del calls[:-6]


def preface_flood(address: str, token: str, rng: random.Random) -> None:
    """Opens hundreds of connections per second that send HTTP/2's preface and nothing else; ends if a client is refused."""
    host, port = address.rsplit(":", 1)
    stopped = threading.Event()

    def flood() -> None:
        held: list[socket.socket] = []
        while not stopped.wait(0.002):
            with contextlib.suppress(OSError):
                held.append(socket.create_connection((host, int(port)), timeout=2))
                held[-1].sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            for old in held[:-400]:
                old.close()
            del held[:-400]

    threading.Thread(target=flood, daemon=True).start()
    while True:
        _connect_patiently(address, token)


def _connect_patiently(address: str, token: str) -> None:
    """Opens a session with as many attempts as clients make (kOpenAttempts); ends the process if all are refused."""
    for attempt in range(8):
        peer = Peer(address, token)
        try:
            peer.hello(client="honest")
            return
        except grpc.RpcError as error:
            if attempt == 7:
                raise SystemExit(f"a client with the token was refused: {error.details()}") from None
            time.sleep(0.02 * 2**min(attempt, 4))
        finally:
            peer.close()


UNFINISHED = ((ENGINE + "Hello", 96), (ADMIN + "Status", 96), ("/inference.GRPCInferenceService/ModelInfer", 480))


def held_calls(address: str, token: str, rng: random.Random) -> None:
    """Holds all places for unfinished calls of each service, renews them; ends if a client is refused meanwhile."""
    held = UnfinishedCalls(address, token)
    while True:
        for method, count in UNFINISHED:
            with contextlib.suppress(OSError, h2.exceptions.ProtocolError):
                held.open(method, count)
        for _ in range(8):
            _connect_patiently(address, token)
        held.close()


def flapping_link(address: str, token: str, rng: random.Random) -> None:
    """Breaks a session's connection while work is queued, and resumes it, without end."""
    from tests.adversary.wire import operators

    OPERATORS.extend(operators())
    walk = Walk(address, token, rng)
    while True:
        try:
            walk.send()
            walk.break_link()
        except (grpc.RpcError, EOFError, StopIteration, ValueError):
            walk = Walk(address, token, rng)


# ---- Random sequences


class Walk:
    """A client that tracks its own state and takes random steps, most of them invalid."""

    def __init__(self, address: str, token: str, rng: random.Random):
        self.address, self.token, self.rng = address, token, rng
        self.names = [0, 1, 2, 1 << 40]
        self.next_name = 10
        self.sequence = 0
        self.open()

    def open(self, resume: bytes = b"") -> None:
        """Opens a new connection; resumes a session if a key is given."""
        self.peer = Peer(self.address, self.token)
        hello = self.peer.hello(resume_key=resume, client="walk")
        self.key, self.sequence = hello.session_key.encode() if isinstance(hello.session_key, str) else hello.session_key, hello.executed
        self.frames: queue.Queue = queue.Queue()
        self.replies = self.peer.session(self.key, iter(self.frames.get, None))

    def number(self) -> int:
        """A small number, or a boundary value."""
        return self.rng.choice([0, 1, -1, 2, 3, 4, 7, 64, -(1 << 63), (1 << 63) - 1, 1 << 31, self.rng.randrange(100)])

    def argument(self):
        """A random argument of any kind."""
        return self.rng.choice([
            lambda: ("h", self.rng.choice(self.names) % (1 << 63)), self.number, self.number, lambda: self.rng.random(),
            lambda: [self.number() for _ in range(self.rng.randrange(5))], lambda: None,
            lambda: self.rng.randbytes(self.rng.randrange(64)), lambda: self.rng.random() < 0.5])()

    def frame(self):
        """A frame of a few instructions, mostly on existing tensors."""
        frame = message("Frame")(sequence=self.sequence + 1)
        for _ in range(self.rng.randrange(1, 8)):
            name, self.next_name = self.next_name, self.next_name + 4
            if self.rng.random() < 0.5:
                size = [self.rng.randrange(5) for _ in range(self.rng.randrange(4))]
                instruction(frame, "full", size, 1.0, FLOAT32, CPU, result=name)
            else:
                op = self.rng.choice(OPERATORS)
                instruction(frame, op, *[self.argument() for _ in range(self.rng.randrange(5))], result=name)
            self.names = self.names[-20:] + [name]
        if self.rng.random() < 0.5:
            frame.reads.add(request=self.rng.randrange(10), handle=self.rng.choice(self.names) % (1 << 63))
        return frame

    def send(self) -> None:
        """Sends a frame, sometimes with corrupted bytes."""
        encoded = bytearray(self.frame().SerializeToString())
        if self.rng.random() < 0.1:
            encoded[self.rng.randrange(len(encoded))] = self.rng.randrange(256)
        self.frames.put(bytes(encoded))
        reply = next(self.replies, None)
        if reply is None or reply.HasField("fault"):
            raise EOFError
        self.sequence = reply.executed

    def break_link(self) -> None:
        """Drops the connection at a random point, and sometimes resumes the session."""
        self.frames.put(self.frame().SerializeToString())
        self.leave()
        self.open(resume=self.key if self.rng.random() < 0.7 else b"")

    def transfer(self) -> None:
        """Starts an upload that is cut short, or a download that is not read."""
        if self.rng.random() < 0.5:
            chunk = message("UploadChunk")(transfer=self.number() % (1 << 63), total_bytes=self.number() % (1 << 63),
                                           data=self.rng.randbytes(100), through_shared_memory=self.rng.random() < 0.2)
            self.peer.upload(self.key, iter([chunk]))
        else:
            self.peer.download(self.key, self.rng.choice(self.names) % (1 << 63), self.sequence)

    def leave(self) -> None:
        """Closes the connection without closing the session."""
        self.frames.put(None)
        self.peer.close()

    def step(self) -> None:
        """Takes one random step."""
        self.rng.choices([self.send, self.break_link, self.transfer], [20, 1, 2])[0]()


OPERATORS: list[str] = []


def random_walk(address: str, token: str, rng: random.Random) -> None:
    """Mixes valid work, invalid frames, broken connections, resumed sessions and broken transfers, in any order."""
    from tests.adversary.wire import operators

    OPERATORS.extend(operators())
    while True:
        try:
            walk = Walk(address, token, rng)
            for _ in range(rng.randrange(1, 300)):
                walk.step()
        except (grpc.RpcError, EOFError, StopIteration, ValueError):
            pass
        finally:
            if "walk" in locals():
                walk.leave()


def administration(address: str, token: str, rng: random.Random) -> None:
    """Calls the administrator's methods with a user's token."""
    peer = Peer(address, token)
    while True:
        for name in ("Drain", "EmptyCache", "Snapshot", "EndSession"):
            call = peer.channel.unary_unary(ADMIN + name, lambda b: b, lambda b: b)
            try:
                call(b"\x08\x01" if name == "EndSession" else b"", metadata=[("authorization", f"Bearer {token}")], timeout=5)
            except grpc.RpcError:
                continue
            raise SystemExit(f"a user's token was accepted for {name}")


ATTACKS: dict[str, Attack] = {attack.__name__: attack for attack in (
    held_reflection_streams, unfinished_hellos, hostile_frames, guessed_tokens, session_flood, empty_instructions, many_reads,
    instruction_bombs, memory_hog, endless_work, killed_clients, unread_downloads, unfed_uploads, random_walk,
    administration, many_shapes, shared_memory, released_lists, full_stores, many_groups, forbidden_ports,
    silent_connections, preface_flood, held_calls, slow_publish, flapping_link, small_tensors, *SURFACES)}


if __name__ == "__main__":
    name, address, token, seed = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signatures()  # takes seconds, which the victim waits for
    print("ready", flush=True)
    ATTACKS[name](address, token, random.Random(int(seed)))
