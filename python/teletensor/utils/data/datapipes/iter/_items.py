"""Pipes that change, select, order and group the items of one pipe."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...collate import default_collate
from ...sampler import SequentialSampler
from .._decorator import functional_datapipe
from .._shuffling import Shuffling
from ..datapipe import DataChunk, IterDataPipe


class _OfOnePipe(IterDataPipe):
    """Base of pipes with as many items as their source."""

    datapipe: Iterable

    def __len__(self) -> int:
        if hasattr(self.datapipe, "__len__"):
            return len(self.datapipe)  # type: ignore[arg-type]
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


def _result_in_columns(data: Any, result: Any, input_col: Any, output_col: Any) -> Any:
    """The item with the function's result in the given place."""
    is_tuple = isinstance(data, tuple)
    data = list(data) if is_tuple else data
    if output_col is None and isinstance(input_col, (list, tuple)):
        data[input_col[0]] = result
        for place in sorted(input_col[1:], reverse=True):
            del data[place]
    elif output_col == -1:
        data.append(result)
    else:
        data[input_col if output_col is None else output_col] = result
    return tuple(data) if is_tuple else data


@functional_datapipe("map")
class Mapper(_OfOnePipe):
    """Applies a function to each item, or to some of its elements.

    Args:
        input_col: the indices or keys of the elements that the function receives; by default the whole item.
        output_col: where the result is put; by default in place of the first of input_col. -1 appends it.
    """

    def __init__(self, datapipe: IterDataPipe, fn: Callable, input_col: Any = None, output_col: Any = None) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def __iter__(self) -> Iterator:
        for data in self.datapipe:
            if self.input_col is None:
                yield self.fn(data)
            elif isinstance(self.input_col, (list, tuple)):
                yield _result_in_columns(data, self.fn(*(data[c] for c in self.input_col)), self.input_col, self.output_col)
            else:
                yield _result_in_columns(data, self.fn(data[self.input_col]), self.input_col, self.output_col)


@functional_datapipe("collate")
class Collator(Mapper):
    """Makes tensors of batches: by a function, by default default_collate, or by a function per key of a dict."""

    def __init__(self, datapipe: IterDataPipe, conversion: Any = default_collate, collate_fn: Callable | None = None) -> None:
        function = collate_fn if collate_fn is not None else conversion
        if not callable(function):
            raise NotImplementedError("[collate] conversions by column of a data frame are not supported; pass a function")
        super().__init__(datapipe, function)


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """The items for which a function returns True."""

    def __init__(self, datapipe: IterDataPipe, filter_fn: Callable, input_col: Any = None) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator:
        for data in self.datapipe:
            if self.input_col is None:
                keep = self.filter_fn(data)
            elif isinstance(self.input_col, (list, tuple)):
                keep = self.filter_fn(*(data[c] for c in self.input_col))
            else:
                keep = self.filter_fn(data[self.input_col])
            if not isinstance(keep, bool):
                raise ValueError(
                    f"Boolean output is required for `filter_fn` of FilterIterDataPipe, got {type(keep)}"
                )
            if keep:
                yield data


