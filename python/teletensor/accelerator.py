"""torch.accelerator: the engine's GPUs, through functions that do not depend on the vendor. The accelerator is "cuda"
if the engine has GPUs, else the first type of devices of a device library ("mydev").
"""

from __future__ import annotations

from . import _C, cuda
from ._plugin_devices import accelerator_module

__all__ = [
    "Graph", "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count", "device_index",
    "empty_cache", "empty_host_cache", "get_device_capability", "get_memory_info", "is_available", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def _module():
    """The module of the accelerator; torch.cuda if there is none."""
    return accelerator_module() or cuda


def _type() -> str:
    return _module().__name__.rpartition(".")[2]


def device_count() -> int:
    """The number of the engine's GPUs."""
    return _module().device_count()


def is_available() -> bool:
    """Whether the engine has a GPU."""
    return accelerator_module() is not None


def current_accelerator(check_available: bool = False) -> _C.device | None:
    """Returns torch.device("cuda"), or None if the engine has no GPU."""
    return _C.device(_type()) if is_available() else None


def _index(device=None) -> int:
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if isinstance(device, (str, _C.device)):
        device = _C.device(device)
        if device.type != _C.device(_type()).type:
            raise ValueError(f"{device.type} doesn't match the current accelerator {_type()}.")
        device = device.index
    return _module().current_device() if device is None else device


def current_device_index() -> int:
    """The index of the current GPU."""
    return _index()


def set_device_index(device, /) -> None:
    """Makes a GPU the current one; a negative number has no effect."""
    number = _index(device)
    if number >= 0:
        _module().set_device(number)


current_device_idx, set_device_idx = current_device_index, set_device_index  # PyTorch's deprecated names


class device_index:
    """Makes a GPU the current one in a ``with`` block; None has no effect."""

    def __init__(self, device: int | None, /):
        self.idx, self.prev_idx = device, -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exc) -> None:
        if self.idx is not None:
            set_device_index(self.prev_idx)


def current_stream(device=None, /):
    """The current stream of a GPU."""
    return _module().current_stream(_index(device))


def set_stream(stream) -> None:
    """Makes a stream, and its GPU, the current one."""
    _module().set_stream(stream)


def synchronize(device=None, /) -> None:
    """Waits until a GPU has completed all work issued so far; raises the errors of this work."""
    _module().synchronize(_index(device))


def get_device_capability(device=None, /) -> dict:
    """The dtypes that tensors of the GPU can have, as {"supported_dtypes": set}."""
    _index(device)
    return {"supported_dtypes": {value for value in vars(_C).values() if isinstance(value, _C.dtype)}}


def empty_cache() -> None:
    """Returns the pool's free memory to the GPU's driver."""
    if is_available():
        _module().empty_cache()


def empty_host_cache() -> None:
    """Has no effect: the client pins no memory."""


def memory_stats(device_index=None, /):
    """The statistics of the pool of a GPU; empty if there is no GPU."""
    return _module().memory_stats(_index(device_index)) if is_available() else {}


def memory_allocated(device_index=None, /) -> int:
    """The bytes of the session's tensors on a GPU; 0 if there is no GPU."""
    return _module().memory_allocated(_index(device_index)) if is_available() else 0


def max_memory_allocated(device_index=None, /) -> int:
    """The largest number of bytes of the session's tensors on a GPU; 0 if there is no GPU."""
    return _module().max_memory_allocated(_index(device_index)) if is_available() else 0


def memory_reserved(device_index=None, /) -> int:
    """The bytes of the pool of a GPU; 0 if there is no GPU."""
    return _module().memory_reserved(_index(device_index)) if is_available() else 0


def max_memory_reserved(device_index=None, /) -> int:
    """The largest number of bytes of the pool of a GPU; 0 if there is no GPU."""
    return _module().max_memory_reserved(_index(device_index)) if is_available() else 0


def reset_peak_memory_stats(device_index=None, /) -> None:
    """Resets the maxima to the present values."""
    if is_available():
        _module().reset_peak_memory_stats(_index(device_index))


def reset_accumulated_memory_stats(device_index=None, /) -> None:
    """Makes the counters of ``memory_stats()``, such as ``num_ooms``, start at 0 for this process; see torch.cuda."""
    if is_available():
        _module().reset_accumulated_memory_stats(_index(device_index))


def get_memory_info(device_index=None, /) -> tuple[int, int]:
    """The free and the total bytes of a GPU."""
    return _module().mem_get_info(_index(device_index))


class Graph:
    """Operations on the current GPU that are replayed as a unit; ``with graph:`` captures those of the block. See torch.cuda.CUDAGraph.

    Args:
        keep_graph: must be False: the engine owns the graph.
        pool, capture_error_mode: as of CUDAGraph.capture_begin().

    Raises:
        RuntimeError: the engine has no GPU.
    """

    def __init__(self, keep_graph: bool = False, *, pool: tuple[int, int] | None = None, capture_error_mode: str = "default") -> None:
        if not is_available():
            raise RuntimeError("[Graph] expected an engine with a GPU, got one without")
        self._graph = cuda.CUDAGraph(keep_graph)
        self.graph_pool, self.capture_error_mode = pool, capture_error_mode

    def capture_begin(self) -> None:
        """Starts capturing: operations on the current GPU are recorded instead of executed."""
        mode = "global" if self.capture_error_mode == "default" else self.capture_error_mode
        self._graph.capture_begin(self.graph_pool, mode)

    def capture_end(self) -> None:
        """Ends the capture and waits for the engine."""
        self._graph.capture_end()

    def instantiate(self) -> None:
        """Has no effect after capture_end(): the graph can be replayed."""
        if not self._graph._captured:
            raise RuntimeError("the graph has not been captured")

    def replay(self) -> None:
        """Repeats the captured work in the same memory. Does not wait."""
        self._graph.replay()

    def reset(self) -> None:
        """Frees the graph and its memory."""
        self._graph.reset()

    def pool(self) -> tuple[int, int]:
        """The pool that was given, or a new one's identifier."""
        if self.graph_pool is None:
            self.graph_pool = cuda.graph_pool_handle()
        return self.graph_pool

    def __enter__(self) -> Graph:
        self.capture_begin()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: object) -> None:
        self.capture_end()
