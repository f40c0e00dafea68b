"""progress: a bar over a loader, with samples per second and the time spent waiting."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..._C import Tensor

_SECONDS_PER_UPDATE = 0.1


def samples_of(batch: Any) -> int:
    """The number of samples in a batch: the length of the first tensor or array in it, else 1."""
    if isinstance(batch, Tensor) or hasattr(batch, "__array_interface__"):
        return len(batch) if batch.ndim else 1
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)) and batch:
        return samples_of(batch[0]) if not isinstance(batch[0], (str, bytes, int, float)) else len(batch)
    return 1


def _seconds_waited() -> float:
    """The seconds for which this process has waited for its session's engine; 0 if there is no session."""
    from ... import _connection

    if _connection._current is None:
        return 0.0
    return sum(row[3] for row in _connection._current.wait_report())


class progress:  # noqa: N801 - used as a function
    """Iterates a loader with a progress bar: ``for x, y in progress(loader): ...``

    The bar shows batches, samples per second, and the shares of the time spent waiting for the loader ("data") and for the
    engine ("engine": values that are read, uploads and a full window of calls, on all threads that use the session). It is drawn
    with rich, on standard error; without rich there is no bar. The figures are attributes, also during the loop.

    Args:
        loader: the iterable.
        description: shown before the bar.
        total: number of batches; by default the loader's length, if it has one.
        show: whether to draw the bar; by default on a terminal.

    Attributes:
        batches, samples: their numbers so far.
        seconds: since the first batch was requested.
        data_seconds, engine_seconds: seconds spent waiting.

    Raises:
        ImportError: ``show=True``, and rich is not installed.
    """

    def __init__(self, loader: Iterable, description: str = "", *, total: int | None = None, show: bool | None = None):
        self.loader, self.description, self.total = loader, description, total
        self._show = show
        self._started: float | None = None
        self._ended: float | None = None
        self._waited_before = 0.0
        self.batches = self.samples = 0
        self.data_seconds = 0.0
        self._waited: float | None = None

    def __len__(self) -> int:
        return len(self.loader) if self.total is None else self.total  # type: ignore[arg-type]

    def _length(self) -> int | None:
        try:
            return len(self)
        except (TypeError, NotImplementedError):
            return None

    @property
    def seconds(self) -> float:
        """Seconds since the first batch was requested, until the end of the loop."""
        if self._started is None:
            return 0.0
        return (time.perf_counter() if self._ended is None else self._ended) - self._started

    @property
    def engine_seconds(self) -> float:
        """Seconds spent waiting for the engine since the first batch was requested."""
        if self._started is None:
            return 0.0
        return max(0.0, (_seconds_waited() if self._waited is None else self._waited) - self._waited_before)

    def summary(self) -> str:
        """The figures, in one line."""
        seconds = max(self.seconds, 1e-9)
        return (
            f"{self.samples / seconds:,.0f} samples/s, data {self.data_seconds:.1f} s ({self.data_seconds / seconds:.0%}), "
            f"engine {self.engine_seconds:.1f} s ({self.engine_seconds / seconds:.0%})"
        )

    def _bar(self) -> Any:
        """A rich Progress; None without a bar."""
        show = sys.stderr.isatty() if self._show is None else self._show
        if not show:
            return None
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError as error:
            if self._show is None:
                return None
            raise ImportError("[progress] a progress bar needs the package rich: pip install rich") from error
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        return Progress(*columns, TextColumn("{task.fields[figures]}"), console=Console(stderr=True))

    def __iter__(self) -> Iterator[Any]:
        bar = self._bar()
        self.batches = self.samples = 0
        self.data_seconds, self._waited, self._ended = 0.0, None, None
        self._waited_before, self._started = _seconds_waited(), time.perf_counter()
        try:
            if bar is None:
                yield from self._batches()
            else:
                with bar:
                    yield from self._drawn(bar)
        finally:
            self._ended, self._waited = time.perf_counter(), _seconds_waited()

    def _batches(self) -> Iterator[Any]:
        iterator = iter(self.loader)
        while True:
            begin = time.perf_counter()
            try:
                batch = next(iterator)
            except StopIteration:
                return
            finally:
                self.data_seconds += time.perf_counter() - begin
            self.batches += 1
            self.samples += samples_of(batch)
            yield batch

    def _drawn(self, bar: Any) -> Iterator[Any]:
        task = bar.add_task(self.description, total=self._length(), figures="")
        updated = 0.0
        for batch in self._batches():
            yield batch
            if (now := time.perf_counter()) - updated > _SECONDS_PER_UPDATE:
                updated = now
                bar.update(task, completed=self.batches, figures=self.summary())
        bar.update(task, completed=self.batches, figures=self.summary())
