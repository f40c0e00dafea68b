"""torch.cuda.cudart(), and memory of GPUs that no tensor has."""

from __future__ import annotations

import enum
import threading
from typing import Any

from .. import _C
from ._devices import device_count
from .device_index import current_device, index_of
from .memory import mem_get_info
from .streams import Stream

_lock = threading.Lock()
_allocations: dict[int, _C.Tensor] = {}  # by the number that caching_allocator_alloc() returned


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Allocates bytes of a GPU in the engine's pool, as part of this session's memory.

    Args:
        size: the number of bytes.
        device: a GPU; None: the current one.
        stream: a Stream, or the number of one. It has no effect: the engine orders the use of memory.

    Returns:
        A number for caching_allocator_delete(); 0 for no bytes. The bytes are in an engine, so it is no address of this process.

    Raises:
        TypeError: the stream is neither a Stream nor an int.
        OutOfMemoryError: the GPU or the session's limit has not enough memory. It is raised when the program next waits.
    """
    if stream is not None and not isinstance(stream, (Stream, int)):
        raise TypeError(
            "Invalid type for stream argument, must be `torch.cuda.Stream` or `int` representing a pointer to an existing stream"
        )
    if size == 0:
        return 0
    place = _C.device("cuda", current_device() if device is None else index_of(device))
    memory = _C.torch.empty(size, dtype=_C.uint8, device=place)
    number = int(memory.data_ptr())
    with _lock:
        _allocations[number] = memory
    return number


def caching_allocator_delete(mem_ptr: int) -> None:
    """Frees memory of caching_allocator_alloc(). Raises RuntimeError for a number that it did not return, or that is freed already."""
    if mem_ptr == 0:
        return
    with _lock:
        if _allocations.pop(mem_ptr, None) is None:
            raise RuntimeError(f"invalid device pointer: {mem_ptr}")


class cudaError(enum.IntEnum):  # noqa: N801 - PyTorch's name
    """Results of CUDA's functions."""

    success = 0


_INSTEAD = {
    ("cudaProfilerStart", "cudaProfilerStop"): "nsys, on teletensord",
    ("cudaStreamCreate", "cudaStreamDestroy"): "torch.cuda.Stream",
    ("cudaHostRegister", "cudaHostUnregister"): "Tensor.pin_memory()",
}


class _Runtime:
    """What torch.cuda.cudart() returns: those of CUDA's functions that have a meaning for the engine's GPUs."""

    cudaError = cudaError  # noqa: N815 - CUDA's names

    @staticmethod
    def cudaGetErrorString(error: int) -> str:  # noqa: N802
        """The text of a result."""
        return "no error" if error == 0 else f"CUDA error {int(error)}"

    @staticmethod
    def cudaMemGetInfo(device: int) -> tuple[int, int]:  # noqa: N802
        """mem_get_info() of a GPU: free and all bytes. Waits for the engine."""
        return mem_get_info(device)

    def __getattr__(self, name: str) -> Any:
        for ends, instead in _INSTEAD.items():
            if name in ends:
                raise NotImplementedError(f"torch.cuda.cudart().{name}: this process has no CUDA runtime; use {instead}")
        raise AttributeError(f"torch.cuda.cudart() has no attribute {name!r}")


_runtime = _Runtime()


def cudart() -> _Runtime:
    """An object with those of CUDA's functions that have a meaning for the engine's GPUs: cudaMemGetInfo and cudaGetErrorString.

    Raises:
        RuntimeError: the engine has no GPU.
    """
    if not device_count():
        raise RuntimeError("[cudart] expected an engine with a GPU, received one without")
    return _runtime
