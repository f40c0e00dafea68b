"""UntypedStorage: the identity and size of the bytes that a tensor and its views share in the engine."""

from __future__ import annotations

from . import _C
from ._C import Tensor


def no_address_error(what: str) -> str:
    """Returns the error message of `what`, a function that would return the address of a tensor's bytes."""
    return (
        f"{what}: the tensor's bytes are in an engine and have no address in this process. Copy them here with .numpy() "
        "(.cpu() first on a GPU), or compare storages: a.untyped_storage() == b.untyped_storage(), a.is_set_to(b)"
    )


class UntypedStorage:
    """The result of `Tensor.untyped_storage()`. Storages of tensors that share bytes are equal and have equal hashes.

    An UntypedStorage does not keep the tensor alive. Its number is never reused within a session, so it never equals a
    later storage.
    """

    def __init__(self, tensor: Tensor) -> None:
        self._number, self._bytes = tensor._storage
        self.device: _C.device = tensor.device

    def nbytes(self) -> int:
        """The storage's size in bytes."""
        return self._bytes

    size = __len__ = nbytes

    def data_ptr(self) -> int:
        """Raises RuntimeError: the bytes have no address in this process."""
        raise RuntimeError(no_address_error("UntypedStorage.data_ptr()"))

    @property
    def _cdata(self) -> int:
        raise RuntimeError(no_address_error("UntypedStorage._cdata"))


    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and (self._number, self.device) == (other._number, other.device)

    def __hash__(self) -> int:
        return hash((self._number, self.device))

    def __repr__(self) -> str:
        return f"<UntypedStorage {self._number} of {self._bytes} bytes on {self.device}>"
