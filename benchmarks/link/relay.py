"""`python -m benchmarks.link.relay SOCKET`: forwards TCP connections to a unix socket with a delay and a limited rate.

Prints the address at which it listens. Each direction delays every byte by `--delay` milliseconds (half a round trip)
and passes at most `--rate` megabits per second, which all connections of the direction share. Bytes wait in memory, like
in a router with a large buffer.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import socket
import threading
import time

CHUNK = 64 << 10


class Direction:
    """One direction of the link: when a chunk that is sent now arrives."""

    def __init__(self, delay: float, rate: float):
        self.delay = delay  # seconds
        self.rate = rate  # bytes per second; 0: unlimited
        self.busy_until = 0.0
        self.lock = threading.Lock()

    def arrival(self, size: int) -> float:
        """The time at which `size` bytes, sent now, have arrived."""
        now = time.monotonic()
        if self.rate == 0:
            return now + self.delay
        with self.lock:
            self.busy_until = max(now, self.busy_until) + size / self.rate
            return self.busy_until + self.delay


class Pipe:
    """Forwards one direction of one connection."""

    def __init__(self, source: socket.socket, target: socket.socket, direction: Direction):
        self.source, self.target, self.direction = source, target, direction
        self.chunks: collections.deque[tuple[float, bytes]] = collections.deque()
        self.added = threading.Condition()
        for run in (self.receive, self.send):
            threading.Thread(target=run, daemon=True).start()

    def receive(self) -> None:
        """Reads the source until it ends; the empty chunk ends send()."""
        data = b"x"
        while data:
            try:
                data = self.source.recv(CHUNK)
            except OSError:
                data = b""
            with self.added:
                self.chunks.append((self.direction.arrival(len(data)), data))
                self.added.notify()

    def send(self) -> None:
        """Writes each chunk when it arrives."""
        while True:
            with self.added:
                self.added.wait_for(lambda: self.chunks)
                arrival, data = self.chunks.popleft()
            time.sleep(max(0.0, arrival - time.monotonic()))
            with contextlib.suppress(OSError):
                if data:
                    self.target.sendall(data)
                else:
                    self.target.shutdown(socket.SHUT_WR)
            if not data:
                return


def main() -> None:
    """Serves until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("socket", help="path of the engine's socket")
    parser.add_argument("--delay", type=float, default=0, help="milliseconds in each direction")
    parser.add_argument("--rate", type=float, default=0, help="megabits per second in each direction; 0: unlimited")
    args = parser.parse_args()
    directions = [Direction(args.delay / 1e3, args.rate * 1e6 / 8) for _ in range(2)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"127.0.0.1:{listener.getsockname()[1]}", flush=True)
        while True:
            client, _ = listener.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(args.socket)
            Pipe(client, engine, directions[0])
            Pipe(engine, client, directions[1])


if __name__ == "__main__":
    main()
