"""Output of ranks: whole lines with a prefix on the launcher's own streams, and files.

Everything runs in the launcher's event loop. One queue feeds both streams, so that lines do not interleave even if both
are the same terminal. If a stream's reader is slow, the queue fills and the ranks' pipes are not read until it empties,
as if the ranks wrote to that reader themselves.
"""

from __future__ import annotations

import asyncio
import collections
import os
import re
import select
import stat
from collections.abc import Callable
from pathlib import Path

from .options import STDERR, STDOUT

_QUEUE_BYTES = 1 << 20
_PIECE = 4096  # a pipe that is ready accepts this many bytes without blocking
_READ = 1 << 16
_LONGEST_LINE = 1 << 20  # a longer line is divided
_TAIL_LINES, _TAIL_WIDTH = 20, 2000
_COLORS = (36, 33, 32, 35, 34, 31)  # of ANSI terminals
_END_OF_LINE = re.compile(rb"\r\n|\n|\r(?=[^\n])")  # a progress bar ends its lines by \r


class Output:
    """Writes to standard output and standard error, given as descriptors, without blocking the event loop."""

    def __init__(self, descriptors: dict[int, int], colors: dict[int, bool]):
        """The keys are STDOUT and STDERR."""
        self._descriptors, self._colors = descriptors, colors
        self._queue: collections.deque[tuple[int, bytes]] = collections.deque()
        self._bytes = 0
        self._waiting_for: int | None = None  # the descriptor whose pipe is full
        self._on_room: list[Callable[[], None]] = []
        self._broken: set[int] = set()  # streams whose reader has ended

    @classmethod
    def standard(cls, colors: dict[int, bool] | None = None) -> Output:
        """Returns the process's own streams. By default a stream has colours if it is a terminal and NO_COLOR is not set."""
        if colors is None:
            allowed = not os.environ.get("NO_COLOR")
            colors = {stream: allowed and os.isatty(fd) for stream, fd in ((STDOUT, 1), (STDERR, 2))}
        return cls({STDOUT: 1, STDERR: 2}, colors)

    @property
    def colors(self) -> dict[int, bool]:
        return self._colors

    @property
    def full(self) -> bool:
        return self._bytes >= _QUEUE_BYTES

    def when_room(self, callback: Callable[[], None]) -> None:
        """Calls `callback` once the queue is no longer full."""
        self._on_room.append(callback)

    def prefix(self, stream: int, rank: int, text: str | None = None) -> bytes:
        """Returns the prefix of a rank's lines: `text`, by default "[rank] ", in the rank's colour."""
        text = f"[{rank}] " if text is None else text
        label, space = text.rstrip(" "), " " * (len(text) - len(text.rstrip(" ")))
        color = _COLORS[rank % len(_COLORS)]
        return (f"\x1b[{color}m{label}\x1b[0m{space}" if self._colors[stream] and label else text).encode()

    def write(self, stream: int, data: bytes) -> None:
        """Queues whole lines."""
        if stream not in self._broken:
            self._queue.append((stream, data))
            self._bytes += len(data)
            self._send()

    def message(self, text: str) -> None:
        """Writes a message of the launcher itself to standard error."""
        self.write(STDERR, "".join(f"teletensor launch: {line}\n" for line in text.splitlines()).encode())

    def _send(self) -> None:
        while self._queue and self._waiting_for is None:
            stream, data = self._queue.popleft()
            fd = self._descriptors[stream]
            if stream in self._broken:
                self._bytes -= len(data)
                continue
            if self._is_ready(fd):
                data = self._write_piece(stream, fd, data)
            if data:
                self._queue.appendleft((stream, data))
                if not self._is_ready(fd):
                    self._waiting_for = fd
                    asyncio.get_running_loop().add_writer(fd, self._resume)
        if not self.full:
            callbacks, self._on_room = self._on_room, []
            for callback in callbacks:
                callback()

    def _is_ready(self, fd: int) -> bool:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return True
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        return bool(poll.poll(0))

    def _write_piece(self, stream: int, fd: int, data: bytes) -> bytes:
        """Writes some of the bytes and returns the others."""
        try:
            written = os.write(fd, data[:_PIECE])
        except BlockingIOError:
            return data
        except OSError:  # the reader has ended; the run continues without it
            self._broken.add(stream)
            written = len(data)
        self._bytes -= written
        return data[written:]

    def _resume(self) -> None:
        asyncio.get_running_loop().remove_writer(self._waiting_for)
        self._waiting_for = None
        self._send()

    async def flush(self, seconds: float) -> None:
        """Waits until everything is written, or until the time is over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self._queue and loop.time() < end:
            await asyncio.sleep(0.01)


class LineSplitter:
    """Divides a stream of bytes into lines, each with its end replaced by a newline."""

    def __init__(self):
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the lines that are now complete."""
        searched = max(0, len(self._rest) - 1)  # starts one byte earlier, at a trailing \r
        data = self._rest + data
        lines, end = [], 0
        for match in _END_OF_LINE.finditer(data, searched):
            lines.append(data[end : match.start()] + b"\n")
            end = match.end()
        self._rest = data[end:]
        if len(self._rest) > _LONGEST_LINE:
            lines.append(self._rest + b"\n")
            self._rest = b""
        return lines

    def end(self) -> list[bytes]:
        """Returns the last line if it has no end."""
        rest, self._rest = self._rest.rstrip(b"\r\n"), b""
        return [rest + b"\n"] if rest else []


