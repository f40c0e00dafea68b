"""CommDebugMode: counts the collectives that the engine computes for a block of code, gradients included."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any

from .... import ops as _torch_ops
from ....nn.modules.module import Module, register_module_forward_pre_hook
from ....profiler import _active
from ....profiler._recording import Recording
from ..._world import _world
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

_KERNEL = 1  # the kind of an event


@functools.cache
def _operator(namespace: str, name: str) -> Any:
    return getattr(getattr(_torch_ops, namespace), name)


class CommDebugMode:
    """Counts the collectives of this rank within a block, by PyTorch's operators. A context manager; it waits at both ends.

    The counts are those of the engine, so they contain the collectives of gradients, of FullyShardedDataParallel and of
    DistributedDataParallel. They are known when the block has ended. Only one profile, or block, can exist at a time.
    """

    def __init__(self):
        self.comm_counts: dict[Any, int] = defaultdict(int)
        self._parameters: dict[str, dict[str, Any]] = {}
        self._recording: Recording | None = None

    def __enter__(self) -> CommDebugMode:
        if _active.active is not None or self._recording is not None:
            raise RuntimeError("[CommDebugMode] expected no profile in progress")
        self.comm_counts = defaultdict(int)
        self._parameters = {}
        self._calls_before = _calls()
        self._recording = Recording(False)
        _active.active = self._recording
        self._hook = register_module_forward_pre_hook(self._note_parameters)
        return self

    def __exit__(self, *exception: object) -> None:
        self._hook.remove()
        recording, self._recording, _active.active = self._recording, None, None
        recorded = recording.stop()
        counts: dict[str, int] = defaultdict(int)
        kernels = recorded.events[recorded.events["kind"] == _KERNEL]  # one per call, also if it was suspended
        for number in kernels["op"].tolist():
            counts[recorded.names.get(number, "")] += 1
        for name, operator in _COLLECTIVES.items():
            if counts[name]:
                self.comm_counts[_operator(*operator)] += counts[name]
        if counts[_SCATTERED]:
            known = sum(counts[name] for name in (*_COLLECTIVES, *_UNCOUNTED))
            scattered = min(counts[_SCATTERED], max(0, _calls() - self._calls_before - known))
            if scattered:
                self.comm_counts[_operator("c10d_functional", "reduce_scatter_tensor")] += scattered

    def _note_parameters(self, module: Module, inputs: Any) -> None:
        name = type(module).__name__
        for parameter, value in module.named_parameters():
            self._parameters.setdefault(name, {})[parameter] = value

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


def _calls() -> int:
    """The number of calls that the groups of this process have begun, from their flight recorders."""
    from ..._flight_recorder import own_records

    return sum((own_records(group) or [{"call": 0}])[-1]["call"] for group in _world.pg_map if group.rank() >= 0)
