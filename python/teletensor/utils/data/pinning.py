"""Loading of a PinnedDataset."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping

from ... import _C
from ..._C import Tensor
from ...cuda.device_index import device_code
from ._sample_structure import Leaf
from .collate import default_collate, like
from .dataset import IterableDataset, PinnedDataset
from .loader import DataLoader

_CHUNK_BYTES = 8 << 20  # of samples that are uploaded at a time
_MAX_CHUNK = 1024  # samples


def _flatten(sample, path: str = "") -> Iterator[tuple[str, object]]:
    """Yields (path, leaf) for all leaves of a sample."""
    if isinstance(sample, Mapping):
        for key in sample:
            yield from _flatten(sample[key], f"{path}[{key!r}]")
    elif isinstance(sample, (tuple, list)):
        for i, value in enumerate(sample):
            yield from _flatten(value, f"{path}[{i}]")
    else:
        yield path, sample


def _structure_of(sample):
    """The sample's containers, with a Leaf in place of each leaf."""
    if isinstance(sample, Mapping):
        return like(sample, {key: _structure_of(sample[key]) for key in sample})
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*map(_structure_of, sample))
    if isinstance(sample, (tuple, list)):
        return type(sample)(map(_structure_of, sample))
    return Leaf()


def _describe(index: int, path: str, leaf) -> tuple[tuple[int, ...], str]:
    """The sizes and the dtype of a leaf; a Python number's dtype is the name of its type."""
    if isinstance(leaf, (bool, int, float)):
        return (), type(leaf).__name__
    if isinstance(leaf, Tensor) or (hasattr(leaf, "__array_interface__") and leaf.dtype.kind in "biufc"):
        return tuple(leaf.shape), str(leaf.dtype).removeprefix("torch.")
    raise TypeError(
        f"[PinnedDataset] expected tensors, arrays and numbers, got {type(leaf).__name__} at {path or 'the top'} of sample {index}"
    )


def _describe_all(index: int, sample) -> list[tuple[str, tuple[int, ...], str]]:
    return [(path, *_describe(index, path, leaf)) for path, leaf in _flatten(sample)]


def _check_equal(index: int, expected: list, got: list) -> None:
    if expected == got:
        return
    for (path, sizes, dtype), (other_path, other_sizes, other_dtype) in zip(expected, got):
        if (path, sizes, dtype) != (other_path, other_sizes, other_dtype):
            raise ValueError(
                f"[PinnedDataset] expected all samples to be alike: sample 0 has {dtype} {list(sizes)} at "
                f"{path or 'the top'}, got {other_dtype} {list(other_sizes)} at {other_path or 'the top'} of sample {index}; "
                "pad or crop samples to one size, or leave the data set in the client"
            )
    raise ValueError(f"[PinnedDataset] expected {len(expected)} tensors as in sample 0, got {len(got)} in sample {index}")


def _check_memory(needed: dict) -> None:
    """Raises OutOfMemoryError if the bytes needed on a device exceed its free memory or the session's limit."""
    from ..._connection import connection

    totals = {str(entry["device"]): entry["total_memory"] for entry in connection().engine()["devices"]}
    for device, size in needed.items():
        stats = _C.ops.memory_stats(0 if device.type == "cpu" else device_code(device)).tolist()
        allocated, pool_limit, free, held, limit = stats[0], stats[-5], stats[-4], stats[-3], stats[-1]
        if device.type == "cpu":  # the engine does not measure the host's free memory
            free = (pool_limit or totals[str(device)]) - allocated
        allowed = min(free, limit - held) if limit else free
        if size > allowed:
            raise _C.OutOfMemoryError(
                f"[PinnedDataset] the samples take {size / 1e6:,.0f} MB on {device}, where this session can use "
                f"{allowed / 1e6:,.0f} MB: pin a Subset, or store samples in a smaller dtype"
            )


@contextlib.contextmanager
def _bar(show: bool, total: int) -> Iterator:
    """Yields a function that advances a progress bar, which is shown if rich is installed."""
    if show:
        try:
            from rich.progress import Progress
        except ImportError:
            show = False
    if not show:
        yield lambda count: None
        return
    with Progress(transient=True) as progress:
        task = progress.add_task("loading samples", total=total)
        yield lambda count: progress.update(task, advance=count)


def load(dataset, device, num_workers: int, progress: bool | None) -> tuple[object, tuple[Tensor, ...]]:
    """Reads all samples; returns their structure and the stacked tensors, in the order of their leaves."""
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise TypeError(f"[PinnedDataset] expected a data set with __getitem__ and __len__, got {type(dataset).__name__}")
    count = len(dataset)
    if count == 0:
        raise ValueError("[PinnedDataset] expected at least one sample, got an empty data set")
    first = dataset[0]
    expected = _describe_all(0, first)
    batch = [leaf for _, leaf in _flatten(default_collate([first]))]
    places = [leaf.device if device is None else _C.placed(device) for leaf in batch]
    needed: dict = {}
    for leaf, place in zip(batch, places):
        needed[place] = needed.get(place, 0) + count * leaf.nbytes
    _check_memory(needed)
    tensors = tuple(
        _C.torch.empty((count, *leaf.shape[1:]), dtype=leaf.dtype, device=place) for leaf, place in zip(batch, places)
    )
    chunk = max(1, min(_MAX_CHUNK, _CHUNK_BYTES // max(1, sum(leaf.nbytes for leaf in batch))))
    context = "thread" if num_workers else None  # samples may be tensors
    loader = DataLoader(dataset, chunk, num_workers=num_workers, collate_fn=list, multiprocessing_context=context)
    begin = 0
    with _bar(sys.stderr.isatty() if progress is None else progress, count) as advance:
        for samples in loader:
            for i, sample in enumerate(samples):
                _check_equal(begin + i, expected, _describe_all(begin + i, sample))
            for whole, (_, part) in zip(tensors, _flatten(default_collate(samples))):
                whole[begin : begin + len(samples)] = part
            begin += len(samples)
            advance(len(samples))
    return _structure_of(first), tensors


PinnedDataset._load = staticmethod(load)