class FilterFile:
    """The lines of one stream of all ranks that contain one of some texts, appended to a file."""

    def __init__(self, path: Path, texts: tuple[str, ...]):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._texts = [text.encode() for text in texts]
        self._file = path.open("ab", buffering=0)

    def write(self, prefix: bytes, lines: list[bytes]) -> None:
        self._file.write(b"".join(prefix + line for line in lines if any(text in line for text in self._texts)))

    def close(self) -> None:
        self._file.close()


class Stream:
    """One stream of a rank, read from a pipe, which it owns.

    Args:
        fd: the pipe's read end.
        output: the launcher's streams; `stream` is STDOUT or STDERR.
        prefix: of each line that is shown; None shows nothing.
        path: a file to which the bytes are appended unchanged, or None.
        filtered: the file for lines with certain texts, with their prefix in it, or None.
    """

    def __init__(
        self, fd: int, output: Output, stream: int, prefix: bytes | None, path: Path | None,
        filtered: tuple[FilterFile, bytes] | None = None,
    ):  # fmt: skip
        self._fd, self._output, self._stream, self._prefix, self._filtered = fd, output, stream, prefix, filtered
        self._lines = LineSplitter()
        self._tail: collections.deque[bytes] = collections.deque(maxlen=_TAIL_LINES)
        self._file = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
        os.set_blocking(fd, False)
        asyncio.get_running_loop().add_reader(fd, self._read)

    def _read(self) -> bool:
        """Reads the available bytes, at most _READ. Returns False at the end and if there is nothing."""
        try:
            data = os.read(self._fd, _READ)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._fd)
            return False
        if self._file is not None:
            self._file.write(data)
        self._show(self._lines.feed(data))
        if self._output.full and self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            self._output.when_room(self._continue)
        return True

    def _continue(self) -> None:
        if self._fd >= 0:
            asyncio.get_running_loop().add_reader(self._fd, self._read)

    def _show(self, lines: list[bytes]) -> None:
        self._tail.extend(line[:_TAIL_WIDTH] for line in lines)
        if self._filtered is not None and lines:
            file, prefix = self._filtered
            file.write(prefix, lines)
        if self._prefix is not None and lines:
            self._output.write(self._stream, b"".join(self._prefix + line for line in lines))

    def tail(self) -> str:
        """The last lines."""
        return b"".join(self._tail).decode(errors="replace")

    def finish(self) -> None:
        """Reads the rest of the pipe after its writer has ended, and closes everything."""
        if self._fd < 0:
            return
        while self._read():
            pass
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)
        self._fd = -1
        self._show(self._lines.end())
        if self._file is not None:
            self._file.close()
