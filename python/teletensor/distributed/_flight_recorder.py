"""The last collectives and messages of a group's ranks."""

from __future__ import annotations

from .. import _C
from ._process_group import ProcessGroup
from ._world import _group_or_default_group

_FIELDS = ("call", "operation", "dtype", "items", "state", "called", "begun", "ended", "line", "error")


def _parse(text: str) -> list[dict]:
    records = []
    for line in text.splitlines():
        record = dict(zip(_FIELDS, line.split("\t"), strict=True))
        for name in ("call", "items"):
            record[name] = int(record[name])
        for name in ("called", "begun", "ended"):
            record[name] = float(record[name]) if record[name] else None
        records.append(record)
    return records


def own_records(pg: ProcessGroup) -> list[dict]:
    """This rank's records of a group. Waits."""
    return _parse(bytes(_C.ops.group_records(pg._handle, pg.rank()).tolist()).decode(errors="replace"))


def dump_flight_recorder(group: ProcessGroup | None = None) -> dict[int, list[dict]]:
    """Returns the last 64 collectives and messages of each rank of a group, by its rank in the group. Waits.

    After a failure each rank publishes its records, if it is alive and was in a collective. The list of another rank
    that has published none is empty; this rank's records are always included.

    Each record has the call's number in this engine, the operation, dtype and number of items of this rank, the state
    ("queued", "running", "complete" or "failed"), the seconds since it was called, begun and ended (None if it has not), the
    line of the script, and the error.
    """
    pg = _group_or_default_group(group)
    return {
        rank: _parse(bytes(_C.ops.group_records(pg._handle, rank).tolist()).decode(errors="replace"))
        for rank in range(pg.size())
    }
