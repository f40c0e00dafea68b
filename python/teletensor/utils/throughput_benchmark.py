"""torch.utils.throughput_benchmark: calls a module in several threads and measures how long calls take."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from .._connection import synchronize
from .._lazy import set_module

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]


def format_time(time_us: float | None = None, time_ms: float | None = None, time_s: float | None = None) -> str:
    """A time, of which one is given, as text in a suitable unit."""
    given = [(t, scale) for t, scale in ((time_us, 1), (time_ms, 1e3), (time_s, 1e6)) if t is not None]
    if len(given) != 1:
        raise AssertionError("Expected only one of time_us, time_ms, time_s is given.")
    microseconds = given[0][0] * given[0][1]
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    return f"{microseconds / 1e3:.3f}ms" if microseconds >= 1e3 else f"{microseconds:.3f}us"


class BenchmarkConfig:
    """How a module is called."""

    def __init__(self) -> None:
        self.num_calling_threads, self.num_worker_threads = 1, 1
        self.num_warmup_iters, self.num_iters = 1, 100
        self.profiler_output_path = ""


class BenchmarkExecutionStats:
    """The mean time of a call, and the number of calls."""

    def __init__(self, latency_avg_ms: float = -1.0, num_iters: int = -1) -> None:
        self.latency_avg_ms, self.num_iters = latency_avg_ms, num_iters


class ExecutionStats:
    """The results of a benchmark."""

    def __init__(self, c_stats: BenchmarkExecutionStats, benchmark_config: BenchmarkConfig) -> None:
        self._c_stats, self.benchmark_config = c_stats, benchmark_config

    @property
    def latency_avg_ms(self) -> float:
        """The mean time of a call."""
        return self._c_stats.latency_avg_ms

    @property
    def num_iters(self) -> int:
        """The number of calls, of all threads."""
        return self._c_stats.num_iters

    @property
    def total_time_seconds(self) -> float:
        """The time of the benchmark."""
        return self.num_iters * (self.latency_avg_ms / 1000.0) / self.benchmark_config.num_calling_threads

    @property
    def iters_per_second(self) -> float:
        """Calls per second, of all threads."""
        return self.num_iters / self.total_time_seconds

    def __str__(self) -> str:
        return "\n".join([
            "Average latency per example: " + format_time(time_ms=self.latency_avg_ms),
            f"Total number of iterations: {self.num_iters}",
            f"Total number of iterations per second (across all threads): {self.iters_per_second:.2f}",
            "Total time: " + format_time(time_s=self.total_time_seconds),
        ])  # fmt: skip


class ThroughputBenchmark:
    """Calls a module, or another callable, with the inputs that add_input() has stored, in random order.

    A call has ended when the engine has executed its instructions. The threads share the session, as those of a server do.
    """

    def __init__(self, module: Callable) -> None:
        if not callable(module):
            raise TypeError(f"[ThroughputBenchmark] expected a module, got {type(module).__name__}")
        self._module, self._inputs = module, []

    def add_input(self, *args: Any, **kwargs: Any) -> None:
        """Stores the arguments of a call."""
        self._inputs.append((args, kwargs))

    def run_once(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module."""
        return self._module(*args, **kwargs)

    def _call(self, source: random.Random) -> None:
        args, kwargs = source.choice(self._inputs)
        self._module(*args, **kwargs)
        synchronize()

    def benchmark(
        self, num_calling_threads: int | BenchmarkConfig = 1, num_warmup_iters: int = 10, num_iters: int = 100,
        profiler_output_path: str = "",
    ) -> ExecutionStats:  # fmt: skip
        """Measures `num_iters` calls of all threads, after `num_warmup_iters` of each.

        Raises:
            RuntimeError: there are no inputs.
            NotImplementedError: `profiler_output_path` is given; torch.profiler records traces.
        """
        config = BenchmarkConfig()
        config.num_calling_threads, config.num_warmup_iters, config.num_iters = num_calling_threads, num_warmup_iters, num_iters
        config.profiler_output_path = profiler_output_path
        if isinstance(num_calling_threads, BenchmarkConfig):
            config = num_calling_threads
        if config.profiler_output_path:
            raise NotImplementedError("[ThroughputBenchmark] expected no profiler_output_path: torch.profiler records traces")
        if not self._inputs:
            raise RuntimeError("Please provide benchmark inputs. Did you forget to call add_input()?")
        return ExecutionStats(_measured(self._call, config), config)


def _measured(call: Callable[[random.Random], None], config: BenchmarkConfig) -> BenchmarkExecutionStats:
    threads, errors = config.num_calling_threads, []
    numbers, done = itertools.count(), [0] * threads
    ready, begin = threading.Barrier(threads + 1), threading.Event()

    def run(place: int) -> None:
        source = random.Random(place)  # noqa: S311 - no secrets
        try:
            for _ in range(config.num_warmup_iters):
                call(source)
        except Exception as error:  # noqa: BLE001 - raised in the caller's thread
            errors.append(error)
        ready.wait()
        begin.wait()
        try:
            while not errors and next(numbers) < config.num_iters:
                call(source)
                done[place] += 1
        except Exception as error:  # noqa: BLE001 - raised in the caller's thread
            errors.append(error)

    workers = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(threads)]
    for worker in workers:
        worker.start()
    ready.wait()
    started = time.perf_counter()
    begin.set()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - started
    if errors:
        raise errors[0]
    count = sum(done)
    return BenchmarkExecutionStats(seconds * 1000 * threads / max(count, 1), count)


set_module("teletensor", BenchmarkConfig, BenchmarkExecutionStats)
