"""Data sets."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from array import array
from collections.abc import Callable
from typing import Generic, TypeVar

from ... import _C
from ..._C import Tensor
from ._sample_structure import Leaf, restore

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset", "random_split",
]  # fmt: skip

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A data set with samples by index. Subclasses define __getitem__ and, usually, __len__, which samplers and DataLoader need.

    ``a + b`` is a ConcatDataset. A subclass may define ``__getitems__(indices)``, which loaders then call once per batch.

    >>> class Squares(torch.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index * index
    >>> [batch.tolist() for batch in torch.utils.data.DataLoader(Squares(), batch_size=2)]
    [[0, 1], [4, 9]]
    """

    def __getitem__(self, index) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """A data set with samples in sequence. Subclasses define __iter__."""

    def __add__(self, other: Dataset) -> ChainDataset:
        return ChainDataset([self, other])

    def __iter__(self):
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")


def gather(tensors, indices: list[int]) -> list[Tensor]:
    """The entries of tensors of equal length at the indices, by one instruction per tensor.

    Raises:
        IndexError: an index is out of range.
    """
    length = len(tensors[0]) if tensors else 0
    at = _C.tensor(array("q", indices), dtype=_C.int64)
    if indices and not (-length <= min(indices) and max(indices) < length):
        wrong = next(i for i in indices if not -length <= i < length)
        raise IndexError(f"index {wrong} is out of bounds for a data set of {length} samples")
    places = {t.device: at for t in tensors}
    places = {device: at if device.type == "cpu" else at.to(device) for device in places}
    return [t[places[t.device]] for t in tensors]


def get_items(dataset, indices) -> list:
    """The samples at the indices, by the data set's __getitems__ if it has one."""
    if callable(getattr(dataset, "__getitems__", None)):
        return dataset.__getitems__(indices)
    return [dataset[i] for i in indices]


def find_gather(dataset):
    """The function that makes a batch of indices in the engine; None if the data set's samples are not stored there.

    A Subset's is that of its data set.
    """
    if type(dataset) is Subset and (inner := find_gather(dataset.dataset)):
        return lambda indices: inner([dataset.indices[i] for i in indices])
    own = type(dataset).__getitem__ in (TensorDataset.__getitem__, PinnedDataset.__getitem__)  # not overridden
    return dataset.gather if own else None


