"""Events of a profile, and their totals."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable

from ._device import Activity, DeviceType, Kernel


@dataclasses.dataclass
class Interval:
    """Microseconds since the profile's start."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        return self.end - self.start


@dataclasses.dataclass(eq=False)
class FunctionEvent:
    """What the engine or a GPU executed, or a range of the program. Times are microseconds.

    An event of the engine is an operator, a kernel in it, or a node of a backward pass. A range is that of record_function, or
    a function that the program called and that is composed of several operators here.

    Attributes:
        name: ``aten::`` and the operator's name, the node's name, or the range's name.
        time_range: when the engine executed it; of a range, from its first to its last operator.
        client_range: when the client issued it, or the range in the client's program; None for a kernel or node.
        cpu_time_total: the engine's time. An operator that waited for others, such as a collective, has the time in which
            it ran. A function has the sum of its operators' times.
        cpu_memory_usage: growth of the session's memory in bytes; negative if it freed memory.
        input_shapes: sizes of the tensor arguments, with record_shapes.
        stack: the source line that issued it, with with_stack.
        fused: number of operators that ran in the same loop, whose time was divided equally among them; 1: none.
        device_type: CUDA for a kernel, a copy or a fill that a GPU executed.
        kernels: name, device and duration of what this operator launched on GPUs.
        activity: what the GPU executed; None for other events.
        launched_by: the operator that launched this event on a GPU; None for copies of transfers.
        is_user_annotation: whether it is a range of record_function.
        is_range: whether it is a range of the program.
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
    is_range: bool = False
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
            if not event.is_user_annotation:
                total.flops += event.flops
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
        totals: collections.defaultdict[str, float] = collections.defaultdict(float)
        for event in self:
            for line in event.stack[:1]:
                totals[f"{line};{event.name}".replace(" ", "_")] += getattr(event, metric)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{stack} {int(time)}\n" for stack, time in totals.items() if time >= 1)
