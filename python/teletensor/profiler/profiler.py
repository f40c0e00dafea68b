"""profile: records what a program issues and when the engine executes it."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable

from .. import _active_profile, _connection
from .._active_profile import record_function
from .._lazy import defined_by
from ._builder import Builder
from ._configs import CuspyConfig, PerformanceMetricsConfig, ProfilerActivityConfig, activities_of
from ._device import DeviceType
from ._events import EventList
from ._frames import Frame
from ._recording import Recorded, Recording

__all__ = [  # noqa: F822 - another module defines ExecutionTraceObserver
    "CuspyConfig", "ExecutionTraceObserver", "PerformanceMetricsConfig", "ProfilerAction", "ProfilerActivityConfig", "profile", "schedule",
    "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """What is measured.

    CPU: instructions and kernels of the engine, and the client's calls. CUDA: what the engine's GPUs execute. The other
    members are not supported.
    """

    CPU = 0
    CUDA = 2
    XPU = 1
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a profile does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """Returns the activities that can be measured: CUDA if the engine has a GPU."""
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if _has_gpu() else {ProfilerActivity.CPU}


def _has_gpu() -> bool:
    return any(d["device"].startswith("cuda") for d in _connection.connection().engine()["devices"])


def _default_schedule_fn(_: int) -> ProfilerAction:
    """The action of every step without a schedule."""
    return ProfilerAction.RECORD


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:  # fmt: skip
    """Returns a schedule: after `skip_first` steps, cycles of `wait`, `warmup` and `active` steps.

    Args:
        wait: steps without recording.
        warmup: steps whose recording is discarded.
        active: recorded steps.
        repeat: the number of cycles; 0: until the profile ends.
        skip_first: steps before the first cycle.
        skip_first_wait: not 0: the first cycle has no `wait` steps.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments")
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        length = wait + warmup + active
        if skip_first_wait != 0:
            step += wait
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        position = step % length
        if position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if position < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False,
                              use_python_export: bool = False):  # fmt: skip
    """Returns an `on_trace_ready` that writes traces to a folder, where TensorBoard's profiler plug-in finds them.

    `use_python_export` has no effect: traces are always written by Python.
    """

    def handler(prof: profile) -> None:
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


def _check_activities(activities: Iterable[ProfilerActivity] | None) -> set[ProfilerActivity] | None:
    if activities is None:
        return None
    requested = set(activities)
    for activity in requested - {ProfilerActivity.CPU}:
        if not isinstance(activity, ProfilerActivity):
            raise TypeError(f"[profile] expected members of ProfilerActivity, got {activity!r}")
        if activity != ProfilerActivity.CUDA:
            raise NotImplementedError(f"[profile] {activity} is not measured; pass ProfilerActivity.CPU or CUDA")
        if not _has_gpu():
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=4)
    if not requested:
        raise AssertionError("No valid profiler activities found")
    return requested


