"""Raw gRPC calls with the messages of proto/teletensor/v1, for clients that violate the protocol."""

from __future__ import annotations

import functools
import re
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import grpc
import h2.config
import h2.connection
import h2.events
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

ROOT = Path(__file__).resolve().parent.parent.parent
ENGINE, ADMIN = "/teletensor.v1.Engine/", "/teletensor.v1.Admin/"


@functools.cache
def _pool() -> descriptor_pool.DescriptorPool:
    with tempfile.NamedTemporaryFile() as out:
        files = [f"teletensor/v1/{name}.proto" for name in ("engine", "admin", "model")]
        subprocess.run(["protoc", f"-I{ROOT / 'proto'}", "--include_imports", f"--descriptor_set_out={out.name}", *files], check=True)
        descriptors = descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in descriptors.file:
        pool.Add(file)
    return pool


@functools.cache
def message(name: str):
    """The class of a message, as in ``message("Frame")``."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"teletensor.v1.{name}"))


class Peer:
    """A connection to an engine. Sends bytes or messages without any checks."""

    def __init__(self, address: str, token: str):
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1),
                   ("grpc.max_send_message_length", -1), ("grpc.enable_retries", 0)]
        self.channel = grpc.insecure_channel(address, options)
        self.token = token

    def close(self) -> None:
        """Closes the connection; calls in progress are cancelled."""
        self.channel.close()

    def hello(self, **fields):
        """Opens a session; returns the reply."""
        call = self.channel.unary_unary(ENGINE + "Hello", lambda m: m.SerializeToString(), message("HelloReply").FromString)
        return call(message("HelloRequest")(**fields), metadata=[("authorization", f"Bearer {self.token}")], timeout=20)

    def session(self, key: bytes, frames):
        """Opens the ordered stream: takes an iterator of frames (or bytes), returns an iterator of replies."""
        encode = lambda f: f if isinstance(f, bytes) else f.SerializeToString()  # noqa: E731
        call = self.channel.stream_stream(ENGINE + "Session", encode, message("Reply").FromString)
        return call(frames, metadata=[("teletensor-session", key)])

    def upload(self, key: bytes, chunks):
        """Starts an upload; returns its future."""
        call = self.channel.stream_unary(ENGINE + "Upload", lambda m: m.SerializeToString(), None)
        return call.future(chunks, metadata=[("teletensor-session", key)])

    def download(self, key: bytes, handle: int, after: int):
        """Starts a download; returns an iterator that receives chunks on demand."""
        call = self.channel.unary_stream(ENGINE + "Download", lambda m: m.SerializeToString(), None)
        request = message("DownloadRequest")(handle=handle, after=after)
        return call(request, metadata=[("teletensor-session", key)])

    def status(self, token: str | None = None):
        """The engine's status; with the administrator's token, also that of its sessions."""
        call = self.channel.unary_unary(ADMIN + "Status", lambda m: m.SerializeToString(), message("StatusReply").FromString)
        return call(message("StatusRequest")(), metadata=[("authorization", f"Bearer {token or self.token}")], timeout=20)


class UnfinishedCalls:
    """Calls with a token whose requests never end: the first bytes of a message, and then nothing."""

    PER_CONNECTION = 48  # streams; a connection with 50 refused calls per second is closed

    def __init__(self, address: str, token: str):
        self.address, self.token = address, token
        self.links: list[socket.socket] = []

    def open(self, method: str, count: int) -> None:
        """Begins calls, over new connections."""
        for first in range(0, count, self.PER_CONNECTION):
            http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
            http.initiate_connection()
            for _ in range(min(self.PER_CONNECTION, count - first)):
                stream = http.get_next_available_stream_id()
                http.send_headers(stream, [
                    (":method", "POST"), (":path", method), (":scheme", "http"), (":authority", "engine"),
                    ("content-type", "application/grpc"), ("te", "trailers"), ("authorization", f"Bearer {self.token}")])
                http.send_data(stream, b"\0\0\0\0\x10")
            link = self._connect()
            link.sendall(http.data_to_send())
            self.links.append(link)
            deadline = time.monotonic() + 2
            while time.monotonic() < deadline:  # until the engine has read the headers: it acknowledges the settings
                events = http.receive_data(link.recv(1 << 16))
                link.sendall(http.data_to_send())
                if any(isinstance(each, h2.events.SettingsAcknowledged) for each in events):
                    break

    def _connect(self) -> socket.socket:
        path = self.address.removeprefix("unix:")
        if path != self.address:
            link = socket.socket(socket.AF_UNIX)
            link.settimeout(5)
            link.connect(path)
            return link
        host, port = self.address.rsplit(":", 1)
        return socket.create_connection((host, int(port)), timeout=5)

    def close(self) -> None:
        """Closes the connections; the calls end."""
        for link in self.links:
            link.close()
        self.links.clear()


@functools.cache
def operators() -> dict[str, int]:
    """Maps operator names to ids."""
    import sys

    sys.path.insert(0, str(ROOT))
    from engine.codegen.declaration import load

    return {op.name: op.entry["id"] for op in load(ROOT / "engine/ops")}


class Declared:
    """The parameters of an operator as (type, name), such as ("Tensor(w)", "grad"), and the number of its results; -1: a list.
    """

    def __init__(self, signature: str):
        listed, _, results = signature[signature.index("(") + 1 :].partition(") ->")
        parts = [part.split("=")[0].split() for part in re.split(r", (?![^\[]*\])", listed) if part.strip() not in ("", "*")]
        self.parameters = [(re.sub(r"\[[\d*]+\]", "[]", kind), name) for kind, name in parts]
        results = results.strip()
        self.results = 0 if results == "()" else -1 if "[]" in results else results.count(",") + 1


@functools.cache
def signatures() -> dict[str, Declared]:
    """Maps operator names to their signatures."""
    operators()
    from engine.codegen.declaration import load

    return {op.name: Declared(op.entry["sig"]) for op in load(ROOT / "engine/ops")}


def instruction(frame, op: str | int, *args, result: int = 0, count: int = 0):
    """Appends an instruction of an operator's name or number. Arguments: integers, floats, bytes, lists of integers,
    ``("h", n)`` for handle n, and ``("hs", [n, ...])`` for a list of handles.
    """
    added = frame.instructions.add(op=op if isinstance(op, int) else operators()[op], result=result, result_count=count)
    for arg in args:
        wire = added.args.add()
        if isinstance(arg, tuple) and arg[0] == "hs":
            wire.handles.values.extend(arg[1])
        elif isinstance(arg, tuple):
            wire.handle = arg[1]
        elif isinstance(arg, bool):
            wire.boolean = arg
        elif isinstance(arg, int):
            wire.integer = arg
        elif isinstance(arg, float):
            wire.real = arg
        elif isinstance(arg, bytes):
            wire.characters = arg
        elif arg is None:
            wire.none = True
        else:
            wire.integers.values.extend(arg)
    return added
