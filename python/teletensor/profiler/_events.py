"""Events of a profile: built from a recording, grouped, and printed."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable

from .. import _C
from ._device import UNNAMED, Activity, DeviceType, Kernel
from ._flops import flops
from ._recording import Annotation, Recorded

_KERNEL = 1  # Profiler::Event::kKernel


def _display_name(name: str) -> str:
    return f"aten::{name}" if hasattr(_C.torch, name) or hasattr(_C.functional, name) else f"teletensor::{name}"


@dataclasses.dataclass
class Interval:
    """Microseconds since the profile's start."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        return self.end - self.start


@dataclasses.dataclass(eq=False)
class FunctionEvent:
    """An operator or a kernel in the engine, a range of record_function, or what a GPU executed. Times are microseconds.

    Attributes:
        name: ``aten::`` and the operator's name, or the range's name.
        time_range: when the engine executed it; of a range, from its first to its last operator.
        client_range: when the client issued it, or the range in the client's program; None for a kernel.
        cpu_time_total: the engine's time. An operator that waited for others, such as a collective, has the time in which
            it ran.
        cpu_memory_usage: growth of the session's memory in bytes; negative if it freed memory.
        input_shapes: sizes of the tensor arguments, with record_shapes.
        stack: the source line that issued it, with with_stack.
        fused: number of operators that ran in the same loop, whose time was divided equally among them; 1: none.
        device_type: CUDA for a kernel, a copy or a fill that a GPU executed.
        kernels: name, device and duration of what this operator launched on GPUs.
        activity: what the GPU executed; None for other events.
        launched_by: the operator that launched this event on a GPU; None for copies of transfers.
    """

    name: str
    time_range: Interval
    client_range: Interval | None = None
    cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0
    input_shapes: list[list[int]] = dataclasses.field(default_factory=list)
    stack: list[str] = dataclasses.field(default_factory=list)
    flops: int = 0
    fused: int = 1
    thread: int = 0
    id: int = 0
    is_user_annotation: bool = False
    cpu_parent: FunctionEvent | None = None
    cpu_children: list[FunctionEvent] = dataclasses.field(default_factory=list)
    count: int = 1
    device_type: DeviceType = DeviceType.CPU
    device_index: int = 0
    kernels: list[Kernel] = dataclasses.field(default_factory=list)
    activity: Activity | None = None
    launched_by: FunctionEvent | None = None

    key = property(lambda self: self.name)
    cpu_time = property(lambda self: self.cpu_time_total)
    client_time = property(lambda self: self.client_range.elapsed_us() if self.client_range else 0.0)
    device_time = cuda_time = property(lambda self: self.device_time_total)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)

    @property
    def device_time_total(self) -> float:
        """The GPU's time for what was launched by this operator, and by the operators and kernels in it."""
        if self.device_type == DeviceType.CUDA:
            return self.time_range.elapsed_us()
        return self.self_device_time_total + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        """The GPU's time, excluding the operators and kernels in it."""
        if self.device_type == DeviceType.CUDA:
            return self.time_range.elapsed_us()
        return sum(kernel.duration for kernel in self.kernels)

    @property
    def self_cpu_time_total(self) -> float:
        """The time, excluding the operators and kernels in it."""
        return max(0.0, self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children))

    @property
    def self_cpu_memory_usage(self) -> int:
        """The memory, excluding the operators and kernels in it."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds an operator or a kernel that ran in this one."""
        self.cpu_children.append(child)
        child.cpu_parent = self

    def __repr__(self) -> str:
        return f"<FunctionEvent name={self.name} cpu_time={self.cpu_time_total:.3f}us thread={self.thread}>"


