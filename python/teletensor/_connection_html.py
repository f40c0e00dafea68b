"""The text of a session, and its table for notebooks."""

from __future__ import annotations

import time

from . import _C
from ._html import table

_PATIENCE = 0.5  # seconds for the memory; an engine that does not answer is shown too


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB" if count >= 2**20 else f"{count} bytes"


def _memory(devices: list[str]) -> dict[str, str]:
    """By device the bytes of the current session's tensors, and its limit as "limit". Empty without an answer within
    _PATIENCE, as when the engine is busy with earlier work.
    """
    from .cuda import memory

    try:
        reads = {name: _C.PendingRead(memory.request(name)) for name in devices if _C.device(name).type in ("cpu", "cuda")}
        end = time.monotonic() + _PATIENCE
        while not all(read.done() for read in reads.values()):
            if time.monotonic() > end:
                return {}
            time.sleep(0.002)
        found = {}
        for name, read in reads.items():
            read.wait()
            stats = memory.named(memoryview(read).cast("B").cast("q").tolist())
            found[name] = f"{_size(stats['session_bytes.current'])} in this session's tensors"
            limit = stats["session_limit_bytes"]
            found["limit"] = f"{_size(limit)} of memory" if limit else "memory without a limit"
    except Exception:  # the session has ended; the table shows what is known without it
        return {}
    return found


def _connection_rows(connection: _C.Connection, is_current: bool) -> list[tuple[str, str]]:
    """What the engine stated when the session was opened, the memory of the session, and the state of the link."""
    engine, link = connection.engine(), connection.counters()
    limits = engine["limits"]
    rows = [
        ("address", connection.address or "in this process"),
        ("engine", f"teletensord {engine['version']}"),
        ("session", f"{engine['session']}, kept for {engine['lease_seconds']:g} s without a connection"),
    ]
    memory = _memory([device["device"] for device in engine["devices"]]) if is_current else {}
    for device in engine["devices"]:
        details = [device["name"], _size(device["total_memory"])]
        details += [f"compute capability {device['compute_capability']}"] if device["compute_capability"] else []
        details += [f"driver {device['driver']}"] if device["driver"] else []
        details += [memory[device["device"]]] if device["device"] in memory else []
        rows.append((device["device"], ", ".join(details)))
    of_memory = f"{memory['limit']}; " if "limit" in memory else ""
    rows.append(("limits", f"{of_memory}{limits['max_handles']:,} tensors; frames of {_size(limits['max_frame_bytes'])}"))
    sent = f"{link['instructions']:,} calls in {link['frames']:,} frames, {link['bytes_sent'] / 1e6:.1f} MB"
    rows.append(("sent", f"{sent}; round trip {link['round_trip'] * 1e3:.2f} ms; {link['waits']:,} waits"))
    return rows


def connection_text(self: _C.Connection) -> str:
    """The address, the engine's version and the devices. Does not wait."""
    engine = self.engine()
    devices = ", ".join(device["device"] for device in engine["devices"])
    return f"<Connection to {self.address or 'an engine in this process'}: session {engine['session']}, {engine['version']}, {devices}>"


def connection_table(self: _C.Connection, is_current: bool) -> str:
    """A table of the address, the engine, its devices and limits, the session's memory and the link, for notebooks.

    Waits for the memory only, at most _PATIENCE, and shows it if the session is the current one.
    """
    return table("<b>Connection</b>", _connection_rows(self, is_current))

