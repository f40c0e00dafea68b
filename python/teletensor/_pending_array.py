"""PendingArray: the result of Tensor.numpy_async()."""

from __future__ import annotations

from . import _C
from ._C import Tensor


class PendingArray:
    """The array that Tensor.numpy_async() requested, with the values of that call.

    A value of more than 64 KiB is received in the background, four values at a time. Dropping the object drops the
    value; a download that has begun is completed first.
    """

    def __init__(self, tensor: Tensor, dtype: str):
        self._read = _C.PendingRead(tensor)
        self._shape, self._dtype, self._array = tuple(tensor.shape), dtype, None

    def done(self) -> bool:
        """Whether wait() returns at once. Does not wait.

        Raises:
            ConnectionError: the session ended before the values arrived.
        """
        return self._array is not None or self._read.done()

    def wait(self):
        """Waits for the values and returns them as an array of the tensor's shape and dtype, always the same object.

        Raises:
            ConnectionError: the session ended before the values arrived.
            Exception: the tensor's error, if its computation failed.
        """
        if self._array is None:
            import numpy as np

            self._read.wait()
            self._array = np.ndarray(self._shape, self._dtype, self._read)
        return self._array