class Builder:
    """Builds events from a recording."""

    def __init__(self, recorded: Recorded, shapes: bool, memory: bool, stack: bool, with_flops: bool):
        self._recorded, self._shapes, self._memory = recorded, shapes, memory
        self._stack, self._flops, self._allocated = stack, with_flops, None
        self._by_position: dict[int, FunctionEvent] = {}  # of the engine's events

    def build(self) -> list[FunctionEvent]:
        """Returns all events in the order of their starts; those that contain others come first."""
        operators = self._operators()
        events = self._annotations(operators) + operators + [k for o in operators for k in _descendants(o)]
        events += self._device_events()
        events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
        for number, event in enumerate(events):
            event.id = number
        return events

    def _microseconds(self, time: int) -> float:
        return (int(time) - self._recorded.start) / 1e3

    def _interval(self, event) -> Interval:
        start = self._microseconds(event["start"])
        return Interval(start, start + int(event["duration"]) / 1e3)

    def _growth(self, event) -> int:
        before, self._allocated = self._allocated, int(event["allocated"])
        return 0 if before is None or not self._memory else self._allocated - before

    def _kernel(self, event) -> FunctionEvent:
        name, range_ = self._recorded.names[int(event["op"])], self._interval(event)
        made = FunctionEvent(_display_name(name), range_, cpu_time_total=range_.elapsed_us(), fused=int(event["merged"]) + 1,
                             cpu_memory_usage=self._growth(event), stack=self._line(int(event["site"])))  # fmt: skip
        if event["shapes"]:
            inputs, outputs = self._recorded.sizes(int(event["shapes"]))
            if self._shapes:
                made.input_shapes = inputs
            if self._flops:
                made.flops = flops(name, inputs, outputs)
        return made

    def _line(self, site: int) -> list[str]:
        line = self._recorded.sites.get(site, "") if self._stack else ""
        return [line] if line else []

    def _operators(self) -> list[FunctionEvent]:
        """One event per instruction. The kernels that ran in it are its children, except its own."""
        operators: dict[int, list[FunctionEvent]] = {}
        open_kernels: list[tuple[int, FunctionEvent]] = []  # by depth, until the enclosing operator ends
        for position, event in enumerate(self._recorded.events):
            if event["kind"] == _KERNEL:
                made, depth = self._kernel(event), int(event["depth"])
                made.id, self._by_position[position] = position, made
                while open_kernels and open_kernels[-1][0] == depth + 1:
                    child = open_kernels.pop()[1]
                    made.append_cpu_child(child)
                    made.cpu_memory_usage += child.cpu_memory_usage
                made.cpu_children.reverse()
                open_kernels.append((depth, made))
                continue
            parts = self._instruction(event, [kernel for _, kernel in open_kernels])
            open_kernels = []
            number = int(event["instruction"])
            if number in operators:
                _resume(operators[number], parts)
                self._replace(parts[0], operators[number][0])
            else:
                operators[number] = parts
            self._by_position[position] = operators[number][0]
        return [part for parts in operators.values() for part in parts]

    def _instruction(self, event, kernels: list[FunctionEvent]) -> list[FunctionEvent]:
        growth, number, merged = self._growth(event), int(event["instruction"]), int(event["merged"])
        calls = self._recorded.calls[number : number + merged + 1]
        if merged and len(kernels) == merged + 1 == len(calls):
            for kernel, call in zip(kernels, calls, strict=True):
                self._issued(kernel, call)
            return kernels
        name, range_ = _display_name(self._recorded.names[int(event["op"])]), self._interval(event)
        growth += sum(kernel.cpu_memory_usage for kernel in kernels)
        made = FunctionEvent(name, range_, cpu_time_total=range_.elapsed_us(), cpu_memory_usage=growth, fused=merged + 1)
        made.stack = self._line(int(event["site"]))
        if len(kernels) == 1 and kernels[0].name == name:  # the operator has a kernel of its own
            only = kernels.pop()
            made.input_shapes, made.flops = only.input_shapes, only.flops
            self._by_position[only.id], made.id = made, only.id
            kernels = only.cpu_children
        for kernel in kernels:
            made.append_cpu_child(kernel)
        if len(calls):
            self._issued(made, calls[0])
        return [made]

    def _issued(self, event: FunctionEvent, call) -> None:
        event.client_range, event.thread = self._interval(call), int(call["thread"])
        event.stack = self._line(int(call["site"]))

    def _replace(self, part: FunctionEvent, whole: FunctionEvent) -> None:
        if self._by_position.get(part.id) is part:
            self._by_position[part.id] = whole

    def _device_events(self) -> list[FunctionEvent]:
        """What GPUs executed. Operators that were fused into a kernel have an equal part of its time."""
        made = []
        for activity in self._recorded.activities:
            launcher = None if activity.launch is None else self._by_position.get(activity.launch)
            name = f"{launcher.name} (GPU)" if activity.name == UNNAMED and launcher else activity.name
            event = FunctionEvent(name, Interval(activity.start, activity.end), device_type=DeviceType.CUDA,
                                  device_index=activity.device, activity=activity, launched_by=launcher)  # fmt: skip
            made.append(event)
            if launcher is None:
                continue
            positions = range(activity.launch, activity.launch + launcher.fused)
            fused = [e for e in (self._by_position.get(p) for p in positions) if e is not None and e.fused == launcher.fused]
            for part in fused if len(fused) == launcher.fused else [launcher]:
                share = event.time_range.elapsed_us() / (launcher.fused if len(fused) == launcher.fused else 1)
                part.kernels.append(Kernel(name, activity.device, share))
        return made

    def _annotations(self, operators: list[FunctionEvent]) -> list[FunctionEvent]:
        """Ranges contain the operators that their thread issued in them, including those in inner ranges."""
        made = [(annotation, self._range(annotation)) for annotation in self._recorded.annotations]
        for position, (annotation, event) in enumerate(made):
            for outer, parent in reversed(made[:position]):
                if outer.thread == annotation.thread and outer.end >= annotation.end:
                    parent.append_cpu_child(event)
                    break
        for operator in operators:
            issued = operator.client_range
            for _, event in reversed(made) if issued else ():
                range_ = event.client_range
                if event.thread == operator.thread and range_.start <= issued.start and issued.end <= range_.end:
                    event.append_cpu_child(operator)
                    break
        for _, event in reversed(made):
            if event.cpu_children:
                children = event.cpu_children
                event.time_range = Interval(min(c.time_range.start for c in children), max(c.time_range.end for c in children))
                event.cpu_time_total = event.time_range.elapsed_us()
                event.cpu_memory_usage = sum(c.cpu_memory_usage for c in children)
        return [event for _, event in made]

    def _range(self, annotation: Annotation) -> FunctionEvent:
        start = self._microseconds(annotation.start)
        return FunctionEvent(annotation.name, Interval(start, start), Interval(start, self._microseconds(annotation.end)),
                             thread=annotation.thread, is_user_annotation=True)  # fmt: skip


