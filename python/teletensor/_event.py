"""torch.Event: a point in the work of a CPU or GPU of the engine."""

from __future__ import annotations

from . import _C
from ._lazy import set_module
from .cuda import streams

Stream = streams.Stream


class Event(streams.Event):
    """A point in a device's work, which the device reaches after all work issued before ``record()``.

    On a CPU ``query()`` does not wait, and ``synchronize()`` waits for the work before the event, not for later work.

    Args:
        device: by default the current GPU or other accelerator, or the CPU if the engine has none.
        enable_timing: allows ``elapsed_time``.
        blocking: has no effect, because waiting never spins.
    """

    def __init__(
        self, device=None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        super().__init__(enable_timing, blocking, interprocess)
        if device is None:
            from ._plugin_devices import accelerator_module

            module = accelerator_module()
            device = module.__name__.rpartition(".")[2] if module else "cpu"
        self.device = _C.placed(device)
        self._reached: _C.PendingItem | None = None  # arrives when the CPU has reached the event

    def record(self, stream: streams.Stream | None = None) -> None:
        """Sets the event to the current point in program order. ``stream`` must be of the event's device."""
        if stream is not None and stream.device != self.device:
            raise RuntimeError(f"[Event.record] expected a stream of {self.device}, got one of {stream.device}")
        on_cpu = self.device.type == "cpu"
        _C.ops.event_record(self._number, 0 if on_cpu else _C.device_code(self.device))
        self._recorded = True
        if on_cpu:
            self._reached = _C.ops.event_passed(self._number).item_async()

    def query(self) -> bool:
        """Whether the device has reached the event. For a GPU, makes a round trip to the engine."""
        return self._reached.done() if self._reached is not None else super().query()

    def synchronize(self) -> None:
        """Waits until the device has reached the event."""
        if self._reached is not None:
            self._reached.wait()
        else:
            super().synchronize()


set_module("teletensor", Event)
