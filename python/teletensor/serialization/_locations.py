"""Where storages are created: location tags in files, map_location, and register_package."""

from __future__ import annotations

from typing import Callable

from .. import _C
from .._storage import UntypedStorage
from ._errors import as_caller_errors

_registry: list[tuple[int, Callable, Callable]] = []


def register_package(priority: int, tagger: Callable, deserializer: Callable) -> None:
    """Adds location tags.

    Args:
        priority: the order; lower numbers are called first. The built-in ones have 10 to 22.
        tagger: called with a storage that is saved; returns its location tag, or None.
        deserializer: called with a loaded storage on the CPU and a location tag; returns the storage to use instead, or
        None.
    """
    _registry.append((priority, tagger, deserializer))
    _registry.sort(key=lambda entry: entry[0])


def _cuda_index(location: str) -> int:
    text = location.removeprefix("cuda").removeprefix(":")
    if not location.startswith("cuda") or (text and not text.isdecimal()):
        raise ValueError(f"Expected a cuda device, but got: {location}")
    from .. import cuda

    return int(text[:9]) if text else cuda.current_device()


def validate_cuda_device(location) -> int:
    """The index of a GPU from its location tag.

    Raises:
        RuntimeError: the engine does not have it.
    """
    from .. import cuda

    if not cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only "
            "machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    index = _cuda_index(str(location))
    if index >= cuda.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is {cuda.device_count()}. Please use "
            "torch.load with map_location to map your storages to an existing device."
        )
    return index


def validate_hpu_device(location) -> int:
    """Raises RuntimeError: engines have no HPUs."""
    raise RuntimeError(
        "The HPU device module is not registered. Please use torch.load with map_location to map your storages to an existing device."
    )


def _tag(kind: str):
    def tag(storage) -> str | None:
        device = storage.device
        if device.type != kind:
            return None
        return f"{kind}:{device.index}" if kind == "cuda" else kind

    return tag


def _is_cuda(location: str) -> bool:
    return location.startswith("cuda") and (location == "cuda" or location[4:].removeprefix(":").isdecimal())


def _device_of(location: str) -> _C.device | None:
    """The device of a built-in location tag; None for others."""
    if location in ("cpu", "meta"):
        return _C.device(location)
    if _is_plugin(location):
        return _C.device(location)
    return _C.device("cuda", validate_cuda_device(location)) if _is_cuda(location) else None


def _is_plugin(location: str) -> bool:
    """Whether the tag names a type of devices of a device library that the engine has announced."""
    kind, colon, index = location.partition(":")
    return kind in _C.plugin_types() and (not colon or index.isdecimal())


def _restore(kind: str):
    def restore(storage, location: str):
        if location != kind and not (kind == "cuda" and _is_cuda(location)):
            return None
        if kind == "meta":
            return UntypedStorage(storage.nbytes(), device="meta")
        return storage.to(device=_device_of(location))

    return restore


def _tag_plugin(storage) -> str | None:
    device = storage.device
    return str(device) if device.type in _C.plugin_types() else None


def _restore_plugin(storage, location: str):
    return storage.to(device=_C.device(location)) if _is_plugin(location) else None


for _priority, _kind in ((10, "cpu"), (20, "cuda"), (22, "meta")):
    register_package(_priority, _tag(_kind), _restore(_kind))
register_package(23, _tag_plugin, _restore_plugin)
_BUILT_IN = list(_registry)


def location_tag(storage) -> str:
    """The location tag of a storage.

    Raises:
        RuntimeError: no registered package returns a tag for it.
    """
    for _, tagger, _ in _registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {type(storage).__name__}")


def default_restore_location(storage, location: str):
    """The storage on the device that the location tag names.

    Raises:
        RuntimeError: no registered package supports the tag, or the engine does not have the device.
    """
    for _, _, restore in _registry:
        result = restore(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of torch.UntypedStorage (tagged with {location[:100]})"
    )


class Placement:
    """The interpretation of load's map_location: the device on which a storage is created, and the storage that
    replaces it.
    """

    def __init__(self, map_location) -> None:
        if isinstance(map_location, bytes):
            map_location = map_location.decode("ascii")
        if isinstance(map_location, _C.device):
            map_location = str(map_location)
        elif isinstance(map_location, int) and not isinstance(map_location, bool):
            map_location = str(_C.device(map_location))
        if map_location is not None and not isinstance(map_location, (str, dict)) and not callable(map_location):
            raise TypeError(
                f"[load] expected map_location to be a function, a device, a str, a dict or None, got {type(map_location).__name__}"
            )
        self._map = map_location

    def _location(self, location: str) -> str:
        if isinstance(self._map, str):
            return self._map
        return str(self._map.get(location, location)) if isinstance(self._map, dict) else location

    def device(self, location: str) -> _C.device:
        """The device to which the bytes of a storage with this tag are sent."""
        if callable(self._map) or _registry != _BUILT_IN:
            return _C.device("cpu")
        with as_caller_errors():
            return _device_of(self._location(location)) or _C.device("cpu")

    def place(self, storage: UntypedStorage, location: str) -> UntypedStorage:
        """The storage after map_location has been applied."""
        with as_caller_errors():
            return self._map_storage(storage, location)

    def _map_storage(self, storage: UntypedStorage, location: str) -> UntypedStorage:
        if callable(self._map):
            result = self._map(storage, location)
            if result is not None:
                result = getattr(result, "_untyped_storage", result)
                if not isinstance(result, UntypedStorage):
                    raise TypeError(
                        f"[load] expected map_location to return a storage or None, got {type(result).__name__}"
                    )
                return result
        target = self._location(location)
        if _registry == _BUILT_IN and _device_of(target) == storage.device:
            return storage
        placed = default_restore_location(storage, target)
        return getattr(placed, "_untyped_storage", placed)
