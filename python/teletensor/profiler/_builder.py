"""Builds the events of a profile from a recording."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ._device import UNNAMED, DeviceType, Kernel
from ._events import FunctionEvent, Interval
from ._flops import flops
from ._names import evaluation_name, function_name, in_place_name, kernel_name, node_name, operator_name
from ._recording import Annotation, Recorded

_INSTRUCTION, _KERNEL, _NODE, _EVALUATION = range(4)  # Profiler::Event::Kind
_IN_PLACE = 0x100


class Builder:
    """Builds events from a recording."""

    def __init__(self, recorded: Recorded, shapes: bool, memory: bool, stack: bool, with_flops: bool):
        self._recorded, self._shapes, self._memory = recorded, shapes, memory
        self._stack, self._flops, self._allocated = stack, with_flops, None
        self._by_position: dict[int, FunctionEvent] = {}  # of the engine's events

    def build(self) -> list[FunctionEvent]:
        """Returns all events in the order of their starts; those that contain others come first."""
        operators = self._operators()
        events = self._ranges(operators) + operators + [k for o in operators for k in _descendants(o)]
        events += self._device_events()
        events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
        for number, event in enumerate(events):
            event.id = number
        return events

    def _microseconds(self, time: int) -> float:
        return (int(time) - self._recorded.start) / 1e3

    def _interval(self, event: np.void) -> Interval:
        start = self._microseconds(event["start"])
        return Interval(start, start + int(event["duration"]) / 1e3)

    def _growth(self, event: np.void) -> int:
        before, self._allocated = self._allocated, int(event["allocated"])
        return 0 if before is None or not self._memory else self._allocated - before

    def _part(self, event: np.void) -> FunctionEvent:
        """A kernel or a node."""
        range_ = self._interval(event)
        made = FunctionEvent("", range_, cpu_time_total=range_.elapsed_us(), fused=int(event["merged"]) + 1,
                             cpu_memory_usage=self._growth(event), stack=self._line(int(event["site"])))  # fmt: skip
        if event["kind"] in (_NODE, _EVALUATION):
            name = node_name if event["kind"] == _NODE else evaluation_name
            made.name = name(self._recorded.nodes[int(event["op"])])
            return made
        operator = self._recorded.names[int(event["op"])]
        shapes = int(event["shapes"])
        made.name = operator_name(operator) if made.fused > 1 else kernel_name(operator, self._recorded.ranks(shapes))
        if event["kind"] & _IN_PLACE:
            made.name = in_place_name(made.name)
        inputs, outputs = self._recorded.sizes(shapes)
        if self._shapes:
            made.input_shapes = inputs
        if self._flops:
            made.flops = flops(operator, inputs, outputs)
        return made

    def _line(self, site: int) -> list[str]:
        line = self._recorded.sites.get(site, "") if self._stack else ""
        return [line] if line else []

    def _operators(self) -> list[FunctionEvent]:
        """One event per instruction. The kernels and nodes that ran in it are its children."""
        operators: dict[int, list[FunctionEvent]] = {}
        open_parts: list[tuple[int, int, FunctionEvent]] = []  # depth and position, until the enclosing operator ends
        for position, event in enumerate(self._recorded.events):
            if event["kind"] != _INSTRUCTION:
                made, depth = self._part(event), int(event["depth"])
                made.id, self._by_position[position] = position, made
                while open_parts and open_parts[-1][0] > depth:
                    child = open_parts.pop()[2]
                    made.append_cpu_child(child)
                    made.cpu_memory_usage += child.cpu_memory_usage
                made.cpu_children.reverse()
                open_parts.append((depth, position, made))
                continue
            own = [at for _, at, _ in open_parts if self._recorded.events[at]["kind"] in (_KERNEL, _KERNEL | _IN_PLACE)]
            parts = self._instruction(event, [part for _, _, part in open_parts], len(own) == len(open_parts) == 1)
            open_parts = []
            number = int(event["instruction"])
            if number in operators:
                _resume(operators[number], parts)
                self._replace(parts[0], operators[number][0])
            else:
                operators[number] = parts
            self._by_position[position] = operators[number][0]
        return [part for parts in operators.values() for part in parts]

    def _instruction(self, event: np.void, parts: list[FunctionEvent], is_kernel: bool) -> list[FunctionEvent]:
        """The events of an instruction with these kernels and nodes. `is_kernel`: there is one, and it is a kernel."""
        growth, number, merged = self._growth(event), int(event["instruction"]), int(event["merged"])
        calls = self._recorded.calls[number : number + merged + 1]
        if merged and len(parts) == merged + 1 == len(calls):
            for part, call in zip(parts, calls, strict=True):
                self._issued(part, call)
            return parts
        name, range_ = operator_name(self._recorded.names[int(event["op"])]), self._interval(event)
        growth += sum(part.cpu_memory_usage for part in parts)
        made = FunctionEvent(name, range_, cpu_time_total=range_.elapsed_us(), cpu_memory_usage=growth, fused=merged + 1)
        made.stack = self._line(int(event["site"]))
        if is_kernel:
            made.input_shapes = parts[0].input_shapes
        if is_kernel and parts[0].name in (name, in_place_name(name)):
            made.name = parts[0].name
            only = parts.pop()
            made.flops, self._by_position[only.id], made.id = only.flops, made, only.id
            parts = only.cpu_children
        for part in parts:
            made.append_cpu_child(part)
        if len(calls):
            self._issued(made, calls[0])
        return [made]

    def _issued(self, event: FunctionEvent, call: np.void) -> None:
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

    def _ranges(self, operators: list[FunctionEvent]) -> list[FunctionEvent]:
        """Ranges of the program, with the operators that their thread issued in them, including those in inner ranges."""
        ranges = [self._range(annotation) for annotation in self._recorded.annotations] + self._functions()
        ranges.sort(key=_issue_order)
        open_: list[FunctionEvent] = []
        for event in sorted([*ranges, *(o for o in operators if o.client_range)], key=_issue_order):
            while open_ and not _contains(open_[-1], event):
                open_.pop()
            if open_:
                open_[-1].append_cpu_child(event)
            if event.is_range:
                open_.append(event)
        return [event for event in reversed(ranges) if _finish(event)]

    def _range(self, annotation: Annotation) -> FunctionEvent:
        return self._made(annotation.name, annotation.start, annotation.end, annotation.thread, not annotation.is_operator)

    def _functions(self) -> list[FunctionEvent]:
        """The functions that the program called and that are operators in PyTorch."""
        calls, names = self._recorded.functions, [function_name(name) for name in self._recorded.function_names]
        return [
            self._made(name, call["start"], call["end"], int(call["thread"]), False)
            for call in calls if (name := names[int(call["name"])]) is not None and call["start"] >= self._recorded.start
        ]  # fmt: skip

    def _made(self, name: str, start: int, end: int, thread: int, is_user_annotation: bool) -> FunctionEvent:
        at = self._microseconds(start)
        return FunctionEvent(name, Interval(at, at), Interval(at, self._microseconds(end)), thread=thread, is_range=True,
                             is_user_annotation=is_user_annotation)  # fmt: skip


def _issue_order(event: FunctionEvent) -> tuple[int, float, float]:
    return event.thread, event.client_range.start, -event.client_range.end


def _contains(range_: FunctionEvent, event: FunctionEvent) -> bool:
    return range_.thread == event.thread and event.client_range.end <= range_.client_range.end


def _finish(range_: FunctionEvent) -> bool:
    """Sets a range's times, whose inner ranges are finished. Returns False if an operator or an outer range replaces it."""
    children, parent = range_.cpu_children, range_.cpu_parent
    if not range_.is_user_annotation:
        if parent is not None and parent.name == range_.name:  # a function that calls the binding of the same name
            _substitute(range_, children)
            return False
        if len(children) == 1 and not children[0].is_range and children[0].name.rstrip("_") == range_.name.rstrip("_"):
            children[0].name = range_.name  # add_ is the operator add in place
            _substitute(range_, children)
            return False
    if children:
        range_.time_range = Interval(min(c.time_range.start for c in children), max(c.time_range.end for c in children))
        total = sum(c.cpu_time_total for c in children)
        range_.cpu_time_total = range_.time_range.elapsed_us() if range_.is_user_annotation else total
        range_.cpu_memory_usage = sum(c.cpu_memory_usage for c in children)
        range_.stack = [] if range_.is_user_annotation else children[0].stack
    return True


def _substitute(range_: FunctionEvent, events: list[FunctionEvent]) -> None:
    """Puts events in a range's place."""
    parent = range_.cpu_parent
    for event in events:
        event.cpu_parent = parent
    if parent is not None:
        at = parent.cpu_children.index(range_)
        parent.cpu_children[at : at + 1] = events


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
