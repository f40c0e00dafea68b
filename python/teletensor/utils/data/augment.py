"""Augmentations of batches in the engine: a few instructions per batch, with random numbers of the session's generator.

An augmentation is a callable of images of shape (N, C, H, W), on any device; each image of a batch is changed
independently. ``PinnedDataset(dataset, transform=on(0, RandomCrop(32, 4), RandomHorizontalFlip(), Normalize(mean,
std)))`` applies them to the first entry of each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ..._C import Tensor

__all__ = ["Compose", "Normalize", "RandomCrop", "RandomHorizontalFlip", "RandomVerticalFlip", "on"]


def _check_images(op: str, images: Tensor) -> None:
    if images.ndim != 4:
        raise ValueError(f"[{op}] expected images of shape (N, C, H, W), got {list(images.shape)}")


class _Constants:
    """Tensors that are created at the first call, and again when the images' dtype or device or the session changes."""

    def __init__(self) -> None:
        self._session: Any = None
        self._key: Any = None
        self._value: Any = None

    def get(self, key: Any, make: Callable) -> Any:
        """The tensors for a key; calls make() if the key differs from that of the last call."""
        from ..._connection import connection

        session = connection()
        if session is not self._session or key != self._key:
            self._session, self._key, self._value = session, key, make()
        return self._value


class Compose:
    """Applies several functions, in order."""

    def __init__(self, *steps: Callable):
        self.steps = steps

    def __call__(self, images: Tensor) -> Tensor:
        for step in self.steps:
            images = step(images)
        return images


def on(entry: Any, *steps: Callable) -> Callable:
    """A function of batches that applies the steps to one entry, given by its index or key, and leaves the others.

    Raises:
        TypeError: the batch is not a list, a tuple or a dict (when the function is called).
    """
    compose = Compose(*steps)

    def apply(batch: Any) -> Any:
        if isinstance(batch, dict):
            return {**batch, entry: compose(batch[entry])}
        if not isinstance(batch, (list, tuple)):
            raise TypeError(f"[on] expected a batch that is a list, a tuple or a dict, got {type(batch).__name__}")
        values = list(batch)
        values[entry] = compose(values[entry])
        return values

    return apply


class Normalize:
    """``(images - mean) / std`` per channel, in float32 or the images' floating-point dtype.

    Args:
        mean, std: one number per channel, for pixels in [0, 1].
        scale: divides integer images first; 255 for uint8. Floating-point images are not scaled.

    Raises:
        ValueError: the numbers of channels differ, or a standard deviation is 0.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], scale: float = 255.0):
        if len(mean) != len(std) or not all(std):
            raise ValueError(f"[Normalize] expected one mean and one std other than 0 per channel, got {mean} and {std}")
        self.mean, self.std, self.scale = tuple(mean), tuple(std), scale
        self._constants = _Constants()

    def _factors(self, images: Tensor, dtype) -> tuple[Tensor, Tensor]:
        """(factor, offset) of shape (C, 1, 1), so that the result is images * factor + offset."""
        scale = 1.0 if images.dtype.is_floating_point else self.scale
        values = [[1 / (s * scale) for s in self.std], [-m / s for m, s in zip(self.mean, self.std)]]
        both = _C.tensor(values, dtype=dtype).to(images.device).reshape(2, -1, 1, 1)
        return both[0], both[1]

    def __call__(self, images: Tensor) -> Tensor:
        _check_images("Normalize", images)
        if images.shape[1] != len(self.mean):
            raise ValueError(f"[Normalize] expected {len(self.mean)} channels, got images of shape {list(images.shape)}")
        dtype = images.dtype if images.dtype.is_floating_point else _C.float32
        key = images.dtype, images.device
        factor, offset = self._constants.get(key, lambda: self._factors(images, dtype))
        return images.to(dtype) * factor + offset


class RandomCrop:
    """A window of each image, at a random position in the zero-padded image.

    Args:
        size: height and width of the windows.
        padding: number of zeros at each side.

    Raises:
        ValueError: the images with their padding are smaller than the windows (when called).
    """

    def __init__(self, size: int | tuple[int, int], padding: int = 0):
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.padding = padding
        self._constants = _Constants()
        if padding < 0 or min(self.size) < 1:
            raise ValueError(f"[RandomCrop] expected a positive size and no negative padding, got {size} and {padding}")

    def __call__(self, images: Tensor) -> Tensor:
        from ... import randint
        from ...nn.functional import pad

        _check_images("RandomCrop", images)
        count, channels, height, width = images.shape
        tops, lefts = (length + 2 * self.padding - size for length, size in zip((height, width), self.size))
        if tops < 0 or lefts < 0:
            raise ValueError(
                f"[RandomCrop] expected images of at least {list(self.size)} with a padding of {self.padding}, got {[height, width]}"
            )
        padded = pad(images, [self.padding] * 4) if self.padding else images
        key = count, channels, images.device
        samples, channel, row, column = self._constants.get(key, lambda: self._crop_indices(count, channels, images.device))
        top = randint(tops + 1, (count, 1, 1, 1), device=images.device)
        left = randint(lefts + 1, (count, 1, 1, 1), device=images.device)
        return padded[samples, channel, top + row, left + column]

    def _crop_indices(self, count: int, channels: int, device) -> tuple[Tensor, ...]:
        """Indices of samples, channels, and of the rows and columns of a window, each along its dimension."""
        from ... import arange

        rows, columns = self.size
        return (
            arange(count, device=device).reshape(-1, 1, 1, 1), arange(channels, device=device).reshape(1, -1, 1, 1),
            arange(rows, device=device).reshape(1, 1, -1, 1), arange(columns, device=device).reshape(1, 1, 1, -1),
        )  # fmt: skip


class _RandomFlip:
    """Reverses a dimension of each image with probability p."""

    _dim = -1

    def __init__(self, p: float = 0.5):
        if not 0 <= p <= 1:
            raise ValueError(f"[{type(self).__name__}] expected p in [0, 1], got {p}")
        self.p = p

    def __call__(self, images: Tensor) -> Tensor:
        from ... import rand, where

        _check_images(type(self).__name__, images)
        chosen = rand(images.shape[0], 1, 1, 1, device=images.device) < self.p
        return where(chosen, images.flip(self._dim), images)


class RandomHorizontalFlip(_RandomFlip):
    """Mirrors each image from left to right with probability p."""


class RandomVerticalFlip(_RandomFlip):
    """Mirrors each image from top to bottom with probability p."""

    _dim = -2