class profile:  # noqa: N801 - PyTorch's name
    """Records the current session: what the client issues, and when the engine executes instructions and kernels.

    Times are those of the engine; ``client_range`` of an event is when the client issued it. The CPU time of an operator on
    a GPU is that of its launch; ``device_time_total`` is the GPU's. Only one profile can be recorded at a time.

    Args:
        activities: what to measure; by default supported_activities(). Without the CPU, only what GPUs execute is reported.
            Warns if GPU events were requested and the engine cannot record them.
        schedule: the action per step, see schedule(). By default everything until stop() is recorded.
        on_trace_ready: called with the profile when its results can be read.
        record_shapes: whether events have `input_shapes`.
        profile_memory: whether events have the growth of the session's memory.
        with_stack: whether events have the source line that issued them.
        with_flops: whether events of matrix products and convolutions have the number of their operations.
        with_modules: not supported.
        execution_trace_observer: an ExecutionTraceObserver with a file, which records while the profile does.
        acc_events: whether events of all cycles of a schedule are kept.

    Raises:
        NotImplementedError: an argument that is not supported.
    """

    def __init__(self, *, activities: Iterable[ProfilerActivity] | None = None,
                 schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[[profile], object] | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, experimental_config=None, execution_trace_observer=None,
                 acc_events: bool = False, custom_trace_id_callback=None,
                 post_processing_timeout_s: float | None = None):  # fmt: skip
        unsupported = {"with_modules": with_modules, "experimental_config": experimental_config,
                       "custom_trace_id_callback": custom_trace_id_callback,
                       "post_processing_timeout_s": post_processing_timeout_s}  # fmt: skip
        for name, value in unsupported.items():
            if value:
                raise NotImplementedError(f"[profile] {name} is not supported")
        self._activities = _check_activities(activities_of(activities))
        self._options = {"shapes": record_shapes, "memory": profile_memory, "stack": with_stack, "with_flops": with_flops}
        self._schedule = schedule if schedule is not None else lambda step: ProfilerAction.RECORD
        self.on_trace_ready, self._has_schedule, self._keeps_events = on_trace_ready, schedule is not None, acc_events
        self.step_num, self.current_action = 0, self._schedule(0)
        self.execution_trace_observer = execution_trace_observer
        self._metadata: dict[str, str] = {}
        self._recording: Recording | None = None
        self._recorded: Recorded | None = None
        self._events: EventList | None = None
        self._earlier: list = []
        self._range: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the profile at its schedule's first step."""
        self._begin_action()
        self._begin_range()

    def stop(self) -> None:
        """Ends the profile. If it was recording, waits for the engine, and calls `on_trace_ready`."""
        self._end_range()
        if self._recording is not None:
            self._save()

    def step(self) -> None:
        """Ends a step of the schedule and begins the next one."""
        self._end_range()
        before = self.current_action
        self.step_num += 1
        self.current_action = self._schedule(self.step_num)
        if self._recording is not None and (before == ProfilerAction.RECORD_AND_SAVE or not self._records()):
            self._save()
        self._begin_action()
        self._begin_range()

    def _records(self) -> bool:
        return self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def _begin_action(self) -> None:
        if self._recording is not None or not self._records():
            return
        if _active_profile.active is not None:
            raise RuntimeError("[profile] another profile is being recorded; only one is possible at a time")
        wants_devices = self._activities is None or ProfilerActivity.CUDA in self._activities
        self._recording = Recording(self._options["shapes"] or self._options["with_flops"], wants_devices and _has_gpu())
        _active_profile.active = self._recording
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.start()

    def _save(self) -> None:
        recording, self._recording, _active_profile.active = self._recording, None, None
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()
        self._recorded, self._events = recording.stop(), None
        if self._recorded.notice:
            warnings.warn(f"[profile] {self._recorded.notice}", stacklevel=3)
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)
        if self._keeps_events:
            self._earlier = list(self.events())

    def _begin_range(self) -> None:
        if self._has_schedule and self._recording is not None:
            self._range = record_function(f"ProfilerStep#{self.step_num}")
            self._range.__enter__()

    def _end_range(self) -> None:
        if self._range is not None:
            self._range.__exit__()
            self._range = None

    def events(self) -> EventList:
        """Returns the recorded events in the order of their starts.

        Raises:
            AssertionError: nothing was recorded yet.
        """
        if self._recorded is None:
            raise AssertionError("Profiler must be stopped to get events: nothing was recorded yet")
        if self._events is None:
            built = Builder(self._recorded, **self._options).build()
            if self._activities == {ProfilerActivity.CUDA}:
                built = [event for event in built if event.device_type == DeviceType.CUDA]
            self._events = EventList([*self._earlier, *built], profile_memory=self._options["memory"],
                                     with_flops=self._options["with_flops"])  # fmt: skip
        return self._events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """Returns the totals of the events by name, and by input shapes and source lines if requested."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def frames(self) -> list[Frame]:
        """Returns when each frame was sent, received, executed and answered. ``link_table()`` prints their times.

        Raises:
            AssertionError: nothing was recorded yet.
        """
        self.events()
        return self._recorded.frames

    def link_table(self) -> str:
        """Returns the times that frames spent on the wire, in the engine's queue, in it, and on the way back."""
        from ._frames import table

        return table(self.frames())

    def export_chrome_trace(self, path: str) -> None:
        """Writes the trace for Perfetto or chrome://tracing; compressed if the path ends with ".gz"."""
        from ._trace import write

        recorded = self._recorded
        events = self.events()
        memory = ((int(e["start"]) + int(e["duration"]) - recorded.start, int(e["allocated"])) for e in recorded.events)
        sizes = ((time / 1e3, size) for time, size in memory if self._options["memory"])
        write(path, events, self._metadata, sizes, recorded.frames)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes a line per source line with its time in microseconds, for flame graphs."""
        if not self._options["stack"]:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Not supported: the trace of export_chrome_trace() contains the session's memory over time."""
        raise NotImplementedError(
            "[profile] export_memory_timeline() is not supported; export_chrome_trace() writes the memory over time"
        )

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a JSON value, given as a text, to the trace."""
        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Same as add_metadata_json()."""
        self.add_metadata_json(key, value)


__getattr__, __dir__ = defined_by(globals(), "_execution_trace", "ExecutionTraceObserver")
