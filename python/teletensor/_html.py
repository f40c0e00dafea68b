"""HTML tables for notebooks, and the text and the table of a session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import _C


def escape(text: object) -> str:
    """A value's text, with the characters that are HTML's replaced; also usable in an attribute."""
    import html  # slow to import, and used in notebooks only

    return html.escape(str(text))


def table(caption: str, rows: Iterable[Sequence[object]], *, head: Sequence[object] = ()) -> str:
    """A table. Cells are escaped; the caption is HTML."""
    lines = ['<table class="teletensor">', f'<caption style="caption-side: top; text-align: left">{caption}</caption>']
    if head:
        lines.append("<thead><tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr></thead>")
    lines.append("<tbody>")
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return "\n".join([*lines, "</tbody>", "</table>"])


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB" if count >= 2**20 else f"{count} bytes"


def _connection_rows(connection: _C.Connection) -> list[tuple[str, str]]:
    """What the engine stated when the session was opened, and the state of the link. Does not wait."""
    engine, link = connection.engine(), connection.counters()
    limits = engine["limits"]
    rows = [
        ("address", connection.address or "in this process"),
        ("engine", f"teletensord {engine['version']}"),
        ("session", f"{engine['session']}, kept for {engine['lease_seconds']:g} s without a connection"),
    ]
    for device in engine["devices"]:
        details = [device["name"], _size(device["total_memory"])]
        details += [f"compute capability {device['compute_capability']}"] if device["compute_capability"] else []
        details += [f"driver {device['driver']}"] if device["driver"] else []
        rows.append((device["device"], ", ".join(details)))
    rows.append(("limits", f"{limits['max_handles']:,} tensors; frames of {_size(limits['max_frame_bytes'])}"))
    sent = f"{link['instructions']:,} calls in {link['frames']:,} frames, {link['bytes_sent'] / 1e6:.1f} MB"
    rows.append(("sent", f"{sent}; round trip {link['round_trip'] * 1e3:.2f} ms; {link['waits']:,} waits"))
    return rows


def _connection_repr(self: _C.Connection) -> str:
    """The address, the engine's version and the devices. Does not wait."""
    engine = self.engine()
    devices = ", ".join(device["device"] for device in engine["devices"])
    return f"<Connection to {self.address or 'an engine in this process'}: session {engine['session']}, {engine['version']}, {devices}>"


def _connection_html(self: _C.Connection) -> str:
    """A table of the address, the engine, its devices and limits, and the link, for notebooks. Does not wait."""
    return table("<b>Connection</b>", _connection_rows(self))


_C.Connection.__repr__ = _connection_repr
_C.Connection._repr_html_ = _connection_html
