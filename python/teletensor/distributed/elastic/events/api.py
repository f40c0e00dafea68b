"""Events of a run, as JSON."""

from __future__ import annotations

import dataclasses
import enum
import json

__all__ = ["Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent"]

EventMetadataValue = str | int | float | bool | None


class EventSource(str, enum.Enum):
    """What caused an event."""

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(str, enum.Enum):
    """The state of a node in a rendezvous."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class _Serializable:
    def __str__(self) -> str:
        return self.serialize()

    def serialize(self) -> str:
        """Returns the event as JSON."""
        return json.dumps(dataclasses.asdict(self))


@dataclasses.dataclass
class Event(_Serializable):
    """An event. `timestamp`: milliseconds since the epoch."""

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = dataclasses.field(default_factory=dict)

    __str__ = _Serializable.__str__

    @staticmethod
    def deserialize(data: str | Event) -> Event:
        """Restores an event from JSON."""
        if isinstance(data, Event):
            return data
        values = json.loads(data)
        return Event(**{**values, "source": EventSource[values["source"]]})


@dataclasses.dataclass
class RdzvEvent(_Serializable):
    """An event of a rendezvous."""

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""

    __str__ = _Serializable.__str__

    @staticmethod
    def deserialize(data: str | RdzvEvent) -> RdzvEvent:
        """Restores an event from JSON."""
        if isinstance(data, RdzvEvent):
            return data
        values = json.loads(data)
        return RdzvEvent(**{**values, "node_state": NodeState[values["node_state"]]})