@functional_datapipe("batch")
class Batcher(IterDataPipe):
    """Lists of `batch_size` items; the last one may be shorter."""

    def __init__(
        self, datapipe: IterDataPipe, batch_size: int, drop_last: bool = False, wrapper_class: type[DataChunk] = DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = datapipe, batch_size, drop_last, wrapper_class

    def __iter__(self) -> Iterator[DataChunk]:
        batch: list = []
        for item in self.datapipe:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        if not hasattr(self.datapipe, "__len__"):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        count = len(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcher(IterDataPipe):
    """The items of lists, to a number of levels; -1: of all levels."""

    def __init__(self, datapipe: IterDataPipe, unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator:
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element: Any, level: int) -> Iterator:
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0 or (level == -1 and not isinstance(element, list)):
            yield element
        elif not isinstance(element, list):
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        else:
            for item in element:
                yield from self._dive(item, level if level == -1 else level - 1)


@functional_datapipe("groupby")
class Grouper(IterDataPipe):
    """Lists of items for which a function returns the same key; a full buffer yields its largest group.

    Args:
        keep_key: yields (key, list).
        buffer_size: the number of items that wait for their group.
        group_size: the size at which a group is complete.
        guaranteed_group_size: smaller groups are not yielded from a full buffer, which raises RuntimeError or drops them.
        drop_remaining: whether such groups are dropped.
    """

    def __init__(
        self, datapipe: IterDataPipe, group_key_fn: Callable, *, keep_key: bool = False, buffer_size: int = 10000,
        group_size: int | None = None, guaranteed_group_size: int | None = None, drop_remaining: bool = False,
    ) -> None:  # fmt: skip
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None and (group_size is None or not 0 < guaranteed_group_size <= group_size):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size, and group_size must be set")
        self.datapipe, self.group_key_fn, self.keep_key, self.max_buffer_size = datapipe, group_key_fn, keep_key, buffer_size
        self.group_size, self.drop_remaining = group_size, drop_remaining
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size

    def _result(self, key: Any, items: list) -> Any:
        chunk = DataChunk(items)
        return (key, chunk) if self.keep_key else chunk

    def _largest(self, groups: dict) -> tuple[Any, list] | None:
        """Removes the largest group; None if it was dropped."""
        key = max(groups, key=lambda k: len(groups[k]))
        items = groups.pop(key)
        if self.guaranteed_group_size is not None and len(items) < self.guaranteed_group_size and not self.drop_remaining:
            raise RuntimeError("Failed to group items", str(items))
        if self.guaranteed_group_size is None or len(items) >= self.guaranteed_group_size:
            return key, items
        return None

    def __iter__(self) -> Iterator:
        groups: dict[Any, list] = defaultdict(list)
        count = 0
        for item in self.datapipe:
            key = self.group_key_fn(item)
            groups[key].append(item)
            count += 1
            if self.group_size is not None and len(groups[key]) == self.group_size:
                count -= self.group_size
                yield self._result(key, groups.pop(key))
            elif count == self.max_buffer_size:
                found = self._largest(groups)
                count = sum(map(len, groups.values()))
                if found:
                    yield self._result(*found)
        for key, items in groups.items():
            yield self._result(key, items)


@functional_datapipe("shuffle")
class Shuffler(Shuffling, _OfOnePipe):
    """Yields items in random order, by a buffer of `buffer_size` items; the numbers depend on torch.manual_seed() or set_seed()."""

    def __init__(self, datapipe: IterDataPipe, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else UnBatcher(datapipe, unbatch_level)
        self.buffer_size = buffer_size
        self._rng = random.Random()  # noqa: S311 - no secrets

    def reset(self) -> None:
        if self._enabled:
            self._rng.seed(self._take_seed())

    def __iter__(self) -> Iterator:
        if not self._enabled:
            yield from self.datapipe
            return
        buffer: list = []
        for item in self.datapipe:
            if len(buffer) == self.buffer_size:
                place = self._rng.randint(0, len(buffer) - 1)
                chosen, buffer[place] = buffer[place], item
                yield chosen
            else:
                buffer.append(item)
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))


class Sampler(IterDataPipe):
    """The indices that a sampler of torch.utils.data yields for a pipe with a length."""

    def __init__(self, datapipe: IterDataPipe, sampler: type = SequentialSampler, sampler_args: Any = None,
                 sampler_kwargs: dict | None = None) -> None:  # fmt: skip
        if not hasattr(datapipe, "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe = datapipe
        self.sampler = sampler(*(sampler_args or ()), data_source=datapipe, **(sampler_kwargs or {}))

    def __iter__(self) -> Iterator:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


@functional_datapipe("sharding_filter")
class ShardingFilter(IterDataPipe):
    """Every n-th item, from the i-th on, after apply_sharding(n, i); all items before."""

    def __init__(self, source_datapipe: IterDataPipe, sharding_group_filter: Any = None) -> None:
        if sharding_group_filter is not None:
            raise NotImplementedError("[sharding_filter] groups of shards are not supported")
        self.source_datapipe, self.num_of_instances, self.instance_id = source_datapipe, 1, 0

    def is_shardable(self) -> bool:
        """True."""
        return True

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """Selects the shard."""
        if sharding_group is not None and getattr(sharding_group, "value", sharding_group) != 1:
            raise NotImplementedError("[apply_sharding] groups of shards are not supported")
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator:
        for i, item in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield item

    def __len__(self) -> int:
        if not hasattr(self.source_datapipe, "__len__"):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        count = len(self.source_datapipe)
        return count // self.num_of_instances + (self.instance_id < count % self.num_of_instances)


class IterableWrapper(IterDataPipe):
    """A pipe of any iterable, which is copied before each iteration if `deepcopy` is True and it can be."""

    def __init__(self, iterable: Iterable, deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:  # not copyable: items that are changed in place stay changed
                pass
        yield from source

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]
