"""Frames of a profile: when the client sent them, and when the engine received, executed and answered them."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

import numpy as np


@dataclasses.dataclass
class Frame:
    """What the client sent at once. Times are microseconds since the profile's start, in the client's clock.

    Attributes:
        sequence: its number in the session.
        sent: when the client began to write it.
        received: when it reached the engine. A frame that arrived while the engine executed others is read only after
            them; its arrival is then estimated from the fastest frame of the profile.
        read: when the engine had read it.
        started: when its first instruction began; between the two, it was decoded and its operators were fused.
        ended: when the engine's reply was complete.
        acknowledged: when the client had read the reply; None if it had not read it when the profile ended.
        estimated: whether `received` was estimated.
        first_instruction: position of its first instruction in the profile.
    """

    sequence: int
    sent: float
    received: float
    read: float
    started: float
    ended: float
    acknowledged: float | None
    estimated: bool
    first_instruction: int

    wire_time = property(lambda self: self.received - self.sent, doc="Microseconds from the client to the engine.")
    queue_time = property(lambda self: self.read - self.received, doc="Microseconds behind earlier frames.")
    prepare_time = property(lambda self: self.started - self.read, doc="Microseconds of decoding and fusion.")
    execution_time = property(lambda self: self.ended - self.started, doc="Microseconds of its instructions and reply.")

    @property
    def reply_time(self) -> float | None:
        """Microseconds until the client had read the reply, which it does when it waits or has nothing to send."""
        return None if self.acknowledged is None else self.acknowledged - self.ended


def match(engine: np.ndarray, client: np.ndarray, start: int) -> list[Frame]:
    """Returns the frames that both sides recorded.

    Args:
        engine: Profiler::Frame, with times in the client's clock.
        client: client::SentFrame. A frame that was sent again occurs again.
        start: of the profile, in nanoseconds.
    """
    sent = {int(frame["sequence"]): frame for frame in client}
    pairs = [(frame, sent[int(frame["sequence"])]) for frame in engine if int(frame["sequence"]) in sent]
    fastest = min((int(there["received"]) - int(here["sent"]) for there, here in pairs), default=0)
    frames = []
    for there, here in pairs:
        arrival, estimated = _arrival(there, here, fastest)
        acknowledged = None if here["acknowledged"] == 0 else _us(here["acknowledged"], start)
        read, started = _us(there["received"], start), _us(there["started"], start)
        frames.append(
            Frame(int(there["sequence"]), _us(here["sent"], start), _us(arrival, start), read, started,
                  _us(there["ended"], start), acknowledged, estimated, int(there["first_instruction"]))
        )  # fmt: skip
    return frames


def _us(time: int, start: int) -> float:
    return (int(time) - start) / 1e3


def _arrival(there: np.void, here: np.void, fastest: int) -> tuple[int, bool]:
    """When a frame reached the engine: when it was read, if the engine waited for it."""
    sent, awaited, received = int(here["sent"]), int(there["awaited"]), int(there["received"])
    estimate = sent + max(0, fastest)
    if awaited == 0 or estimate >= awaited:
        return received, False
    return min(estimate, received), True


def table(frames: Sequence[Frame]) -> str:
    """The times of all frames: median, mean and maximum."""
    if not frames:
        return "no frames were recorded"
    parts = ("wire", "queue", "prepare", "execution", "reply")
    lines = [f"{len(frames)} frames".ljust(18) + "".join(f"{name:>14}" for name in ("median", "mean", "maximum"))]
    for part in parts:
        times = [time for frame in frames if (time := getattr(frame, f"{part}_time")) is not None]
        if times:
            numbers = (statistics.median(times), statistics.fmean(times), max(times))
            lines.append(part.ljust(18) + "".join(f"{number:11.1f} us" for number in numbers))
    return "\n".join(lines)
