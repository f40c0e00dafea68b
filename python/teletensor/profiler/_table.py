"""Prints events of a profile as a table, with PyTorch's columns."""

from __future__ import annotations

from collections.abc import Sequence

from ._device import DeviceType

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_SORT_KEYS = ("cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time", "device_time_total",
              "self_device_time_total", "client_time_total", "count", "flops", "cpu_memory_usage",
              "self_cpu_memory_usage")  # fmt: skip


def _time(us: float, unit: str | None) -> str:
    unit = unit or next((name for name in ("s", "ms") if us >= _UNITS[name]), "us")
    return f"{us / _UNITS[unit]:.3f}{unit}"


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: width - 3] + "..."


def table(events: Sequence, sort_by: str | None, row_limit: int, source_width: int, name_width: int, shapes_width: int,
          header: str | None, top_level_only: bool, unit: str | None, with_memory: bool, with_flops: bool) -> str:  # fmt: skip
    """Returns the table as a text.

    Raises:
        ValueError: an unknown column or unit.
    """
    sort_by = None if sort_by is None else sort_by.replace("cuda", "device")
    if sort_by is not None and sort_by not in _SORT_KEYS:
        raise ValueError(f"[table] expected sort_by in {list(_SORT_KEYS)}, got {sort_by!r}")
    if unit is not None and unit not in _UNITS:
        raise ValueError(f"[table] expected time_unit in {list(_UNITS)}, got {unit!r}")
    total = sum(e.self_cpu_time_total for e in events if not e.is_user_annotation)
    device_total = sum(e.self_device_time_total for e in events if e.device_type == DeviceType.CUDA)
    rows = [e for e in events if not top_level_only or getattr(e, "cpu_parent", None) is None]
    if sort_by is not None:
        rows = sorted(rows, key=lambda e: getattr(e, sort_by) if sort_by != "client_time_total" else _client(e), reverse=True)
    rows = rows[:row_limit] if row_limit >= 0 else rows
    columns = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    if device_total:
        columns += ["Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"]
    columns.append("Issue total")
    if with_memory:
        columns += ["CPU Mem", "Self CPU Mem"]
    columns.append("# of Calls")
    if with_flops:
        columns.append("Total MFLOPs")
    has_shapes, has_stack = any(e.input_shapes for e in rows), any(e.stack for e in rows)
    columns += ["Input Shapes"] * has_shapes + ["Source Location"] * has_stack
    lines = []
    for e in rows:
        share = [f"{100 * part / total:.2f}%" if total else "--" for part in (e.self_cpu_time_total, e.cpu_time_total)]
        line = [_cut(e.key, name_width), share[0], _time(e.self_cpu_time_total, unit), share[1], _time(e.cpu_time_total, unit),
                _time(e.cpu_time, unit)]  # fmt: skip
        if device_total:
            line += [_time(e.self_device_time_total, unit), f"{100 * e.self_device_time_total / device_total:.2f}%",
                     _time(e.device_time_total, unit), _time(e.device_time, unit)]  # fmt: skip
        line.append(_time(_client(e), unit))
        if with_memory:
            line += [_bytes(e.cpu_memory_usage), _bytes(e.self_cpu_memory_usage)]
        line.append(str(e.count))
        if with_flops:
            line.append(f"{e.flops / 1e6:.3f}" if e.flops else "--")
        if has_shapes:
            line.append(_cut(str(e.input_shapes or []), shapes_width))
        if has_stack:
            line.append(_cut("; ".join(e.stack), source_width))
        lines.append(line)
    widths = [max(len(row[i]) for row in [columns, *lines]) for i in range(len(columns))]
    rule = "  ".join("-" * width for width in widths)
    left = {"Name", "Input Shapes", "Source Location"}

    def aligned(row: Sequence[str]) -> str:
        cells = zip(row, widths, columns, strict=True)
        return "  ".join(text.ljust(w) if name in left else text.rjust(w) for text, w, name in cells).rstrip()

    text = ["=" * len(rule), header] if header is not None else []
    text += [rule, aligned(columns), rule, *map(aligned, lines), rule, f"Self CPU time total: {_time(total, unit)}"]
    if device_total:
        text.append(f"Self CUDA time total: {_time(device_total, unit)}")
    return "\n".join(text) + "\n"


def _client(event) -> float:
    return event.client_time_total if hasattr(event, "client_time_total") else event.client_time
