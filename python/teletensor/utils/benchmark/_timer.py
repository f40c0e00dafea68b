"""Timer: measures a statement."""

from __future__ import annotations

import enum
import textwrap
import time
import timeit
from typing import Any, Callable

from ... import _connection
from ._measurement import Measurement, TaskSpec, set_torch_threads


def timer() -> float:
    """The time in seconds, when the engine has executed everything issued so far."""
    _connection.synchronize()
    return time.perf_counter()


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measures a Python statement.

    Args:
        stmt, setup: the statement, and what is executed before it, as text.
        timer: a function that returns the time in seconds.
        globals: the names that the statement may use.
        label, sub_label, description, env: names for tables: the table, the row, the column, the environment.
        num_threads: passed to torch.set_num_threads.
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None, description: str | None = None,
        env: str | None = None, num_threads: int = 1, language: Language | str = Language.PYTHON,
    ):  # fmt: skip # noqa: A002 - PyTorch's name
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError(f"Timer: only Python statements can be measured, got language={language!r}")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`.")
        names = dict(globals or {})
        if "torch" not in names:
            import teletensor

            names["torch"] = teletensor
        stmt, setup = (textwrap.dedent(code).strip() for code in (stmt, setup))
        self._timer = timeit.Timer(stmt, setup, timer, globals=names)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _time(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of ``number`` executions, after a few warm-up executions."""
        with set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return Measurement(number, [self._time(number)], self._task_spec)

    def _block_size(self, min_run_time: float) -> int:
        """The number of executions that take much longer than reading the clock."""
        with set_torch_threads(self._task_spec.num_threads):
            overhead = sorted(self._time(0) for _ in range(5))[2]
            number = 1
            while True:
                spent = self._time(number)
                if (spent > min_run_time / 1000 and overhead / spent <= 1e-4) or spent > min_run_time:
                    return number
                number *= 10

    def _measure(self, number: int, enough: Callable[[list[float], float], bool], callback: Callable | None) -> Measurement:
        times: list[float] = []
        with set_torch_threads(self._task_spec.num_threads):
            while not enough(times, sum(times)):
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2) -> Measurement:
        """Measurements of blocks of executions, for ``min_run_time`` seconds in total."""
        return self._measure(self._block_size(min_run_time), lambda times, spent: bool(times) and spent >= min_run_time, callback)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:  # fmt: skip
        """Measurements until their interquartile range is below ``threshold`` of the median, at most for ``max_run_time`` seconds."""
        number = self._block_size(0.05)

        def enough(times: list[float], spent: float) -> bool:
            if spent >= max_run_time:
                return True
            return len(times) > 3 and spent >= min_run_time and Measurement(number, times, self._task_spec).meets_confidence(threshold)

        return self._measure(number, enough, callback)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raises NotImplementedError, as PyTorch does: use blocked_autorange."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> None:
        """Raises NotImplementedError, as PyTorch does: use blocked_autorange."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> None:
        """Raises NotImplementedError: Callgrind does not see the engine's instructions."""
        raise NotImplementedError("Timer.collect_callgrind: instructions are executed by the engine, which Callgrind does not see")