def _descendants(event: FunctionEvent) -> Iterable[FunctionEvent]:
    for child in event.cpu_children:
        yield child
        yield from _descendants(child)


def _resume(earlier: list[FunctionEvent], parts: list[FunctionEvent]) -> None:
    """Adds the parts of an instruction that was suspended to its earlier parts."""
    whole, part = earlier[0], parts[0]
    whole.time_range.end = part.time_range.end
    whole.cpu_time_total += part.cpu_time_total
    whole.cpu_memory_usage += part.cpu_memory_usage
    whole.input_shapes = whole.input_shapes or part.input_shapes
    for child in part.cpu_children:
        whole.append_cpu_child(child)


@dataclasses.dataclass
class FunctionEventAvg:
    """Totals of the events with the same key. Times are microseconds; `cpu_time` is the mean."""

    key: str
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    client_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    flops: int = 0
    input_shapes: list[list[int]] | None = None
    stack: list[str] = dataclasses.field(default_factory=list)
    is_user_annotation: bool = False
    device_type: DeviceType = DeviceType.CPU
    device_time_total: float = 0.0
    self_device_time_total: float = 0.0

    cpu_time = property(lambda self: self.cpu_time_total / self.count if self.count else 0.0)
    device_time = cuda_time = property(lambda self: self.device_time_total / self.count if self.count else 0.0)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)

    def add(self, event: FunctionEvent) -> FunctionEventAvg:
        """Adds an event with the same key."""
        self.count += 1
        # A range or an operator within one of the same name is part of its total.
        if not _is_within(event):
            self.cpu_time_total += event.cpu_time_total
            self.cpu_memory_usage += event.cpu_memory_usage
            self.device_time_total += event.device_time_total
        self.self_device_time_total += event.self_device_time_total
        self.device_type = event.device_type
        self.self_cpu_time_total += event.self_cpu_time_total
        self.client_time_total += event.client_time
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.flops += event.flops
        self.is_user_annotation = event.is_user_annotation
        return self


