"""CommDebugMode: counts the collectives that the engine computes for a block of code, gradients included."""

from __future__ import annotations

import functools
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .... import _active_profile
from .... import ops as _torch_ops
from ....nn.modules.module import Module
from ....profiler._modules import RunningModules, computes_gradients
from ....profiler._recording import Recorded, Recording
from ..._world import _world
from .. import _observer
from .._dtensor import DTensor

# PyTorch's operator by the engine's: (namespace, name). Operators that move no bytes, or only wait, are absent.
_COLLECTIVES = {
    "group_all_reduce": ("c10d", "allreduce_"),
    "group_reduce": ("c10d", "reduce_"),
    "group_broadcast": ("c10d", "broadcast_"),
    "group_all_gather": ("c10d", "allgather_"),
    "group_gather": ("c10d", "gather_"),
    "group_scatter": ("c10d", "scatter_"),
    "group_reduce_scatter": ("c10d", "reduce_scatter_"),
    "group_all_to_all": ("c10d", "alltoall_"),
    "group_reduced": ("c10d_functional", "all_reduce"),
    "group_gathered": ("c10d_functional", "all_gather_into_tensor"),
    "group_exchanged": ("c10d_functional", "all_to_all_single"),
}
_SCATTERED = "group_scattered"  # a reduce_scatter, or without sums the rank's part, which moves no bytes
_UNCOUNTED = ("group_barrier", "group_send", "group_receive")  # calls of a group that PyTorch's mode does not count
_TRIVIAL = {"as_strided", "detach", "reshape", "t", "to_device", "to_dtype", "transpose", "view"}  # left out below noise level 3

_KERNEL = 1  # the kind of an event
_GLOBAL = "Global"  # the name of the whole block


@functools.cache
def _operator(namespace: str, name: str) -> Any:
    return getattr(getattr(_torch_ops, namespace), name)


def _shown(operation: dict[str, Any], noise_level: int) -> bool:
    """Whether an operation appears: those of DTensors at level 1, all that are not trivial at 2, all at 3."""
    if operation["name"].removeprefix("aten.") in _TRIVIAL:
        return noise_level > 2
    return noise_level > (0 if operation["input_shape"] else 1)


