#!/usr/bin/python3
"""Exits with 0 if the engine at HOST:PORT reports SERVING through grpc.health.v1, which needs no token. Otherwise prints
the reason and exits with 1.

The image has no gRPC for Python: this is one request of HTTP/2 (RFC 9113) without compression of headers (RFC 7541).
An engine closes a connection whose first bytes are not those of its protocol, so both are tried: plain and TLS. The
certificate is not verified, because nothing secret is sent. An engine with --tls-client-ca needs another check.
"""

import socket
import ssl
import struct
import sys

DATA, HEADERS, SETTINGS, GOAWAY = 0, 1, 4, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Returns a frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header(name: str, value: str) -> bytes:
    """Returns a header field: a literal without indexing, with a new name."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def read(connection: socket.socket, size: int) -> bytes:
    """Reads `size` bytes."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the engine closed the connection")
        data += part
    return data


def connect(host: str, port: int, tls: bool, timeout: float) -> socket.socket:
    """Returns a connection for HTTP/2."""
    connection = socket.create_connection((host, port), timeout)
    if not tls:
        return connection
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(connection, server_hostname=host)


def is_serving(host: str, port: int, tls: bool = False, timeout: float = 4) -> bool:
    """Calls grpc.health.v1.Health/Check for the whole server."""
    fields = {":method": "POST", ":scheme": "https" if tls else "http", ":path": "/grpc.health.v1.Health/Check",
              ":authority": host, "te": "trailers", "content-type": "application/grpc"}  # fmt: skip
    with connect(host, port, tls, timeout) as connection:
        connection.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0)
            + frame(HEADERS, END_HEADERS, 1, b"".join(header(*field) for field in fields.items()))
            + frame(DATA, END_STREAM, 1, bytes(5))  # an empty HealthCheckRequest after its length
        )  # fmt: skip
        message = b""
        while True:
            head = read(connection, 9)
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            payload = read(connection, size)
            if kind == SETTINGS and not flags & ACK:
                connection.sendall(frame(SETTINGS, ACK, 0))
            elif kind == DATA:
                message += payload
            elif kind == GOAWAY:
                raise ConnectionError(f"the engine closed the connection: {payload[8:].decode(errors='replace')}")
            if len(message) >= 5 and len(message) == 5 + int.from_bytes(message[1:5], "big"):
                return message[5:] == b"\x08\x01"  # HealthCheckResponse with status SERVING
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                return False


def main() -> int:
    """Returns the exit status."""
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7070").rpartition(":")
    try:
        try:
            serving = is_serving(host, int(port))
        except ConnectionRefusedError:
            raise
        except ConnectionError:
            serving = is_serving(host, int(port), tls=True)
        if serving:
            return 0
        print("teletensor-health: the engine is not serving")
    except OSError as error:
        print(f"teletensor-health: {error}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
