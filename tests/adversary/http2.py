"""Raw HTTP/2 frames for clients that violate the protocol."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator

import hpack

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, CONTINUATION = 0, 1, 2, 3, 4, 6, 9
END_STREAM, END_HEADERS = 1, 4


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0)


def call_headers(path: str, *more: tuple[str, str]) -> bytes:
    """The header block of a call, by an encoder without state."""
    headers = [(":method", "POST"), (":path", path), (":scheme", "http"), ("te", "trailers"), ("content-type", "application/grpc")]
    return hpack.Encoder().encode([*headers, *more], huffman=False)


def unfinished_string(path: str) -> Iterator[bytes]:
    """A header whose value is announced with 2 GB, in CONTINUATION frames without an end."""
    yield frame(HEADERS, 0, 1, call_headers(path) + b"\x00\x01a\x7f\x80\xff\xff\xff\x07")
    while True:
        yield frame(CONTINUATION, 0, 1, bytes(16384))


def unfinished_block(path: str) -> Iterator[bytes]:
    """CONTINUATION frames with complete headers, without an end."""
    yield frame(HEADERS, 0, 1, call_headers(path))
    while True:
        yield frame(CONTINUATION, 0, 1, b"\x00\x01a\x7f\x81\x01" + bytes(256))


def small_continuations(path: str) -> Iterator[bytes]:
    """Empty CONTINUATION frames."""
    yield frame(HEADERS, 0, 1, call_headers(path))
    while True:
        yield frame(CONTINUATION, 0, 1) * 100


def rapid_resets(path: str) -> Iterator[bytes]:
    """Calls that are cancelled as soon as they are begun."""
    for stream in range(1, 1 << 30, 2):
        yield frame(HEADERS, END_HEADERS, stream, call_headers(path)) + frame(RST_STREAM, 0, stream, b"\0\0\0\x08")


def many_settings(path: str) -> Iterator[bytes]:
    """SETTINGS frames, each of which is acknowledged."""
    while True:
        yield frame(SETTINGS, 0, 0) * 100


FLOODS: dict[str, Callable[[str], Iterator[bytes]]] = {
    flood.__name__: flood for flood in (unfinished_string, unfinished_block, small_continuations, rapid_resets, many_settings)
}


def send(link: socket.socket, parts: Iterator[bytes], most: int) -> int:
    """Sends the preface and the parts, and now and then reads what the engine answers, until the engine closes the connection or
    `most` bytes were sent. Returns the number of bytes.
    """
    sent = 0
    try:
        link.sendall(PREFACE)
        for number, part in enumerate(parts):
            link.settimeout(20)
            link.sendall(part)
            sent += len(part)
            if sent >= most:
                return sent
            if number % 64 == 63:
                link.settimeout(0.001)
                with contextlib.suppress(TimeoutError):
                    if not link.recv(1 << 16):
                        return sent
    except OSError:  # closed
        pass
    return sent