class TensorDataset(Dataset):
    """Slices of tensors along their first dimension: sample i is (tensors[0][i], tensors[1][i], ...).

    Args:
        tensors: of the same size in the first dimension.

    Raises:
        AssertionError: these sizes differ.

    >>> data = torch.utils.data.TensorDataset(torch.ones(4, 2), torch.arange(4))
    >>> len(data), data[2]
    (4, (tensor([1., 1.]), tensor(2)))
    """

    def __init__(self, *tensors: Tensor):
        if any(len(t) != len(tensors[0]) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def gather(self, indices: list[int]) -> list[Tensor]:
        """The batch of the samples at the indices: one instruction per tensor instead of one per sample."""
        return gather(self.tensors, indices)

    def __len__(self) -> int:
        return len(self.tensors[0])


class PinnedDataset(Dataset):
    """A data set with samples by index, stored in the engine: a DataLoader makes each batch there, without uploads.

    Reads every sample once. Samples are tensors, arrays, numbers, or tuples, lists and mappings of them, with the same
    sizes and dtypes in all samples; they are stored stacked, as default_collate stacks them (Python floats as float64).
    Indexing returns a sample of the same structure, whose leaves are tensors. Batches are those of the data set itself,
    unless it computes its samples anew each time, as random augmentations do.

    Args:
        dataset: has ``__getitem__`` and ``__len__``, and at least one sample.
        device: where the samples are stored: by default on the CPU, tensors on their own device.
        num_workers: number of threads that read samples; 0: the calling thread.
        progress: whether to show a progress bar; by default on a terminal.
        transform: a function of batches, called for each batch (and for a sample, as a batch of one): augmentations in the
            engine (teletensor.utils.data.augment).

    Raises:
        OutOfMemoryError: the samples do not fit into the device's free memory or the session's limit.
        TypeError: a sample contains something else, or the data set has no samples by index.
        ValueError: the data set is empty, or a sample's structure, sizes or dtypes differ from those of sample 0.
    """

    def __init__(
        self, dataset, device=None, *, num_workers: int = 0, progress: bool | None = None, transform: Callable | None = None
    ):
        self._structure, self.tensors = self._load(dataset, device, num_workers, progress)
        self.transform = transform

    @classmethod
    def from_tensors(cls, *tensors: Tensor, transform: Callable | None = None) -> PinnedDataset:
        """A data set of tensors that are in the engine: tuples of their slices along the first dimension.

        Raises:
            ValueError: there is no tensor, or their lengths differ.
        """
        lengths = [len(t) for t in tensors]
        if not tensors or min(lengths) != max(lengths):
            raise ValueError(f"[PinnedDataset] expected tensors of equal length, got the lengths {lengths}")
        self = cls.__new__(cls)
        self._structure, self.tensors, self.transform = tuple(Leaf() for _ in tensors), tensors, transform
        return self

    def __getitem__(self, index):
        if self.transform is None:
            return self._restore([t[index] for t in self.tensors])
        from .collate import map_leaves

        index = index if index >= 0 else index + len(self)
        batch = self.gather([index])
        sample = map_leaves(lambda leaf: leaf[0] if isinstance(leaf, Tensor) else leaf, batch)
        return tuple(sample) if isinstance(self._structure, tuple) and type(sample) is list else sample

    def __len__(self) -> int:
        return len(self.tensors[0])

    def gather(self, indices: list[int]):
        """The batch of the samples at the indices: one instruction per tensor, and those of the transform."""
        batch = self._restore(gather(self.tensors, indices), batch=True)
        return batch if self.transform is None else self.transform(batch)

    def _restore(self, tensors, batch: bool = False):
        return restore(self._structure, tensors, batch)


class StackDataset(Dataset):
    """Tuples or dicts of samples from several data sets."""

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both types "
                "are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = kwargs or args
        self._length = len(self._parts()[0])
        if any(len(dataset) != self._length for dataset in self._parts()):
            raise ValueError("Size mismatch between datasets")

    def _parts(self) -> list:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _join(self, samples):
        return dict(zip(self.datasets, samples)) if isinstance(self.datasets, dict) else tuple(samples)

    def __getitem__(self, index):
        return self._join(dataset[index] for dataset in self._parts())

    def __getitems__(self, indices: list) -> list:
        """The samples at the indices, by each data set's own __getitems__ if it has one."""
        columns = []
        for dataset in self._parts():
            column = get_items(dataset, indices)
            if len(column) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(column)}")
            columns.append(column)
        return [self._join(samples) for samples in zip(*columns)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset):
    """The concatenation of data sets."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence) -> list[int]:
        """The sums of the first 1, 2, ... lengths."""
        return list(itertools.accumulate(len(d) for d in sequence))

    @property
    def cummulative_sizes(self) -> list[int]:
        """The former name of cumulative_sizes."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`", category=FutureWarning, stacklevel=2
        )
        return self.cumulative_sizes

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int):
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """The concatenation of iterable data sets."""

    def __init__(self, datasets):
        self.datasets = datasets

    def _checked(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self):
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())


class Subset(Dataset[T_co]):
    """The samples of a data set at given indices. A subclass with its own __getitem__ must define __getitems__ too."""

    def __init__(self, dataset: Dataset, indices):
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{kind.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding "
                "__getitem__, you must also override __getitems__ to ensure DataLoader works correctly with your custom "
                "logic. A simple implementation:\n\n"
                "def __getitems__(self, indices):\n    return [self.__getitem__(idx) for idx in indices]"
            )
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list) -> list:
        """The samples at the indices of the subset."""
        return get_items(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset, lengths, generator=None) -> list[Subset]:
    """Disjoint random subsets of the given lengths, or fractions that sum to 1. Drawn as PyTorch does."""
    from .sampler import numbers_of

    total = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        counts = [math.floor(total * n) for n in lengths]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
        lengths = counts
        for i, length in enumerate(lengths):
            if length == 0:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2
                )
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = numbers_of(generator).randperm(total)
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - n : end]) for end, n in zip(ends, lengths)]