class CommDebugMode:
    """Counts the collectives of this rank within a block, by PyTorch's operators. A context manager; it waits at both ends.

    The counts are those of the engine, so they contain the collectives of gradients, of FullyShardedDataParallel and of
    DistributedDataParallel. They are known when the block has ended. In a backward pass, a module runs from the gradients of
    its results to those of its arguments, as in PyTorch. Only one profile, or block, can exist at a time.

    Attributes:
        comm_counts: the counts by operator.
        comm_module_counts: the counts by module, "forward" or "backward", and operator. Modules contain their submodules.
        comm_module_operation_counts: the operations by module, those of submodules not included.
    """

    def __init__(self) -> None:
        self._recording: Recording | None = None
        self._clear()

    def _clear(self) -> None:
        self.comm_counts: dict[Any, int] = defaultdict(int)
        self.comm_module_counts: dict[str, dict[str, dict[Any, int]]] = {}
        self.comm_module_operation_counts: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self._described: dict[str, dict[str, Any]] = {_GLOBAL: {"depth": 0}}
        self._children: dict[str, list[str]] = defaultdict(list)
        self._parameters: dict[str, dict[str, Any]] = {}
        self._calls: list[tuple[int, dict[str, Any]]] = []  # of operators with DTensors, by time
        self._divided: list[bool] = []  # of the calls of group_scattered: whether they sum
        self._modules = RunningModules(self._describe, gradients=True)

    def __enter__(self) -> CommDebugMode:
        if _active_profile.active is not None or self._recording is not None:
            raise RuntimeError("[CommDebugMode] expected no profile in progress")
        self._clear()
        self._calls_before = _calls()
        self._recording = Recording(False)
        _active_profile.active = self._recording
        _observer.called, _observer.divided = self._note_call, self._divided.append
        self._modules.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._modules.stop()
        _observer.called = _observer.divided = None
        recording, self._recording, _active_profile.active = self._recording, None, None
        self._count(recording.stop())

    def _note_call(self, name: str, arguments: list[Any]) -> None:
        tensors = [t for value in arguments for t in (value if isinstance(value, list) else [value]) if isinstance(t, DTensor)]
        operation = _operation(f"aten.{name}", False)
        operation["input_shape"] = [t.shape for t in tensors]
        operation["input_sharding"] = [t.placements for t in tensors]
        operation["device_mesh"] = str(tensors[0].device_mesh) if tensors else ""
        self._calls.append((time.perf_counter_ns(), operation))

    def _describe(self, name: str, module: Module, around: list[str]) -> None:
        """Notes the class and the parameters of a module that starts to run."""
        described = self._described.setdefault(name, {})
        described["module_type"] = str(type(module)).strip("<>")
        described["depth"] = len(around) + 1
        for parameter, value in module.named_parameters(recurse=False):
            self._parameters.setdefault(name, {})[parameter] = value.data
            if isinstance(value.data, DTensor):
                described.setdefault("parameters", {})[parameter] = str(value.data.placements)
        self._children[around[-1] if around else _GLOBAL].append(name)

    def _count(self, recorded: Recorded) -> None:
        kernels = recorded.events[recorded.events["kind"] == _KERNEL]  # one per call, also if it was suspended
        names = [recorded.names.get(number, "") for number in kernels["op"].tolist()]
        known = sum(name in _COLLECTIVES or name in _UNCOUNTED for name in names)
        sums = _calls() - self._calls_before - known  # of group_scattered, which is no call of a group otherwise
        divided, gradients = iter(self._divided), sums - sum(self._divided)
        found = list(self._calls)
        for name, instruction in zip(names, kernels["instruction"].tolist(), strict=True):
            issued = recorded.issued(instruction)
            is_backward = computes_gradients(recorded, instruction)
            operator = _operator(*_COLLECTIVES[name]) if name in _COLLECTIVES else None
            if name == _SCATTERED:
                gradients -= is_backward
                if gradients >= 0 if is_backward else next(divided, False):
                    operator = _operator("c10d_functional", "reduce_scatter_tensor")
            if operator is not None:
                self._add(operator, "backward" if is_backward else "forward", self._modules.at(issued))
            found.append((issued, _operation(f"aten.{name}" if operator is None else str(operator), is_backward)))
        for moment, operation in sorted(found, key=lambda timed: timed[0]):
            module = max([_GLOBAL, *self._modules.at(moment)], key=self._depth)
            self.comm_module_operation_counts.setdefault(module, {"operations_list": []})["operations_list"].append(operation)

    def _depth(self, module: str) -> int:
        return self._described[module]["depth"]

    def _add(self, operator: Any, direction: str, running: list[str]) -> None:
        self.comm_counts[operator] += 1
        for module in {_GLOBAL: None, **dict.fromkeys(running)}:
            counts = self.comm_module_counts.setdefault(module, {"forward": defaultdict(int), "backward": defaultdict(int)})
            counts[direction][operator] += 1

    def _passes(self, module: str) -> Iterator[tuple[str, dict[Any, int], list[dict[str, Any]]]]:
        """The collectives and operations of a module's passes."""
        counts = self.comm_module_counts.get(module, {})
        operations = self.comm_module_operation_counts.get(module, {"operations_list": []})["operations_list"]
        for direction in ("forward", "backward"):
            yield direction, counts.get(direction, {}), [op for op in operations if op["is_bw"] == (direction == "backward")]

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """A table of the collectives by module: with operations on DTensors, classes and placements at noise level 1, with all
        operations but views and casts at 2, and with these at 3.
        """
        lines = []
        for name, described in self._described.items():
            indent = "    " * described["depth"]
            lines.append(f"{indent}{name}")
            if noise_level > 0 and "module_type" in described:
                lines.append(f"{indent}*module type: {described['module_type']}")
                if "parameters" in described:
                    lines.append(f"{indent}*Parameter List")
                    lines += [f"{indent} *{parameter}: {placements}" for parameter, placements in described["parameters"].items()]
            for direction, counts, operations in self._passes(name):
                if counts or (operations and noise_level > 0):
                    lines.append(f"{indent}  {direction.upper()} PASS")
                lines += [f"\033[1;33m{indent}    *{operator}: {count}\033[0m" for operator, count in counts.items()]
                for operation in (op for op in operations if _shown(op, noise_level)):
                    lines.append(f"\033[1;33m{indent}    **{operation['name']}\033[0m")
                    if operation["input_shape"]:
                        lines.append(f"\033[1;31m{indent}      shape: {operation['input_shape']}\033[0m")
                        lines.append(f"\033[1;31m{indent}      sharding: {operation['input_sharding']}\033[0m")
                        lines.append(f"\033[1;31m{indent}      device mesh: {operation['device_mesh']}\033[0m")
        return "".join(f"{line}\n" for line in lines)

    def log_comm_debug_tracing_table_to_file(self, file_name: str = "comm_mode_log.txt", noise_level: int = 3) -> None:
        """Writes the table to a file, without colours."""
        with open(file_name, "w") as file:
            file.write(re.sub(r"\033\[[0-9;]*m", "", self.generate_comm_debug_tracing_table(noise_level)))

    def generate_json_dump(self, file_name: str = "comm_mode_log.json", noise_level: int = 3) -> None:
        """Writes what the table shows to a file, as a tree of modules."""
        with open(file_name, "w") as file:
            json.dump(self._tree(_GLOBAL, noise_level), file, indent=4)

    def _tree(self, name: str, noise_level: int) -> dict[str, Any]:
        described = self._described[name] if noise_level > 0 else {}
        tree: dict[str, Any] = {
            "fqn": name, "module_type": described.get("module_type", ""), "parameters": list(described.get("parameters", {}).items()),
            "children": [self._tree(child, noise_level) for child in self._children.get(name, ())],
        }  # fmt: skip
        for direction, counts, operations in self._passes(name):
            tree[f"collectives_{direction}"] = [(str(operator), count) for operator, count in counts.items()]
            tree[f"operations_{direction}"] = [
                {**op, "input_shape": [*map(str, op["input_shape"])], "input_sharding": [*map(str, op["input_sharding"])]}
                for op in operations
                if _shown(op, noise_level)
            ]
        return {**tree, "operations_checkpointing": []}

    def get_comm_counts(self) -> dict[Any, int]:
        """The counts by operator, such as ``torch.ops.c10d_functional.all_reduce``."""
        return self.comm_counts

    def get_total_counts(self) -> int:
        """The number of collectives."""
        return sum(self.comm_counts.values())

    def get_parameter_info(self) -> dict[str, dict[str, Any]]:
        """The parameters by module that ran in the block."""
        return self._parameters

    def get_sharding_info(self) -> dict[str, Any]:
        """The placements of the parameters that are DTensors, by name."""
        return {
            f"{module}.{name}": value.placements
            for module, parameters in self._parameters.items()
            for name, value in parameters.items()
            if isinstance(value, DTensor)
        }

    def print_paramater_info(self) -> None:  # PyTorch's spelling
        print(self.get_parameter_info())

    def print_sharding_info(self) -> None:
        for name, placements in self.get_sharding_info().items():
            print(f"{name}: {placements}")

    def __repr__(self) -> str:
        return f"CommDebugMode(get_total_counts()={self.get_total_counts()})"


def _operation(name: str, is_backward: bool) -> dict[str, Any]:
    return {
        "name": name, "input_shape": [], "input_sharding": [], "device_mesh": "", "is_bw": is_backward,
        "is_activation_checkpointing": False,
    }  # fmt: skip


def _calls() -> int:
    """The number of calls that the groups of this process have begun, from their flight recorders."""
    from ..._flight_recorder import own_records

    return sum((own_records(group) or [{"call": 0}])[-1]["call"] for group in _world.pg_map if group.rank() >= 0)