def _is_within(event: FunctionEvent) -> bool:
    parent = event.cpu_parent
    while parent is not None:
        if parent.name == event.name:
            return True
        parent = parent.cpu_parent
    return False


class EventList(list):
    """Events of a profile, or their totals (key_averages)."""

    def __init__(self, events: Iterable = (), *, profile_memory: bool = False, with_flops: bool = False):
        super().__init__(events)
        self._profile_memory, self._with_flops = profile_memory, with_flops

    @property
    def self_cpu_time_total(self) -> float:
        """The engine's total time in all events, in microseconds."""
        return sum(event.self_cpu_time_total for event in self if not event.is_user_annotation)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """Returns the totals per name and, if requested, per input shapes and per innermost lines of the stack."""
        if group_by_overload_name:
            raise NotImplementedError("[key_averages] events have no names of overloads")
        groups: dict[tuple, FunctionEventAvg] = collections.OrderedDict()
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            lines = tuple(event.stack[:group_by_stack_n])
            group = groups.setdefault(
                (event.name, event.is_user_annotation, event.device_type, shapes, lines), FunctionEventAvg(event.name)
            )
            if group_by_input_shapes:
                group.input_shapes = event.input_shapes
            group.stack = list(lines)
            group.add(event)
        return EventList(groups.values(), profile_memory=self._profile_memory, with_flops=self._with_flops)

    def total_average(self) -> FunctionEventAvg:
        """Returns the totals of all events of the engine."""
        total = FunctionEventAvg("Total")
        for event in self:
            is_top = not isinstance(event, FunctionEvent) or event.cpu_parent is None
            if is_top and not event.is_user_annotation and event.device_type == DeviceType.CPU:
                total.count += event.count
                total.cpu_time_total += event.cpu_time_total
                total.flops += event.flops
            if not event.is_user_annotation:
                total.self_cpu_time_total += event.self_cpu_time_total
            if event.device_type == DeviceType.CUDA:
                total.device_time_total += event.device_time_total
                total.self_device_time_total += event.self_device_time_total
        return total

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
              max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
              top_level_events_only: bool = False, time_unit: str | None = None) -> str:  # fmt: skip
        """Returns the events as a table.

        Args:
            sort_by: a column, such as "self_cpu_time_total", "cuda_time_total", "count" or "client_time_total".
            row_limit: the maximum number of rows.
            time_unit: "s", "ms" or "us"; by default chosen per number.
        """
        from ._table import table

        return table(self, sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width,
                     header, top_level_events_only, time_unit, self._profile_memory, self._with_flops)  # fmt: skip

    def __str__(self) -> str:
        return self.table()

    supported_export_stacks_metrics = staticmethod(lambda: ["self_cpu_time_total", "self_cuda_time_total"])

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events in Chrome's trace event format."""
        from ._trace import write

        write(path, self, {})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes a line per source line with its time in microseconds, for flame graphs. Requires with_stack."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        totals: collections.Counter[str] = collections.Counter()
        for event in self:
            for line in event.stack[:1]:
                totals[f"{line};{event.name}".replace(" ", "_")] += int(getattr(event, metric))
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{stack} {time}\n" for stack, time in totals.items() if time > 0)
