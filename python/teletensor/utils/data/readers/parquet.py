"""ParquetDataset: the rows of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from ...._mt19937 import MT19937
from ..dataset import IterableDataset
from .sharding import ranks, share


def _import_pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "[ParquetDataset] reading Parquet files needs the package pyarrow: pip install pyarrow"
        ) from error
    return pyarrow.parquet


class ParquetDataset(IterableDataset):
    """The rows of Parquet files, as dicts by column; row groups are divided among ranks and a loader's workers.

    Numbers and booleans are NumPy scalars, lists of numbers are NumPy arrays, and strings, binary values and nulls are
    Python's. A worker reads one row group at a time, and only the columns that are requested.

    Args:
        paths: one file, or several.
        columns: the columns to read; by default all.
        shuffle: whether the row groups, and the rows of each, are yielded in random order, the same for each epoch and seed.
        seed: of that order; all ranks must use the same.
        rank, world_size: by default those of the default process group.

    Raises:
        ImportError: pyarrow is not installed.
        ValueError: a file is not a Parquet file, or lacks a column.
    """

    def __init__(
        self, paths: str | os.PathLike | Sequence[str | os.PathLike], columns: Sequence[str] | None = None, *,
        shuffle: bool = False, seed: int = 0, rank: int | None = None, world_size: int | None = None,
    ):  # fmt: skip
        parquet = _import_pyarrow()
        several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
        self.paths = [os.fspath(path) for path in several]
        self.columns = None if columns is None else list(columns)
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        self.rank, self.world_size = ranks(rank, world_size)
        self._groups: list[tuple[str, int]] = []
        self._length = 0
        for path in self.paths:
            try:
                metadata = parquet.read_metadata(path)
            except OSError as error:
                raise error if isinstance(error, FileNotFoundError) else ValueError(f"[ParquetDataset] {path}: {error}") from None
            except Exception as error:
                raise ValueError(f"[ParquetDataset] {path}: {error}") from None
            names = metadata.schema.to_arrow_schema().names
            for name in self.columns or ():
                if name not in names:
                    raise ValueError(f"[ParquetDataset] {path}: no column {name!r}, expected one of {names}")
            self._groups += [(path, i) for i in range(metadata.num_row_groups)]
            self._length += metadata.num_rows

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which determines the order with `shuffle`."""
        self.epoch = epoch

    def __len__(self) -> int:
        """The number of rows of all ranks."""
        return self._length

    def __iter__(self) -> Iterator[dict[str, Any]]:
        parquet = _import_pyarrow()
        groups = self._groups
        if self.shuffle:
            groups = [groups[i] for i in MT19937(self.seed + self.epoch).randperm(len(groups))]
        for path, number in share(groups, self.rank, self.world_size):
            with parquet.ParquetFile(path) as file:
                table = file.read_row_group(number, columns=self.columns)
            order = range(table.num_rows)
            if self.shuffle:
                order = MT19937(self.seed + self.epoch + 7919 * number + 1).randperm(table.num_rows)
            columns = {name: _values(table.column(name)) for name in table.column_names}
            for i in order:
                yield {name: values[i] for name, values in columns.items()}


def _values(column: Any) -> Any:
    """The values of a column: an array if they are numbers without nulls, else a list."""
    import numpy as np
    import pyarrow.types as types

    kind = column.type
    if (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)) and column.null_count == 0:
        return column.to_numpy()
    values = column.to_pylist()
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = kind.value_type
        if types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner):
            dtype = inner.to_pandas_dtype()
            return [None if value is None else np.array(value, dtype) for value in values]
    return values
